import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { AlarmClock } from "../../src/clock.js";
import { openSqlite } from "../../src/sqlite.js";
import { systemClock } from "../../src/system.js";
import { spoil } from "../store/spoil.js";
import { expectArchived } from "./archive.js";
import { type Ended, main, newPlace, type Place, run, start, started, startProcess } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";
import { skippingClock } from "./skipping-clock.js";

const begin = ["run", "set.csv", "--yes", "--lanes", "1"];

async function openStage(items = 4): Promise<{ place: Place; service: ScriptedService }> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  return { place, service };
}

/** One message in its own words, the code, nothing on stdout. */
function expectRefusal(end: Ended, code: number, message: RegExp): void {
  expect(end.stderr).toMatch(message);
  expect(end).toMatchObject({ code, signal: null, stdout: "" });
  expect(end.stderr).not.toMatch(/\bat .*\.c?js:\d+/);
}

const prompts = (service: ScriptedService) => service.made.map(({ prompt }) => prompt).toSorted();

describe.concurrent("an unusable workspace is reported, and no request is sent", () => {
  test.each([[begin], [["resume"]], [["status"]], [["cancel"]]])(
    "P19: of a newer version: %j",
    async (args) => {
      const { place, service } = await openStage(1);
      expect((await run(place, begin, service)).code).toBe(0);
      const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
      db.pragma("user_version = 999");
      db.close();
      const asked = service.asked.length;
      const end = await run(place, args, service);
      expectRefusal(
        end,
        2,
        /state\.db was written by a newer bulkgen: expected schema \d+ or older, got 999/,
      );
      expect(service.asked).toHaveLength(asked);
    },
  );

  test.each<[left: string, gone: readonly string[], message: RegExp, commands: string[][]]>([
    [
      "its receipts are",
      ["state.db"],
      /state\.db is missing, but .*receipts\.jsonl records paid requests/,
      [
        ["plan", "set.csv"],
        ["verify"],
        ["export"],
        ["find"],
        ["gallery"],
        ["pause"],
        ["redo", "a01", "--yes"],
      ],
    ],
    [
      "its archive is",
      ["state.db", "receipts.jsonl"],
      /state\.db is missing, but the archive in .*outputs has files that it recorded/,
      [begin, ["status"], ["verify"]],
    ],
  ])("P2: whose database is gone while %s there", async (_, gone, message, commands) => {
    const { place, service } = await openStage(1);
    expect((await run(place, begin, service)).code).toBe(0);
    for (const name of gone) rmSync(join(place.folder, ".bulkgen", name));
    const asked = service.asked.length;
    for (const args of commands) {
      const end = await run(place, args, service);
      expectRefusal(end, 2, message);
      expect(end.stderr, args[0]).toMatch(
        /expected both or neither\. `bulkgen doctor --rebuild`.*Nothing was sent/,
      );
    }
    expect(service.asked).toHaveLength(asked);
    expect((await run(place, ["doctor", "--rebuild", "--yes"])).code).toBe(0);
    expect(await run(place, begin, service)).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(1);
  });

  test("P2: with an empty database, by read-only commands as well", async () => {
    const { place, service } = await openStage(1);
    expect((await run(place, begin, service)).code).toBe(0);
    place.write(".bulkgen/state.db", "");
    for (const args of [["status"], ["status", "--all"], ["plan", "set.csv"]])
      expectRefusal(
        await run(place, args, service),
        2,
        /state\.db is older than .*`bulkgen doctor --rebuild`/,
      );
    expect(service.made).toHaveLength(1);
  });

  test("P4: with damage that shows only when it is met", async () => {
    const { place, service } = await openStage(2);
    expect((await run(place, begin, service)).code).toBe(0);
    spoil(join(place.folder, ".bulkgen", "state.db"), "runs");
    for (const args of [begin, ["status"]]) {
      const end = await run(place, args, service);
      expectRefusal(
        end,
        2,
        /state\.db: database disk image is malformed; restore it .*`bulkgen doctor --rebuild`/,
      );
    }
    expect((await run(place, ["doctor", "--rebuild", "--yes"])).code).toBe(0);
    expect(await run(place, begin, service)).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(2);
  });

  test("on a disk that cannot be written", async () => {
    const { place, service } = await openStage(1);
    const folder = process.platform === "darwin" ? "/System" : "/sys";
    const end = await run(place, [...begin, "--workspace", folder, "--out", "outputs"], service);
    expectRefusal(end, 2, /the workspace \/\w+ cannot be written \(\w+\)\. Nothing was sent\..*--workspace/);
    expect(service.asked).toEqual([]);
  });

  test("on a disk that is full", async () => {
    const { place, service } = await openStage(1);
    // No file may grow beyond 4 KiB: the database cannot be made.
    const command = `trap '' XFSZ; ulimit -f 8; exec "$0" "$@"`;
    const args = ["-c", command, process.execPath, main, ...begin];
    const env = { ...place.env, ...service.env };
    const end = await startProcess("sh", args, { cwd: place.folder, env }).ended;
    expectRefusal(
      end,
      2,
      /state\.db: (disk I\/O error|database or disk is full); check that its disk has free space/,
    );
    expect(service.asked).toEqual([]);
    const again = await run(place, begin, service);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(1);
  });

  test.each([
    ["accounts.db", ["account", "--sandbox"]],
    ["accounts.db", ["plan", "set.csv", "--sandbox"]],
    ["accounts.db", ["run", "set.csv", "--sandbox", "--yes"]],
    ["schedules.db", ["schedule", "list"]],
  ])("with a damaged %s, its contents and what to do are reported: %j", async (name, args) => {
    const place = newPlace();
    place.write("set.csv", sheet(1, "plain-image"));
    place.write(join(".bulkgen", name === "accounts.db" ? "sandbox" : "", name), "no database ".repeat(200));
    const end = await run(place, args);
    expectRefusal(end, 2, /\.db: file is not a database; it contains .* move it away/);
    expect(end.stderr).toContain(name);
  });

  test("with a file where its folder should be", async () => {
    const { place, service } = await openStage(1);
    place.write(".bulkgen", "a file");
    expectRefusal(
      await run(place, begin, service),
      2,
      /cannot be written \(EEXIST\)|cannot be written \(ENOTDIR\)/,
    );
    expect(service.asked).toEqual([]);
  });
});

