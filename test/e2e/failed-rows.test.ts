import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { failedTask, startService } from "./service.js";
import { sheet } from "./sheet.js";
import { skippingClock } from "./skipping-clock.js";

const sandbox = ["--sandbox", "--yes"];

/** A job of two rows, of which one was refused by moderation. */
async function oneFailed(): Promise<{ place: Place; call: (...words: string[]) => ReturnType<typeof run> }> {
  const place = newPlace();
  place.write(
    "s.csv",
    "id,model,prompt\na,aurora-image-mini,[[moderation]] a mug\nb,aurora-image-mini,a bowl\n",
  );
  const call = (...words: string[]) => run(place, words);
  expect((await call("run", "s.csv", ...sandbox)).code).toBe(5);
  return { place, call };
}

const spent = async (call: (...words: string[]) => ReturnType<typeof run>) =>
  (JSON.parse((await call("account", "--sandbox", "--json")).stdout) as { credits: { balance: number } })
    .credits.balance;

test("a failed item is not for resolve, which names the command that is", async () => {
  const { call } = await oneFailed();
  const refused = await call("resolve", "a", "--resubmit", "--sandbox", "--yes");
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(
    "expected held, got failed for a. Failed items can be submitted again: `bulkgen help retry`",
  );
});

describe.concurrent("a failed row that was corrected", () => {
  test("in the sheet that export --failed writes is bought once, for its own job", async () => {
    const { place, call } = await oneFailed();
    const exported = await call("export", "--sandbox", "--failed", "--to", "failed.csv");
    expect(exported, exported.stderr).toMatchObject({ code: 0 });
    expect(place.read("failed.csv")).toContain("# job: s");
    place.write("failed.csv", place.read("failed.csv").replace("[[moderation]] ", ""));
    place.write("s.csv", place.read("s.csv").replace("[[moderation]] ", ""));
    const mended = await call("run", "failed.csv", ...sandbox);
    expect(mended, mended.stderr).toMatchObject({ code: 0 });
    expect(readdirSync(join(place.folder, "sandbox-outputs"))).toEqual(["s"]);
    const before = await spent(call);
    const whole = await call("run", "s.csv", ...sandbox);
    expect(whole, whole.stderr).toMatchObject({ code: 0 });
    expect(whole.stdout).toContain("2 of 2 items, all of them before, not paid again");
    expect(await spent(call)).toBe(before);
  });

  test.each(["csv", "xlsx"])(
    "of an edition belongs to that edition, also in a sheet of its own (%s)",
    async (format) => {
      const { place, call } = await oneFailed();
      expect((await call("run", "s.csv", ...sandbox, "--edition", "web")).code).toBe(5);
      const name = `failed.${format}`;
      expect((await call("export", "--sandbox", "--failed", "--to", name)).code).toBe(0);
      if (format === "csv") {
        expect(place.read(name)).toContain("# job: s\r\n# edition: web\r\n");
        place.write(name, place.read(name).replace("[[moderation]] ", ""));
      }
      const before = await spent(call);
      const mended = await call("run", name, ...sandbox, "--json");
      expect(JSON.parse(mended.stdout), mended.stderr).toMatchObject({ job: "s", counts: { held: 0 } });
      if (format === "xlsx") return expect(await spent(call)).toBe(before);
      place.write("s.csv", place.read("s.csv").replace("[[moderation]] ", ""));
      const whole = await call("run", "s.csv", ...sandbox, "--edition", "web");
      expect(whole.stdout, whole.stderr).toContain("2 of 2 items, all of them before, not paid again");
      expect(readdirSync(join(place.folder, "sandbox-outputs", "s", "edition-web"))).toEqual([
        "a.png",
        "b.png",
      ]);
      expect(await spent(call)).toBe(before - 1);
    },
  );

  test("is run again by the command that the summary names, with the flags that its sheet needs", async () => {
    const place = newPlace();
    const text = "id;model;prompt;params.aspect_ratio\na;aurora-image-mini;[[moderation]] a mug;16:09\n";
    place.write("s.csv", text);
    const first = await run(place, ["run", "s.csv", "--repair", "--delimiter", "semicolon", ...sandbox]);
    const [, command = ""] = /then `bulkgen (.+?)`/.exec(first.stdout) ?? [];
    expect(command).toBe("run s.csv --delimiter semicolon --repair --sandbox");
    place.write("s.csv", text.replace("[[moderation]] ", ""));
    expect((await run(place, [...command.split(" "), "--yes"])).code).toBe(0);
  });

  test("is run again by a command that leaves out the invalid rows once more", async () => {
    const place = newPlace();
    const text = "id,model,prompt\na,aurora-image-mini,[[moderation]] a mug\nb,no-such-model,a cup\n";
    place.write("s.csv", text);
    const first = await run(place, ["run", "s.csv", "--skip-invalid", ...sandbox]);
    const [, command = ""] = /then `bulkgen (.+?)`/.exec(first.stdout) ?? [];
    place.write("s.csv", text.replace("[[moderation]] ", ""));
    const again = await run(place, [...command.split(" "), "--yes"]);
    expect(again, again.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("1 of 1 item") });
  });

  test("is run again from another folder by a command for the folder that the summary names", async () => {
    const place = newPlace();
    place.write("team/s.csv", "id,model,prompt\na,aurora-image-mini,[[moderation]] a mug\n");
    expect((await run(place, ["init", "team", "--sandbox"])).code).toBe(0);
    mkdirSync(join(place.folder, "elsewhere"));
    const { stdout } = await run(place, ["run", "../team/s.csv", ...sandbox], {
      cwd: join(place.folder, "elsewhere"),
    });
    expect(stdout).toContain("Next: in ../team: fix the failed rows, then `bulkgen run s.csv --sandbox`");
  });

  test("in a workbook that export --failed writes belongs to its own job too", async () => {
    const { call } = await oneFailed();
    const exported = await call("export", "--sandbox", "--failed", "--to", "failed.xlsx");
    expect(exported, exported.stderr).toMatchObject({ code: 0 });
    const planned = await call("plan", "failed.xlsx", "--sandbox", "--json");
    expect(JSON.parse(planned.stdout)).toMatchObject({ job: "s", isPart: true, vanished: [] });
  });

  test("in a sheet of its own is not bought again by the job that it came from", async () => {
    const { place, call } = await oneFailed();
    place.write("own.csv", "id,model,prompt\na,aurora-image-mini,a mug\n");
    expect((await call("run", "own.csv", ...sandbox)).code).toBe(0);
    place.write("s.csv", place.read("s.csv").replace("[[moderation]] ", ""));
    const refused = await call("run", "s.csv", ...sandbox);
    expect(refused.code).toBe(2);
    expect((refused.stdout + refused.stderr).replace(/\s+/g, " ")).toContain(
      "a was made before for job own and would be paid again",
    );
    expect((await call("run", "s.csv", "--job", "s", ...sandbox)).code).toBe(0);
  });
});

