import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { endOf } from "../../src/cli/commands/item-orders.js";
import { plainReason, type Reason } from "../../src/core/reason.js";
import type { Stop } from "../../src/core/stop.js";
import type { Carried } from "../../src/job/orders/give.js";
import { openEvents } from "../../src/job/run/events.js";
import type { Machine } from "../../src/machine.js";
import type { ItemOrderFlags } from "../../src/options/orders.js";
import type { Progress } from "../../src/run/loop.js";
import { newPlace, type Place, run, start } from "../e2e/command.js";
import { ManualClock } from "../manual-clock.js";

type Line = Record<string, unknown> & { event: string };

const lines = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

const rehearsal = ["--sandbox", "--yes", "--events"];

describe("the events of a run", () => {
  let at: Place;
  const manifest = (...rows: string[]) =>
    writeFileSync(join(at.folder, "set.csv"), `id,model,prompt\n${rows.join("\n")}\n`);

  beforeEach(() => {
    at = newPlace();
  });

  test("report each item's steps in order, with task and credits; nothing else is on stdout", async () => {
    manifest("cup,aurora-image-mini,a cup", "bad,aurora-image-mini,[[moderation]] a knife");
    const { code, stdout, stderr } = await run(at, ["run", "set.csv", ...rehearsal]);
    expect(code).toBe(5);
    const told = lines(stdout);
    expect(told[0]).toMatchObject({ event: "run_started", run: 1, job: "set", sandbox: true });
    const way = (id: string) => told.filter((line) => line["rowId"] === id);
    expect(way("cup").map((line) => line.event)).toEqual(["submitted", "completed", "archived"]);
    expect(new Set(way("cup").map((line) => line["taskId"])).size).toBe(1);
    expect(way("cup")[0]).toMatchObject({ model: "aurora-image-mini", attempt: 1, credits: 1 });
    const files = way("cup")[2]?.["files"] as string[] | undefined;
    expect(existsSync(files?.[0] ?? "")).toBe(true);
    expect(way("bad").map((line) => [line.event, line["credits"], line["kind"]])).toEqual([
      ["submitted", 1, undefined],
      ["failed", 0, "moderation"],
    ]);
    expect(told.at(-1)).toMatchObject({
      event: "run_finished",
      exit: 5,
      exitName: "failed",
      counts: { archived: 1, failed: 1 },
      credits: { spent: 1, pending: 0, left: 499 },
    });
    for (const line of told) expect(new Date(String(line["time"])).toISOString()).toBe(line["time"]);
    expect(stderr).toContain("1 of 2 items");
  });

  test("name what ended a run before its items", async () => {
    manifest("one,aurora-image-mini,a cup", "two,aurora-image-mini,a jug");
    const { code, stdout } = await run(at, ["run", "set.csv", ...rehearsal, "--max-credits", "1"]);
    expect(code).toBe(6);
    const told = lines(stdout);
    expect(told.filter((line) => line.event === "stopped")).toEqual([
      expect.objectContaining({ kind: "cap", message: expect.stringContaining("cap") }),
    ]);
    expect(told.at(-1)).toMatchObject({ event: "run_finished", exit: 6, exitName: "cap" });
  });

  test("are reported once, in the killed run or in the one that continued it", async () => {
    manifest("one,aurora-image,a cup", "two,aurora-image,a jug", "three,aurora-image,a pot");
    const { prints, signal, ended } = start(at, ["run", "set.csv", ...rehearsal]);
    await prints(/("submitted"[\s\S]*){3}/);
    signal("SIGKILL");
    const before = lines((await ended).stdout.replace(/[^\n]*$/, ""));
    const resumed = await run(at, ["resume", "--sandbox", "--events"]);
    expect(resumed.code).toBe(0);
    const after = lines(resumed.stdout);
    expect(after[0]).toMatchObject({ event: "run_started", run: 1 });
    const named = (event: string) => [...before, ...after].filter((line) => line.event === event);
    for (const event of ["submitted", "completed", "archived"]) {
      const tasks = named(event).map((line) => line["taskId"]);
      expect(new Set(tasks).size).toBe(tasks.length);
    }
    expect(
      named("archived")
        .map((line) => line["rowId"])
        .sort(),
    ).toEqual(["one", "three", "two"]);
  });

  test("that nothing reads any more do not end the run", async () => {
    manifest("one,aurora-image-mini,a cup", "two,aurora-image-mini,a jug");
    const { child, prints, ended } = start(at, ["run", "set.csv", ...rehearsal]);
    await prints(/"run_started"/);
    child.stdout?.destroy();
    expect((await ended).code).toBe(0);
  });

  test("share stdout with no other document", async () => {
    manifest("one,aurora-image-mini,a cup");
    const { code, stdout, stderr } = await run(at, ["run", "set.csv", ...rehearsal, "--json"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("--events cannot be used with --json");
  });
});

/** Lets what waits for a reading go on. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const unused = { stateFile: "unused", root: "unused", database: null };

describe("waiting", () => {
  const clock = new ManualClock();
  const written: Line[] = [];
  const events = openEvents(unused, clock, (event) => written.push({ ...event }));
  const waits = (reason: Progress["reason"]) => events.progress({ reason, stops: [] } as unknown as Progress);
  const told = async () => {
    await settled();
    return written.splice(0).map((line) => [line.event, line["for"], line["until"]]);
  };
  const iso = (ms: number) => new Date(ms).toISOString();

  test("is reported once for each wait, and not while the run ends", async () => {
    const end = clock.now() + 20_000;
    waits(plainReason("minute", end));
    waits(plainReason("minute", end));
    expect(await told()).toEqual([["waiting", "minute", iso(end)]]);
    waits({ kind: "stopping", text: "stopping: interrupted", until: null });
    expect(await told()).toEqual([]);
    waits(plainReason("day", end));
    expect(await told()).toEqual([["waiting", "day", iso(end)]]);
  });

  test("is reported once where nobody knows its end", async () => {
    const full = (bytes: number): Reason => ({ kind: "disk", text: `${bytes} bytes free`, until: null });
    waits(full(5));
    waits(full(4));
    expect(await told()).toEqual([["waiting", "disk", null]]);
  });

  test("is reported again when the same wait starts again", async () => {
    waits(plainReason("service", clock.now() + 1_000));
    clock.advance(1_000);
    waits(plainReason("service", clock.now() + 5_000));
    expect((await told()).map(([, what]) => what)).toEqual(["service", "service"]);
    waits(null);
    waits(plainReason("service", clock.now() + 4_000));
    expect(await told()).toHaveLength(1);
  });
});

test("a stop is reported once, and so is its withdrawal", async () => {
  const written: Line[] = [];
  const events = openEvents(unused, new ManualClock(), (event) => written.push({ ...event }));
  const stands = (...stops: Stop[]) => events.progress({ reason: null, stops } as unknown as Progress);
  const cap: Stop = { kind: "cap", message: "the credit cap is reached" };
  const time: Stop = { kind: "time", message: "the time is over" };
  stands();
  stands(cap);
  stands(cap);
  stands();
  stands(time);
  stands(time, cap);
  await settled();
  expect(written.map((line) => [line.event, line["kind"]])).toEqual([
    ["stopped", "cap"],
    ["continued", "cap"],
    ["stopped", "time"],
    ["stopped", "cap"],
  ]);
});

test("what another process answers to an order is no event, and goes to stderr", () => {
  const written: string[] = [];
  const stream = (name: string) => ({ write: (text: string) => written.push(`${name}: ${text}`) });
  const streams = { stdout: stream("stdout"), stderr: stream("stderr") };
  const machine = { ...streams, cwd: "/somewhere", env: {} } as unknown as Machine;
  const order = { do: "retry", items: [] };
  const carried = { run: { id: 1 }, order, kind: "done", by: null, message: "1 item is submitted again" };
  const answer = (flags: Partial<ItemOrderFlags>) =>
    endOf(carried as unknown as Carried, flags as ItemOrderFlags, machine);
  expect([answer({ events: true }), answer({})]).toEqual(["done", "done"]);
  expect(written).toEqual(["stderr: 1 item is submitted again\n", "stdout: 1 item is submitted again\n"]);
});