test("P17: a run that waits for its receipts says why when it is ended", async () => {
  const { place, service } = await openStage(1);
  // Where room is to be kept for answers lies a folder.
  place.write(".bulkgen/receipts.reserve/file", "");
  const running = started(place, begin, { ...service, clock: systemClock });
  await running.prints(/the receipts cannot be written/);
  running.interrupt();
  const { code, stdout } = await running.ended;
  expect(code).toBe(130);
  expect(stdout).toMatch(/^Ended early: files cannot be saved: the receipts cannot be written \(E/m);
  expect(service.made).toEqual([]);
});

test("P18: two workspaces of one account work at the same time, independently", async () => {
  const service = await startService({ plan: "Pro" });
  const place = newPlace();
  const both = ["one", "two"];
  for (const name of both)
    place.write(`${name}/set.csv`, sheet(3, "plain-image").replaceAll("of a", `of ${name} a`));
  let waiting = 0;
  let bothWait = () => {};
  const together = new Promise<void>((resolve) => {
    bothWait = resolve;
  });
  service.script(async ({ what }): Promise<Scripted> => {
    if (what !== "GET models") return "serve";
    if (++waiting === both.length) bothWait();
    // Neither continues before both have the lock of their workspace.
    await together;
    return "serve";
  });
  const running = both.map((name) => start(place, begin, { ...service, cwd: join(place.folder, name) }));
  for (const { ended } of running) {
    const end = await ended;
    expect(end, end.stderr).toMatchObject({ code: 0 });
  }
  expect(prompts(service)).toHaveLength(6);
  expect(new Set(prompts(service)).size).toBe(6);
  for (const name of both) expectArchived(join(place.folder, name, "outputs", "set"), ids(3));
});

test("P20: a clock that is set back by ten years in the middle of a run stops nothing and pays nothing twice", async () => {
  const { place, service } = await openStage();
  const tenYears = 10 * 365 * 24 * 60 * 60 * 1_000;
  const ahead: AlarmClock = {
    now: () => skippingClock.now() + tenYears,
    monotonic: () => skippingClock.monotonic(),
    sleep: (ms, signal) => skippingClock.sleep(ms, signal),
    alarm: (at, ring) => skippingClock.alarm(at - tenYears, ring),
  };
  service.script(async ({ what, before }): Promise<Scripted> => {
    if (what === "POST generate" && before === 2) {
      running.interrupt();
      await running.prints(/interrupted: /);
    }
    return "serve";
  });
  const running = started(place, begin, { ...service, clock: ahead });
  expect((await running.ended).code).toBe(130);
  expect((await run(place, ["status"])).stdout).toMatch(/ended +20[3-9]\d-/);
  service.script(() => "serve");
  const second = await run(place, ["resume"], service);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(prompts(service)).toEqual(ids(4).map((id) => `a picture of ${id}`));
  expectArchived(join(place.folder, "outputs", "set"), ids(4));
  expect(existsSync(join(place.folder, ".bulkgen", "receipts.jsonl"))).toBe(true);
});
