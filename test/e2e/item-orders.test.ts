import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { expectArchived } from "./archive.js";
import { type Ended, eventually, newPlace, type Place, run, start } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Asked, type Scripted, startProxy } from "./service.js";
import { cheapModel, ids, sheet } from "./sheet.js";
import { isStopped } from "./state.js";

/**
 * What a person wants of items while a process holds the workspace: it is ordered of that process, and the answer comes
 * to the command that gave it, which needs no key.
 */
const begin = ["run", "set.csv", "--yes", "--lanes", "1", "--retries", "0"];

type Handler = (asked: Asked) => Scripted | Promise<Scripted>;

/** A workspace, a sandbox, and a proxy before it that does what is said meanwhile. */
async function openStage(rows = sheet(4)) {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", rows);
  let handler: Handler = () => "serve";
  const service = await startProxy(sandbox, (asked) => handler(asked));
  const say = (next: Handler) => {
    handler = next;
  };
  return { place, sandbox, service, say };
}

type Stage = Awaited<ReturnType<typeof openStage>>;

const pays = ({ what, body }: Asked, id: string) => what === "POST generate" && body.includes(`of ${id}`);

/** Runs the sheet; the answer about a02 is lost, so that it is held, and `act` is done while a04 is being submitted. */
async function whileAtWork({ place, service, say }: Stage, act: () => Promise<void>): Promise<Ended> {
  let cut = false;
  let acted = false;
  say(async (asked): Promise<Scripted> => {
    if (pays(asked, "a02") && !cut) {
      cut = true;
      return "serve and cut";
    }
    if (!pays(asked, "a04") || acted) return "serve";
    acted = true;
    await eventually(async () => ((await stateOf(place, "a02")) === "held" ? true : null));
    await act();
    return "serve";
  });
  const end = await run(place, begin, service);
  expect(acted, end.stderr).toBe(true);
  return end;
}

function inState<Result>(place: Place, use: (db: ReturnType<typeof openSqlite>) => Result): Result {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"), { readonly: true });
  try {
    return use(db);
  } finally {
    db.close();
  }
}

async function stateOf(place: Place, id: string): Promise<string> {
  return inState(place, (db) =>
    db.prepare("SELECT state FROM items WHERE row_id = ?").pluck().get(id),
  ) as string;
}

const waitingOrders = (place: Place) =>
  inState(place, (db) => db.prepare("SELECT count(*) FROM orders WHERE outcome IS NULL").pluck().get());

const outputs = (place: Place) => join(place.folder, "outputs", "set");
const prompts = async ({ sandbox }: Stage) => (await sandbox.tasks()).map(({ prompt }) => prompt).toSorted();
const pictures = (...names: string[]) => names.map((id) => `a picture of ${id}`);
const taskOf = ({ sandbox }: Stage, id: string) =>
  sandbox.madeSoFar().find(({ prompt }) => prompt === `a picture of ${id}`)?.id ?? "";
const goesOn = "run 1, in progress, continues with it";

