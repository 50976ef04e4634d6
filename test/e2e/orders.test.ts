import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite, type Sqlite } from "../../src/sqlite.js";
import { expectArchived } from "./archive.js";
import { type Ended, eventually, newPlace, type Place, run, start, started } from "./command.js";
import { failedTask, type Scripted, type ScriptedService, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";
import { isStopped } from "./state.js";

const items = 6;
const begin = ["run", "set.csv", "--yes", "--lanes", "1"];

interface Stage {
  place: Place;
  service: ScriptedService;
}

async function openStage(): Promise<Stage> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  return { place, service };
}

/** A run that gets an order while its second paid request is in flight. */
async function ordered({ place, service }: Stage, order: string[], answer: Scripted = "serve") {
  let given: Ended | null = null;
  service.script(async ({ what, before }): Promise<Scripted> => {
    if (what !== "POST generate" || before !== 1) return "serve";
    given = await run(place, order);
    return answer;
  });
  const end = await run(place, begin, service);
  service.script(() => "serve");
  if (given === null) throw new Error(`nothing was ordered: ${end.stderr}`);
  return { given: given as Ended, end };
}

async function status(place: Place) {
  return JSON.parse((await run(place, ["status", "--json"])).stdout);
}

const outputs = (place: Place) => join(place.folder, "outputs", "set");
const prompts = (service: ScriptedService) => service.made.map(({ prompt }) => prompt).toSorted();
const allPrompts = ids(items).map((id) => `a picture of ${id}`);

