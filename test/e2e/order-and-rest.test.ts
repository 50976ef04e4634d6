import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import { agreedTo, type Offer } from "../../src/job/orders/request.js";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, run, type Started, started } from "./command.js";
import { failedTask, type Script, type ScriptedService, startService } from "./service.js";
import { sheet } from "./sheet.js";

const price = 2;

/** A run of five, interrupted after the answer about its second item: two are paid for, three are planned. */
async function interrupted() {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(5, "plain-image"));
  const running = started(place, ["run", "set.csv", "--yes", "--lanes", "1"], service);
  let posts = 0;
  service.script(({ what }) => {
    if (what === "POST generate" && ++posts === 2) running.interrupt();
    return "serve";
  });
  expect((await running.ended).code).toBe(130);
  service.script(() => "serve");
  return { service, place };
}

describe.concurrent("an order about one item of a run with planned items", () => {
  test("is not carried out before the price of all of them is agreed to", async () => {
    const { service, place } = await interrupted();
    expect(service.made).toHaveLength(2);
    const asked = await run(place, ["redo", "a01"], { ...service, columns: 80 });
    expect(asked.stderr).toContain(`continuing the run also submits 3 other items, ${3 * price} credits`);
    expect(asked.code).toBe(2);
    expect(service.made).toHaveLength(2);
    const agreed = await run(place, ["redo", "a01", "--yes"], service);
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(6);
  });

  test("asks for the others also if it costs nothing itself, and not if there are none", async () => {
    const asked: Offer[] = [];
    const declined = async (offer: Offer) => {
      asked.push(offer);
      return false;
    };
    const wanted = { order: { do: "refetch", items: [1] }, offered: [] } as const;
    expect(await agreedTo(wanted, declined)).toBe(wanted.order);
    const rest = { items: 3, credits: credits(6) };
    await expect(agreedTo(wanted, declined, rest)).rejects.toThrow("not confirmed; nothing was submitted");
    expect(asked).toEqual([{ items: [], credits: noCredits, rest, note: null }]);
  });
});

describe.concurrent("P7: what continues a chain is asked for the price of all that it makes", () => {
  const rows = ["cup,plain-image,a cup,", "clip,plain-image,a clip,@cup", "longer,plain-image,more,@clip"];

  /** A chain of three whose first item was submitted with this end, and what a command says then. */
  async function begun(script: (running: Started, made: ScriptedService["made"]) => Script) {
    const service = await startService({ balance: 100 });
    const place = newPlace();
    place.write("set.csv", ["id,model,prompt,image_url", ...rows].join("\n"));
    const running = started(place, ["run", "set.csv", "--yes", "--retries", "0"], service);
    service.script(script(running, service.made));
    await running.ended;
    service.script(() => "serve");
    expect(service.made).toHaveLength(1);
    const call = async (...words: string[]) => {
      const { code, stderr } = await run(place, words, service);
      return { code, stderr, made: service.made.length };
    };
    return { service, call };
  }

  const refused = (credits: number, most: number) => ({
    code: 2,
    made: 1,
    stderr: expect.stringContaining(`the price is ${credits} credits, more than --max-price ${most} allows`),
  });

  test("resume", async () => {
    const { call } = await begun((running) => ({ what }) => {
      if (what === "POST generate") running.interrupt();
      return "serve";
    });
    expect(await call("resume", "--max-price", "3")).toMatchObject(refused(2 * price, 3));
    expect(await call("resume", "--max-price", "4")).toMatchObject({ code: 0, made: 3 });
  });

  test("retry of the item that the others wait for", async () => {
    const { call } = await begun((_, made) => ({ what, path }) => {
      const task = what === "GET task" ? made.find((each) => path.endsWith(each.task)) : undefined;
      return task ? { json: failedTask(task) } : "serve";
    });
    expect(await call("retry", "--max-price", "5")).toMatchObject(refused(3 * price, 5));
    expect(await call("retry", "--max-price", "6")).toMatchObject({ code: 0, made: 4 });
  });

  test("resolve of the item that the others wait for", async () => {
    const { service, call } = await begun(
      () =>
        ({ what }) =>
          what === "POST generate" ? "serve and cut" : "serve",
    );
    const task = service.made[0]?.task ?? "";
    expect(await call("resolve", "cup", "--adopt", task, "--max-price", "0")).toMatchObject(
      refused(2 * price, 0),
    );
    expect(await call("resolve", "cup", "--resubmit", "--max-price", "5")).toMatchObject(
      refused(3 * price, 5),
    );
    expect(await call("resolve", "cup", "--resubmit", "--max-price", "6")).toMatchObject({
      code: 0,
      made: 4,
    });
  });
});

describe.concurrent("an order that was carried out, and whose run did not start", () => {
  /** A finished run of two, of which the second has failed. */
  async function failedOne() {
    const service = await startService({ balance: 100 });
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    service.script(({ what, path }) => {
      const [, second] = service.made;
      return what === "GET task" && second && path.endsWith(second.task)
        ? { json: failedTask(second) }
        : "serve";
    });
    const end = await run(place, ["run", "set.csv", "--yes", "--lanes", "1", "--retries", "0"], service);
    expect(end, end.stderr).toMatchObject({ code: 5 });
    service.script(() => "serve");
    return { service, place };
  }

  test("is continued by `resume`: the process ended in between", async () => {
    const { service, place } = await failedOne();
    const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
    // A state with a trigger of somebody else is not opened, so it is made once the command has opened it.
    service.script(({ what }) => {
      if (what === "GET me")
        db.exec(`CREATE TRIGGER IF NOT EXISTS crash BEFORE UPDATE OF state ON runs WHEN NEW.state = 'running'
          BEGIN SELECT RAISE(ABORT, 'the power is gone'); END`);
      return "serve";
    });
    const crashed = await run(place, ["retry", "--yes"], service);
    expect(crashed.stderr).toContain("the power is gone");
    service.script(() => "serve");
    db.exec("DROP TRIGGER crash");
    db.close();
    const made = service.made.length;
    const resumed = await run(place, ["resume"], service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(made + 1);
  });

  test("is not carried out if the downloads are left to workers that there cannot be", async () => {
    const { service, place } = await failedOne();
    const made = service.made.length;
    for (const order of [["retry"], ["redo", "a01"], ["run", "set.csv", "--only-failed"]]) {
      const refused = await run(place, [...order, "--yes", "--no-work"], service);
      expect(refused).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("--no-work needs --database-url"),
      });
      const status = await run(place, ["status"]);
      expect(status.stdout, order.join(" ")).toContain("1 archived, 1 failed");
    }
    expect(service.made).toHaveLength(made);
  });
});