describe.concurrent("bulkgen resolve while a run is in progress", () => {
  test("--adopt: the running process checks the task and collects it; a task that does not fit is refused", async () => {
    const stage = await openStage();
    const { place } = stage;
    const given: Ended[] = [];
    const adopt = async (task: string) => given.push(await run(place, ["resolve", "a02", "--adopt", task]));
    const end = await whileAtWork(stage, async () => {
      await adopt(crypto.randomUUID());
      await adopt(taskOf(stage, "a01"));
      const foreign = newPlace();
      foreign.write("x.csv", `id,model,prompt\nx,${cheapModel},something else`);
      await run(foreign, ["run", "x.csv", "--yes"], { env: stage.sandbox.env });
      await adopt(stage.sandbox.madeSoFar().find(({ prompt }) => prompt === "something else")?.id ?? "");
      expect(await stateOf(place, "a02")).toBe("held");
      await adopt(taskOf(stage, "a02"));
    });
    const [unknown, owned, other, fits] = given;
    expect(unknown).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("TASK_NOT_FOUND") });
    expect(owned).toMatchObject({ code: 2, stderr: expect.stringContaining("already belongs to a01") });
    expect(other?.stderr).toContain('prompt: expected "a picture of a02", got "something else"');
    expect(other?.code).toBe(2);
    const done = `task ${taskOf(stage, "a02")} is now the task of a02; ${goesOn}\n`;
    expect(fits).toMatchObject({ code: 0, stdout: done, stderr: "" });
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(place), ids(4));
    expect(await prompts(stage)).toEqual([...pictures(...ids(4)), "something else"]);
  });

  test("--resubmit: priced and agreed to where it is typed, submitted once by the running process", async () => {
    const stage = await openStage();
    const given: Ended[] = [];
    const end = await whileAtWork(stage, async () => {
      for (const flags of [[], ["--yes", "--max-credits-per-day", "50"], ["--yes"]])
        given.push(await run(stage.place, ["resolve", "a02", "--resubmit", ...flags]));
    });
    const [unasked, done, again] = given;
    expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining("Add --yes") });
    expect(unasked?.stderr).toContain("1 item to be submitted again, 1 credit");
    expect(done).toMatchObject({ code: 0, stdout: `a02 will be submitted again; ${goesOn}\n` });
    expect(done?.stderr).toContain("keeps the daily cap that it was started with");
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("expected held, got planned") });
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(stage.place), ids(4));
    expect(await prompts(stage)).toEqual(pictures("a01", "a02", "a02", "a03", "a04"));
  });

  test("--skip: drops the item; --json says who did it; --if-locked fail still refuses", async () => {
    const stage = await openStage();
    const given: Ended[] = [];
    const end = await whileAtWork(stage, async () => {
      for (const flags of [["--if-locked", "fail"], ["--json"]])
        given.push(await run(stage.place, ["resolve", "a02", "--skip", ...flags]));
    });
    expect(given[0]).toMatchObject({ code: 9, stderr: expect.stringContaining("another run is using") });
    expect(JSON.parse(given[1]?.stdout ?? "")).toEqual({
      run: 1,
      order: "skip",
      done: true,
      process: expect.any(Number),
      message: "a02 is skipped; its possible cost stays counted",
    });
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(stage.place), ["a01", "a03", "a04"]);
  });

  test("an item of another run is resolved, and its own run continues it afterwards", async () => {
    const stage = await openStage(sheet(2));
    const { place, service, say } = stage;
    say((asked) => (pays(asked, "a02") ? "serve and cut" : "serve"));
    expect((await run(place, begin, service)).code).toBe(10);
    let given: Ended | null = null;
    place.write("other.csv", `id,model,prompt\nb01,${cheapModel},a picture of b01`);
    say(async (asked): Promise<Scripted> => {
      if (pays(asked, "b01")) given = await run(place, ["resolve", "a02", "--resubmit", "--yes"]);
      return "serve";
    });
    expect((await run(place, ["run", "other.csv", "--yes"], service)).code).toBe(0);
    expect(given).toMatchObject({
      code: 0,
      stdout:
        "a02 will be submitted again; once run 2, in progress, has ended, continue with `bulkgen resume 1`\n",
    });
    const last = await run(place, ["resume"], service);
    expect(last, last.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(place), ids(2));
    expect(await prompts(stage)).toEqual(pictures("a01", "a02", "a02", "b01"));
  });

  test("of a run that was cancelled is refused where it would pay, and where the process dies is done by the command", async () => {
    const stage = await openStage();
    const { place, service, say } = stage;
    let cancelled: Ended | null = null;
    const end = await whileAtWork(stage, async () => {
      await run(place, ["cancel"]);
      cancelled = await run(place, ["resolve", "a02", "--resubmit", "--yes"]);
    });
    expect(cancelled).toMatchObject({ code: 2, stderr: expect.stringContaining("run 1 was cancelled") });
    expect(end.code, end.stderr).toBe(130);
    expect(await stateOf(place, "a02")).toBe("held");

    place.write("other.csv", `id,model,prompt\nb01,${cheapModel},a picture of b01`);
    let done: Ended | null = null;
    say(async (asked): Promise<Scripted> => {
      if (!pays(asked, "b01") || done) return "serve";
      process.kill(other.pid, "SIGSTOP");
      await eventually(() => (isStopped(other.pid) ? true : null));
      const ordering = start(place, ["resolve", "a02", "--resubmit", "--yes"], service);
      await eventually(() => (waitingOrders(place) === 1 ? true : null));
      process.kill(other.pid, "SIGKILL");
      done = await ordering.ended;
      return "serve";
    });
    const other = start(place, ["run", "other.csv", "--yes"], service);
    expect((await other.ended).signal).toBe("SIGKILL");
    await eventually(() => done);
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("archived") });
    expect(await stateOf(place, "a02")).toBe("archived");
    expect(waitingOrders(place)).toBe(0);
  });
});

