import { beforeEach, describe, expect, test } from "vitest";
import { Screen } from "../cli/screen.js";
import { newPlace, type Place, type Started, started } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { sheet } from "./sheet.js";

let place: Place;
let service: ScriptedService;
let release: () => void;
beforeEach(async () => {
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let polls = 0;
  service = await startService({
    script: async ({ what }): Promise<Scripted> => {
      // One item is done, and the tasks of the others are asked for in vain until they are released.
      if (what === "GET task" && ++polls > 1) await released;
      return "serve";
    },
  });
  place = newPlace();
  place.write("set.csv", sheet(3, "plain-image"));
});

const begin = (how: { columns?: number } = {}, ...words: string[]) =>
  started(place, ["run", "set.csv", "--yes", "--max-credits", "50", ...words], { env: service.env, ...how });
const watch = (how: { columns?: number } = {}, ...words: string[]) =>
  started(place, ["status", "--watch", ...words], { env: service.env, ...how });
/** What is left of it on a terminal of 80 columns. */
function left({ stdout, stderr }: { stdout: string; stderr: string }) {
  const screen = new Screen(80, 60);
  screen.write(stderr + stdout);
  return screen.lines();
}

/** A run of which one item is archived. */
async function underWay(...words: string[]): Promise<Started> {
  const run = begin({}, ...words);
  await run.prints(/1\/3 archived/);
  return run;
}

describe("status --watch", () => {
  test("on a terminal shows the view of another process's run until it ends, and then its status", async () => {
    const run = await underWay();
    const watching = watch({ columns: 80 });
    await watching.prints(/archived .* 1 of 3 items/);
    await watching.prints(/newest +outputs\/set\/a01\.png/);
    await watching.prints(/credits .* 6 of 50 credits/);
    release();
    expect((await run.ended).code).toBe(0);
    const end = await watching.ended;
    expect(end.code).toBe(0);
    expect(left(end)[0]).toBe("run       1 of set (set.csv): finished");
    expect(left(end).join("\n")).not.toMatch(/newest|minute/);
  });

  test("without a terminal prints a line when something changes, and then the status", async () => {
    const run = await underWay();
    const watching = watch();
    await watching.prints(/^1\/3 archived/);
    release();
    await run.ended;
    const { code, stdout, stderr } = await watching.ended;
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^1\/3 archived.*\n(\d\/3 archived.*\n)*run +1 of set \(set\.csv\): finished\n/);
  });

  test("Ctrl-C ends the watching with 130, and the run continues", async () => {
    const run = await underWay();
    const watching = watch({ columns: 80 });
    await watching.prints(/1 of 3 items/);
    watching.interrupt();
    const end = await watching.ended;
    expect(end.code).toBe(130);
    expect(left(end)).toEqual(["bulkgen: interrupted. Run 1 continues."]);
    release();
    expect((await run.ended).code).toBe(0);
  });

  test("with no run in progress is the status", async () => {
    release();
    await begin().ended;
    const [watched, told] = [
      await watch().ended,
      await started(place, ["status"], { env: service.env }).ended,
    ];
    expect(watched).toEqual(told);
  });

  test("and status say that the service cannot be reached, until it can be", async () => {
    const run = await underWay("--unreachable-wait", "10h");
    const watching = watch();
    await service.down();
    await watching.prints(/service unreachable since \d\d:\d\d UTC \([^)]+\) · /);
    const told = await started(place, ["status"], { env: service.env }).ended;
    expect(told.stdout).toMatch(/\nnow +service unreachable since/);
    const asked = async () =>
      JSON.parse((await started(place, ["status", "--json"], { env: service.env }).ended).stdout) as {
        reason: { kind: string; text: string; until: string | null } | null;
      };
    expect((await asked()).reason).toMatchObject({
      kind: "outage",
      text: expect.stringMatching(/^service unreachable since/),
      until: expect.stringMatching(/^20/),
    });
    release();
    await service.up();
    expect((await run.ended).code).toBe(0);
    expect((await watching.ended).stdout).toMatch(/\n3\/3 archived|\nrun +1 of set/);
    expect((await asked()).reason).toBeNull();
  });

  test("takes neither --json nor --all", async () => {
    for (const flag of ["--json", "--all"]) expect((await watch({}, flag).ended).code).toBe(2);
  });
});

test("a run on a terminal leaves its plan and its summary there, and nothing of the view", async () => {
  const run = begin({ columns: 80 });
  await run.prints(/archived .* 1 of 3 items/);
  release();
  const end = await run.ended;
  expect(end.code).toBe(0);
  const lines = left({ ...end, stdout: end.stdout });
  expect(lines[0]).toBe("set (set.csv)");
  const summary = lines.indexOf("set, run 1");
  expect(lines.slice(summary, summary + 2)).toEqual(["set, run 1", "archived  3 of 3 items"]);
  expect(lines.join("\n")).not.toMatch(/━|newest|to submit/);
});

test("with a log on the terminal every line of it is whole, and the view is gone in the end", async () => {
  const words = ["run", "set.csv", "--yes", "--log-level", "debug"];
  const run = started(place, words, { env: { ...service.env, NO_COLOR: "1" }, columns: 80 });
  await run.prints(/1 of 3 items/);
  release();
  const { stderr, code } = await run.ended;
  expect(code).toBe(0);
  const screen = new Screen(1_000, 200);
  screen.write(stderr);
  const lines = screen.lines();
  const logged = lines.filter((line) => /^\[?\d\d:\d\d:\d\d/.test(line));
  expect(logged.length).toBeGreaterThan(5);
  expect(lines.join("\n")).not.toContain("━");
});
