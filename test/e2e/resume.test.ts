import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { scheduledCommand } from "../../src/schedule/scheduled-run.js";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, type Place, run, started } from "./command.js";
import { type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

const items = 4;

/** A run that ended at its cap with half of its items. */
async function capped() {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const ended = await run(place, ["run", "set.csv", "--yes", "--max-credits", "4"], service);
  expect(ended, ended.stderr).toMatchObject({ code: 6 });
  return { service, place, ended };
}

/** As if the folder had been copied from another machine. */
function begunElsewhere(place: Place): void {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
  try {
    db.exec(
      `UPDATE runs SET options = json_set(options, '$.beganBy', json('{"user":"anna","host":"studio-3"}'))`,
    );
  } finally {
    db.close();
  }
}

describe.concurrent("a run that ended at its cap", () => {
  test("is continued by the command that its last line names", async () => {
    const { service, place, ended } = await capped();
    const [, words = ""] = /^Next: .*`bulkgen (.*)`$/m.exec(ended.stdout) ?? [];
    expect(words).toBe("resume 1 --max-credits 8");
    const resumed = await run(place, words.split(" "), service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(resumed.stderr).toMatch(/^resuming +run 1 of set \(set\.csv\)$/m);
    expect(resumed.stderr).toMatch(/^items +2 of 4 archived, 2 to submit$/m);
    expect(resumed.stderr).toMatch(/^options +--max-credits 8$/m);
    expect(resumed.stderr).toMatch(/^credits +4 spent$/m);
    expect(service.made).toHaveLength(items);
  });

  test("is explained to somebody else by status, with the command that continues it", async () => {
    const { service, place } = await capped();
    begunElsewhere(place);
    const { stdout } = await run(place, ["status"], service);
    expect(stdout).toMatch(/^run +1 of set \(set\.csv\): interrupted\nstarted .* by anna on studio-3$/m);
    expect(stdout).toMatch(/^options +--max-credits 4$/m);
    expect(stdout).toMatch(/^why +the credit cap is reached$/m);
    expect(stdout).toMatch(/^next +2 items are left: `bulkgen resume 1 --max-credits 8`$/m);
    const all = await run(place, ["status", "--all"], service);
    expect(all.stdout).toMatch(/^run 1: 2 items are left: `bulkgen resume 1 --max-credits 8`$/m);
    const document = JSON.parse((await run(place, ["status", "--json"], service)).stdout);
    expect(document).toMatchObject({
      manifest: join(place.folder, "set.csv"),
      beganBy: { user: "anna", host: "studio-3" },
      options: ["--max-credits 4"],
      nextStep: expect.stringContaining("bulkgen resume 1 --max-credits 8"),
    });
    const done = await run(place, ["resume", "--max-credits", "8", "--yes"], service);
    expect(done, done.stderr).toMatchObject({ code: 0 });
    expect((await run(place, ["status"], service)).stdout).not.toMatch(/^(next|why)/m);
  });

  test("asks on a terminal before it spends more", async () => {
    const { service, place } = await capped();
    const asked = started(place, ["resume", "1", "--max-credits", "8"], {
      ...service,
      columns: 80,
      keyboard: true,
    });
    await asked.prints(/Spend 4 credits on 2 items\? \[y\/N\]/);
    asked.type("\n");
    expect((await asked.ended).code).toBe(2);
    expect(service.made).toHaveLength(2);
  });

  test("is not bought at more than --max-price; at a price within it nobody is asked", async () => {
    const { service, place } = await capped();
    const words = ["resume", "--max-credits", "8", "--max-price"];
    const refused = await run(place, [...words, "3"], service);
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "the price is 4 credits, more than --max-price 3 allows. Nothing was submitted.",
      ),
    });
    expect(service.made).toHaveLength(2);
    begunElsewhere(place);
    const agreed = await run(place, [...words, "4"], { ...service, keyboard: true, columns: 80 });
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(4);
  });

  test("is not bought where somebody else spent with the key meanwhile, until that is accepted", async () => {
    const { service, place } = await capped();
    const other = newPlace();
    other.write("set.csv", sheet(3, "plain-image").replaceAll("a picture", "another picture"));
    expect((await run(other, ["run", "set.csv", "--yes"], service)).code).toBe(0);
    const words = ["resume", "--max-credits", "8"];
    const refused = await run(place, words, service);
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /6 credits were charged to this key for requests that this machine did not/,
      ),
    });
    expect(service.made).toHaveLength(5);
    const accepted = await run(place, [...words, "--accept-foreign-use"], service);
    expect([0, 10], accepted.stderr).toContain(accepted.code);
    expect(service.made).toHaveLength(7);
  });

  test("is not bought on another machine without a yes", async () => {
    const { service, place } = await capped();
    begunElsewhere(place);
    const words = ["resume", "--max-credits", "8"];
    const refused = await run(place, words, service);
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "run 1 was begun by anna on studio-3, and resuming it here spends up to 4",
      ),
    });
    expect(service.made).toHaveLength(2);
    const agreed = await run(place, [...words, "--yes"], service);
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
  });

  test("is bought on whichever machine its schedule's daemon is; others only collect it without a yes", async () => {
    const service = await startService();
    const place = newPlace();
    place.write("set.csv", sheet(items, "plain-image"));
    service.script(async ({ what }): Promise<Scripted> => {
      if (what !== "GET task") return "serve";
      running.interrupt();
      await running.prints(/interrupted: /);
      return { status: 500, json: { error: { code: "INTERNAL_ERROR", message: "busy" } } };
    });
    const running = started(
      place,
      ["run", "set.csv", "--yes", "--lanes", "1", "--max-credits", "4"],
      service,
    );
    expect((await running.ended).code).toBe(130);
    service.script(() => "serve");
    begunElsewhere(place);
    const files = () => place.files().filter((name) => name.endsWith(".png")).length;
    const made = service.made.length;
    const collected = await run(place, ["resume", "1", "--max-credits", "8"], service);
    expect(collected, collected.stderr).toMatchObject({ code: 10 });
    expect(collected.stderr.replace(/\s+/g, " ")).toContain("run 1 was begun by anna on studio-3");
    expect([service.made.length, files()]).toEqual([made, made]);
    const schedule = { name: "nightly", manifest: "set.csv", cron: "0 2 * * *", zone: "UTC", flags: [] };
    const { command, words } = scheduledCommand(
      { ...schedule, missed: "once", seenUntil: 0, pausedAt: null },
      { dueAt: 0, run: 1 },
    );
    const resumed = await run(place, [command, ...words, "--max-credits", "8"], service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(files()).toBe(items);
  });
});