describe.concurrent("retry and redo while a run is in progress", () => {
  test("retry: the failed items go on in the same run", async () => {
    const stage = await openStage();
    const { place, service, say } = stage;
    let failed = false;
    const given: Ended[] = [];
    say(async (asked): Promise<Scripted> => {
      if (pays(asked, "a02") && !failed) {
        failed = true;
        return { status: 400, json: { error: { code: "INVALID_REQUEST", message: "no such style" } } };
      }
      if (pays(asked, "a04") && given.length === 0)
        for (const flags of [[], ["--only", "moderation"], ["--yes"], ["--yes"]])
          given.push(await run(place, ["retry", ...flags]));
      return "serve";
    });
    const end = await run(place, begin, service);
    const [unasked, otherKind, done, again] = given;
    expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining("Add --yes") });
    expect(otherKind).toMatchObject({ code: 0, stderr: expect.stringContaining("failed for other reasons") });
    expect(done).toMatchObject({ code: 0, stdout: `1 failed item is planned again; ${goesOn}\n` });
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("no item has failed") });
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(place), ids(4));
    expect(await prompts(stage)).toEqual(pictures(...ids(4)));
  });

  test("redo: the variant is made in the same run, at no more than was agreed to", async () => {
    const stage = await openStage();
    const { place, service, say } = stage;
    let dearer = false;
    const given: Ended[] = [];
    say(async (asked): Promise<Scripted> => {
      if (asked.what === "GET models" && dearer) return modelsAt(3);
      if (!pays(asked, "a04") || given.length > 0) return "serve";
      await eventually(async () => ((await stateOf(place, "a01")) === "archived" ? true : null));
      dearer = true;
      given.push(await run(place, ["redo", "a01", "--yes"]));
      dearer = false;
      given.push(await run(place, ["redo", "a01", "nobody", "--yes"]));
      given.push(await run(place, ["redo", "a01", "--yes"]));
      return "serve";
    });
    const end = await run(place, begin, service);
    const [risen, nobody, done] = given;
    expect(risen).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("expected at most 1 as agreed to, got 3 credits. Nothing was changed."),
    });
    expect(nobody).toMatchObject({ code: 2, stderr: expect.stringContaining('no item "nobody"') });
    expect(done).toMatchObject({ code: 0, stdout: `a01-v2 is planned; ${goesOn}\n` });
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expectArchived(outputs(place), [...ids(4), "a01-v2"]);
    expect(await prompts(stage)).toEqual(pictures("a01", "a01", "a02", "a03", "a04"));
  });
});

function modelsAt(price: number): Scripted {
  const model = {
    model_key: cheapModel,
    model_name: "Mini",
    category: "image",
    credits_cost: price,
    input_type: "text",
    parameters: [],
  };
  const categories = { image: [cheapModel], video: [], audio: [] };
  return { json: { models: [model], categories, total: 1 } };
}

test("a picture is picked while its run is in progress, without waiting for the process", async () => {
  const stage = await openStage();
  const given: Ended[] = [];
  await whileAtWork(stage, async () => {
    await eventually(async () => ((await stateOf(stage.place, "a01")) === "archived" ? true : null));
    for (const name of ["a01", "a04"]) given.push(await run(stage.place, ["pick", name]));
  });
  expect(given).toMatchObject([
    { code: 0, stdout: "a01 is picked\n" },
    { code: 2, stderr: expect.stringContaining("a04 is submitting, and only archived items can be picked") },
  ]);
  expect((await run(stage.place, ["pick"])).stdout).toMatch(/a01 +set +outputs\/set\/a01\.png/);
});