describe.concurrent("bulkgen pause", () => {
  test("ends the run in progress with 8 once its answers are in; resume continues and pays nothing twice", async () => {
    const stage = await openStage();
    const { given, end } = await ordered(stage, ["pause"]);
    expect(given, given.stderr).toMatchObject({ code: 0, stderr: "" });
    expect(given.stdout).toBe(
      "run 1 is paused: it finishes requests in flight and starts nothing new; continue with `bulkgen resume 1`\n",
    );
    expect(end, end.stderr).toMatchObject({ code: 8 });
    expect(end.stdout).toMatch(/Ended early: the run was paused\nNext: `bulkgen resume` continues/);
    expect(stage.service.made).toHaveLength(2);
    expect(await status(stage.place)).toMatchObject({ state: "paused", resume: "bulkgen resume" });
    expect((await run(stage.place, ["status"])).stdout).toContain("1 of set (set.csv): paused");

    // An order that nobody waits for any more was meant for a process that is gone.
    leaveOrder(stage.place);
    const last = await run(stage.place, ["resume"], stage.service);
    expect(last, last.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(stage.place), ids(items));
    expect(prompts(stage.service)).toEqual(allPrompts);
    const none = await run(stage.place, ["pause"]);
    expect(none).toMatchObject({ code: 0, stdout: "run 1 is finished; nothing is left to pause\n" });
  });

  test("without a running process says so, and marks the run", async () => {
    const stage = await openStage();
    stage.service.script(({ what, before }) =>
      what === "POST generate" && before === 1
        ? { status: 402, json: { error: { code: "INSUFFICIENT_CREDITS", message: "no" } } }
        : "serve",
    );
    expect((await run(stage.place, begin, stage.service)).code).toBe(7);
    const given = await run(stage.place, ["pause", "--json"]);
    expect(given.code, given.stderr).toBe(0);
    expect(JSON.parse(given.stdout)).toMatchObject({ run: 1, order: "pause", done: true, process: null });
    expect(await status(stage.place)).toMatchObject({ state: "paused", alive: false });
  });

  test("is withdrawn by Ctrl-C while the running process does not respond", async () => {
    const { place, service } = await openStage();
    const stopped: { pid: number } = { pid: 0 };
    let given: Ended | null = null;
    service.script(async ({ what, before }): Promise<Scripted> => {
      if (what !== "POST generate" || before !== 1) return "serve";
      process.kill(stopped.pid, "SIGSTOP");
      await eventually(() => (isStopped(stopped.pid) ? true : null));
      const pause = start(place, ["pause"]);
      await eventually(() => (waitingOrders(place) === 1 ? true : null));
      pause.signal("SIGINT");
      given = await pause.ended;
      process.kill(stopped.pid, "SIGCONT");
      return "serve";
    });
    const first = start(place, begin, service);
    stopped.pid = first.pid;
    const end = await first.ended;
    expect(given).toMatchObject({ code: 130, stderr: expect.stringContaining("was withdrawn") });
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(place), ids(items));
  });

  test.each([
    [["pause"], "no runs in"],
    [["cancel", "7"], "no runs in"],
  ])("%j in a folder without runs is refused", async (args, message) => {
    const place = newPlace();
    expect(await run(place, args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(place.files()).toEqual([]);
  });
});

/** Two runs that ended at their caps. */
async function twoUnfinished() {
  const service = await startService();
  const place = newPlace();
  for (const name of ["one", "two"]) {
    place.write(`${name}.csv`, sheet(2, "plain-image").replaceAll("a picture", `${name}: a picture`));
    const ended = await run(place, ["run", `${name}.csv`, "--yes", "--max-credits", "2"], service);
    expect(ended, ended.stderr).toMatchObject({ code: 6 });
  }
  return { service, place };
}

describe.concurrent("where several runs are unfinished and none is in progress", () => {
  test.each(["pause", "cancel"])("%s without a number names them and changes nothing", async (order) => {
    const { place } = await twoUnfinished();
    const refused = await run(place, [order]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toMatch(
      /no run is in progress, and 2 could be meant:\n {2}run 2 of two \(two\.csv\)/,
    );
    for (const number of [1, 2]) expect(refused.stderr).toContain(`\`bulkgen ${order} ${number}\``);
    expect(await status(place)).toMatchObject({ state: "interrupted" });
    expect((await run(place, [order, "1"])).stdout).toMatch(/^run 1 is (paused|cancelled)/);
  });

  test.each(["pause", "cancel"])(
    "%s without a number means the only one that is not cancelled",
    async (order) => {
      const { place } = await twoUnfinished();
      // The newer run is cancelled, with a task still at the service.
      inState(place, (db) => {
        db.exec("UPDATE runs SET state = 'cancelled' WHERE id = 2");
        for (const state of ["submitting", "processing"])
          db.exec(`UPDATE items SET state = '${state}' WHERE run_id = 2 AND state <> 'archived'`);
      });
      expect((await run(place, [order])).stdout).toMatch(/^run 1 is (paused|cancelled)/);
    },
  );

  test("cancel asks on a terminal", async () => {
    const { place, service } = await twoUnfinished();
    const asked = started(place, ["cancel"], { ...service, columns: 100, keyboard: true });
    await asked.prints(/Which run\? \[2\/1\]/);
    asked.type("1\n");
    expect(await asked.ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("run 1 is cancelled"),
    });
    expect(await status(place)).toMatchObject({ run: 2, state: "interrupted" });
  });
});

describe.concurrent("bulkgen cancel", () => {
  test("submits nothing more and collects what was paid for; the sheet run again pays for the rest alone", async () => {
    const stage = await openStage();
    const { place, service } = stage;
    const { given, end } = await ordered(stage, ["cancel"]);
    expect(given, given.stderr).toMatchObject({ code: 0 });
    expect(given.stdout).toMatch(/^run 1 is cancelled: 4 items not submitted; .* still collected/);
    expect(end, end.stderr).toMatchObject({ code: 130 });
    expect(end.stdout).toContain("Ended early: the run was cancelled");
    expect(service.made).toHaveLength(2);
    expectArchived(outputs(place), ids(2));
    expect(await status(place)).toMatchObject({
      state: "cancelled",
      resume: null,
      counts: { archived: 2, dropped: 4, planned: 0 },
    });
    expect(await run(place, ["resume"], service)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("nothing to resume"),
    });
    expect((await run(place, ["cancel", "1"])).stdout).toContain("run 1 is cancelled; nothing is left");
    expect(await run(place, ["cancel", "9"])).toMatchObject({ code: 2 });

    const again = await run(place, begin, service);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(prompts(service)).toEqual(allPrompts);
    expect((await status(place)).run).toBe(2);
  });

  test("does not submit again what was in flight and refused", async () => {
    const stage = await openStage();
    const error = { code: "RATE_LIMITED", message: "later" };
    const busy = { status: 429, json: { error }, headers: { "retry-after": "1" } };
    const { end } = await ordered(stage, ["cancel"], busy);
    expect(end, end.stderr).toMatchObject({ code: 130 });
    expect(stage.service.made).toHaveLength(1);
    expectArchived(outputs(stage.place), ids(1));
    const again = await run(stage.place, begin, stage.service);
    expect(again, again.stderr).toMatchObject({ code: 0 });
    expect(prompts(stage.service)).toEqual(allPrompts);
  });

  test("of a crashed run drops the rest; resume collects what is at the service, and nothing else", async () => {
    const { place, service } = await cutOff();
    const { made } = service;
    const paid = made.length;
    const given = await run(place, ["cancel"]);
    expect(given.stdout).toMatch(/`bulkgen resume 1` collects the \d items? at the service/);
    expect(await status(place)).toMatchObject({ state: "cancelled", resume: "bulkgen resume" });
    const last = await run(place, ["resume"], service);
    expect([0, 10], last.stderr).toContain(last.code);
    expect(service.made).toHaveLength(paid);
    expect(await status(place)).toMatchObject({ state: "cancelled", resume: null });
  });

  test("P2: of a crashed run submits nothing again on resume that fails at the provider; the next run does", async () => {
    const { place, service } = await cutOff();
    const paid = service.made.length;
    await run(place, ["cancel"]);
    service.script(({ what, path }): Scripted => {
      const failed = service.made.slice(0, paid).find(({ task }) => path.endsWith(task));
      return what === "GET task" && failed ? { json: failedTask(failed) } : "serve";
    });
    const last = await run(place, ["resume"], service);
    expect(service.made).toHaveLength(paid);
    // Where it was cut off in mid-request, one item more is unknown or held.
    expect([0, 8, 10], last.stderr).toContain(last.code);
    expect(last.stdout).toMatch(
      /items? not submitted again; the next run of set submits what its manifest lists/,
    );
    expect(await status(place)).toMatchObject({ state: "cancelled", resume: null });
    const again = await run(place, [...begin, "--max-credits", "100"], service);
    expect([0, 10], again.stderr).toContain(again.code);
    expect(new Set(prompts(service))).toEqual(new Set(allPrompts));
  });
});

/** A run that was killed with paid tasks at the service, which serves everything from now on. */
async function cutOff(): Promise<Stage> {
  const stage = await openStage();
  stage.service.script(({ what, before }): Scripted => {
    if (what === "GET task" && before === 0) first.signal("SIGKILL");
    return "serve";
  });
  const first = start(stage.place, begin, stage.service);
  await first.ended;
  stage.service.script(() => "serve");
  return stage;
}

function waitingOrders(place: Place): number {
  return inState(place, (db) =>
    db.prepare("SELECT count(*) FROM orders WHERE outcome IS NULL").pluck().get(),
  ) as number;
}

function leaveOrder(place: Place): void {
  inState(place, (db) =>
    db.prepare("INSERT INTO orders (run_id, given_at, what) VALUES (1, 0, ?)").run('{"do":"pause"}'),
  );
}

function inState<Result>(place: Place, use: (db: Sqlite) => Result): Result {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
  try {
    return use(db);
  } finally {
    db.close();
  }
}