test("a row that failed at the provider is submitted again by the command that the summary names", async () => {
  const place = newPlace();
  place.write("s.csv", "id,model,prompt\na,aurora-image-mini,[[provider-error]] a mug\n");
  const first = await run(place, ["run", "s.csv", ...sandbox]);
  const [, command = ""] = /^Next: `bulkgen (.+?)`/m.exec(first.stdout) ?? [];
  expect(command).toBe("retry 1 --sandbox");
  const again = await run(place, [...command.split(" "), "--yes", "--json"]);
  expect(JSON.parse(again.stdout)).toMatchObject({ exitName: "failed", counts: { failed: 1 } });
  expect(again.stderr).toContain("1 to submit");
});

test("P2: a task that fails after its row was changed is not retried: the new version alone is made", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  const answers = (changes: object) =>
    service.script(({ what, path }) => {
      const task = service.made.find((made) => path.endsWith(made.task));
      return what === "GET task" && task?.prompt === "a picture of a02"
        ? { json: { ...failedTask(task), ...changes } }
        : "serve";
    });
  answers({ status: "processing", error: null, completed_at: null });
  expect((await run(place, ["run", "set.csv", "--yes"], service)).stdout).toContain("overdue");
  answers({});
  skippingClock.pass(24 * 60 * 60_000);
  place.write("set.csv", place.read("set.csv").replace("a picture of a02", "a cup"));
  expect((await run(place, ["plan", "set.csv"], service)).stdout).toMatch(/credits +2 needed/);
  await run(place, ["run", "set.csv", "--yes"], service);
  expect(service.made.map(({ prompt }) => prompt)).toEqual(["a picture of a01", "a picture of a02", "a cup"]);
});
