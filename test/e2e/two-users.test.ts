import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/system.js";
import { expectArchived } from "./archive.js";
import { eventually, newPlace, run, started } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Scripted, startProxy } from "./service.js";
import { ids, sheet } from "./sheet.js";
import { itemCounts } from "./state.js";

const items = 3;
const begin = ["run", "set.csv", "--yes"];

/** A workspace that two users of the service share: Ada, whose key has a second one beside it, and Ben. */
async function openStage(script: (what: string) => Scripted) {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(items));
  const proxy = await startProxy(sandbox, ({ what }) => script(what));
  const throughProxy = (env: Record<string, string>) => ({ ...env, BULKGEN_BASE_URL: proxy.url });
  const ada = proxy.env;
  const adaAgain = throughProxy(await sandbox.keyOf("second"));
  const ben = throughProxy(await sandbox.keyOf("ben's", "ben@example.com"));
  const as = (env: Record<string, string>, ...words: string[]) => run(place, words, { env });
  const status = async (number: number) =>
    JSON.parse((await run(place, ["status", String(number), "--json"])).stdout || "null") as Facts | null;
  const runs = async () => {
    const all = await run(place, ["status", "--all", "--json"]);
    return (JSON.parse(all.stdout) as { runs: unknown[] }).runs.length;
  };
  /** How often a key was used for tasks. */
  const tasksAsked = (env: Record<string, string>) =>
    proxy.asked.filter(
      ({ what, headers }) =>
        ["GET task", "POST generate"].includes(what) &&
        headers.authorization === `Bearer ${env["BULKGEN_API_KEY"]}`,
    ).length;
  return { sandbox, place, ada, adaAgain, ben, as, status, runs, tasksAsked };
}

interface Facts {
  state: string;
  counts: Record<"planned" | "submitting" | "processing" | "archived" | "held", number>;
}

/** Ada's run was interrupted while all of its tasks were at the service. */
async function interrupted() {
  let isSlow = true;
  const slow = { status: 500, json: { error: { code: "INTERNAL_ERROR", message: "busy" } } };
  const stage = await openStage((what) => (isSlow && what === "GET task" ? slow : "serve"));
  const running = started(stage.place, begin, { env: stage.ada, clock: systemClock });
  await eventually(() => (itemCounts(stage.place)?.["processing"] === items ? true : null));
  running.interrupt();
  expect((await running.ended).code).toBe(130);
  isSlow = false;
  return stage;
}

describe.concurrent("P2: a run that its user left with tasks at the service", () => {
  test("is not taken over by another user, and continues with a new key of its own user", async () => {
    const { sandbox, place, adaAgain, ben, as, status, runs, tasksAsked } = await interrupted();
    const before = await status(1);
    place.write("made/a01.png", "");
    const told =
      /Run 1 of set is unfinished and another user's: expected user (\S+) at \S+, got user (?!\1)\S+ at .*`bulkgen resume 1`/;
    const planned = await as(ben, "plan", "set.csv");
    expect(planned.code, planned.stderr).toBe(2);
    expect(planned.stdout.replace(/\s+/g, " ")).toMatch(told);
    for (const words of [begin, [...begin, "--first", "1"], ["adopt", "made", "set.csv"]]) {
      const refused = await as(ben, ...words);
      expect(refused.code, refused.stderr).toBe(2);
      expect(refused.stderr).toMatch(told);
    }
    expect(await status(1)).toEqual(before);
    expect([await runs(), tasksAsked(ben), sandbox.madeSoFar().length]).toEqual([1, 0, items]);

    const resumed = await as(adaAgain, ...begin);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect([(await status(1))?.counts.archived, sandbox.madeSoFar().length]).toEqual([items, items]);
    // What is finished is not made on another account before its user agrees.
    const paysAgain =
      /Run 1 of set was made as user (\S+) at \S+, and this key is of user (?!\1)\S+ at \S+: what was made there would be made and paid for again: 3 of 3 items, for 3 credits\. Set a key and an address of that user; or add --job set to pay again/;
    expect((await as(ben, "plan", "set.csv")).stdout.replace(/\s+/g, " ")).toMatch(paysAgain);
    expect(await as(ben, ...begin)).toMatchObject({ code: 2, stderr: expect.stringMatching(paysAgain) });
    place.write("renamed.csv", sheet(items));
    expect(await as(ben, "run", "renamed.csv", "--yes")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("made and paid for again: 3 of 3 items"),
    });
    const own = await as(ben, ...begin, "--job", "set");
    expect(own, own.stderr).toMatchObject({ code: 0 });
    expect(own.stderr.replace(/\s+/g, " ")).toContain("what was made there is made and paid for again");
    expect((await as(ben, "plan", "set.csv")).stdout).not.toContain("paid for again");
    expect([await runs(), sandbox.madeSoFar().length]).toEqual([2, 2 * items]);
  });

  test.each([
    { way: "another edition", before: [], flags: ["--edition", "ben"] },
    { way: "a workspace of its own", before: [], flags: ["--workspace", "ben"] },
    { way: "after it was cancelled", before: ["cancel", "1"], flags: ["--job", "set"] },
  ])("lets another user make the sheet in $way, and is collected all the same", async ({ before, flags }) => {
    const { sandbox, place, ada, ben, as, status, tasksAsked } = await interrupted();
    mkdirSync(join(place.folder, "ben"));
    if (before.length > 0) expect((await as(ben, ...before)).code).toBe(0);
    const own = await as(ben, ...begin, ...flags);
    expect(own, own.stderr).toMatchObject({ code: 0 });
    expect(own.stdout).toContain(`${items} of ${items} items`);
    expect((await status(1))?.counts).toMatchObject({ processing: items, archived: 0 });
    const asked = tasksAsked(ben);
    const resumed = await as(ada, "resume", "1");
    expect(resumed.stderr).not.toContain("another");
    expect((await status(1))?.counts).toMatchObject({ processing: 0, archived: items });
    expect([tasksAsked(ben), sandbox.madeSoFar().length]).toEqual([asked, 2 * items]);
  });
});

test("P2: another address of the same service pays for nothing again before its user agrees", async () => {
  const { sandbox, place, ada, as } = await openStage(() => "serve");
  expect((await as(ada, ...begin)).code).toBe(0);
  const moved = {
    ...ada,
    BULKGEN_BASE_URL: (ada["BULKGEN_BASE_URL"] ?? "").replace("127.0.0.1", "localhost"),
  };
  expect(await as(moved, ...begin)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /Run 1 of set was made by the same user at \S+127\.0\.0\.1\S+, and the address is \S+localhost\S+ now: .*BULKGEN_BASE_URL.*--job set/,
    ),
  });
  place.write("renamed.csv", sheet(items));
  for (const words of [["run", "renamed.csv", "--yes"], begin])
    expect(await as(moved, ...words)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /made and paid for again: 3 of 3 items, for 3 credits.*account --same-service http:\/\/127\.0\.0\.1/,
      ),
    });
  expect(sandbox.madeSoFar()).toHaveLength(items);
  place.write("set.csv", sheet(items + 1));
  expect((await as(ada, ...begin)).code).toBe(0);
  expect((await as(moved, ...begin, "--job", "set")).code).toBe(0);
  expect((await as(moved, ...begin)).code).toBe(0);
  expect(sandbox.madeSoFar()).toHaveLength(2 * (items + 1));
});

test("P6: an item that is held for one user is left to them by another user's run of the sheet", async () => {
  let isLost = true;
  const { sandbox, place, ada, ben, as, status } = await openStage((what) =>
    isLost && what === "POST generate" ? "serve and cut" : "serve",
  );
  place.write("set.csv", sheet(1));
  expect((await as(ada, ...begin)).code).toBe(10);
  const [lost] = sandbox.madeSoFar();
  isLost = false;
  expect((await as(ben, ...begin)).code).toBe(2);
  const own = await as(ben, ...begin, "--job", "set");
  expect(own, own.stderr).toMatchObject({ code: 0 });
  expect((await status(1))?.counts.held).toBe(1);
  const theirs = await as(ben, "resolve", "1:a01", "--resubmit", "--yes");
  expect(theirs).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /belongs to another account .* Set a key of user \S+ and the address \S+\.\n$/,
    ),
  });
  const adopted = await as(ada, "resolve", "1:a01", "--adopt", lost?.id ?? "");
  expect(adopted, adopted.stderr).toMatchObject({ code: 0 });
  expect(sandbox.madeSoFar()).toHaveLength(2);
  expectArchived(join(place.folder, "outputs", "set"), [...ids(1), ...ids(1)]);
});
