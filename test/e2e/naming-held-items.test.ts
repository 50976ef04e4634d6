import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Asked, type Scripted, startProxy } from "./service.js";
import { sheet } from "./sheet.js";

/** A workspace whose answers about a02 are lost as often as is said. */
async function openStage(lost: number) {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(2));
  const asked: Asked[] = [];
  let cuts = 0;
  const service = await startProxy(sandbox, (one): Scripted => {
    asked.push(one);
    const isLost = one.what === "POST generate" && one.body.includes("of a02") && cuts++ < lost;
    return isLost ? "serve and cut" : "serve";
  });
  const call = (...words: string[]) => run(place, words, service);
  const taskIds = () => sandbox.madeSoFar().filter(({ prompt }) => prompt === "a picture of a02");
  return { place, call, taskIds, asked };
}

const begin = ["run", "set.csv", "--yes", "--lanes", "1"];

describe.concurrent("a held item is found by its row id", () => {
  test("also when a newer edition has archived the same row", async () => {
    const { call, taskIds } = await openStage(1);
    expect((await call(...begin)).code).toBe(10);
    expect((await call(...begin, "--edition", "long")).code).toBe(0);
    const [lost] = taskIds();
    const end = await call("resolve", "a02", "--adopt", lost?.id ?? "");
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse((await call("status", "1", "--json")).stdout).counts).toMatchObject({ archived: 2 });
    const none = await call("resolve", "a02", "--skip");
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining("got archived for a02") });
  });

  test("where two editions or jobs have one of that name, they are named and one has to be chosen", async () => {
    const { place, call, taskIds } = await openStage(3);
    await call(...begin);
    await call(...begin, "--edition", "long");
    place.write("other.csv", sheet(2).replaceAll("a picture", "another picture"));
    await call("run", "other.csv", "--yes", "--lanes", "1");
    const several = await call("resolve", "a02", "--skip");
    expect(several.code).toBe(2);
    expect(several.stderr).toContain(
      [
        '3 held items are called "a02"; name one of them:',
        "  3:a02  job other, run 3, first edition, row 3",
        "  2:a02  job set, run 2, edition long, row 3",
        "  1:a02  job set, run 1, first edition, row 3",
      ].join("\n"),
    );
    const heldOf = async (number: number) =>
      JSON.parse((await call("status", String(number), "--json")).stdout).counts.held;
    expect((await call("resolve", "2:a02", "--skip")).code).toBe(0);
    expect([await heldOf(1), await heldOf(2), await heldOf(3)]).toEqual([1, 0, 1]);
    const [first] = taskIds();
    expect(await call("resolve", "1:a02", "--adopt", first?.id ?? "")).toMatchObject({ code: 0 });
    expect([await heldOf(1), await heldOf(3)]).toEqual([0, 1]);
    expect((await call("resolve", "a02", "--skip")).code).toBe(0);
    expect(await heldOf(3)).toBe(0);
    expect(await call("resolve", "4:a02", "--skip")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("RUN:ROW-ID"),
    });
  });

  test("and where a row was changed, its old and its new item are distinguished by their keys", async () => {
    const { place, call } = await openStage(2);
    await call(...begin);
    place.write("set.csv", sheet(2).replace("a picture of a02", "another picture of a02"));
    const changed = await call(...begin);
    expect(changed.code, changed.stderr).toBe(10);
    const several = await call("resolve", "a02", "--skip");
    const names = [...several.stderr.matchAll(/^ {2}(\S+) {2}job set/gm)].map(([, name]) => name ?? "");
    expect(names, several.stderr).toHaveLength(2);
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(await call("resolve", name, "--skip")).toMatchObject({ code: 0 });
  });
});

test("a task that cannot be adopted is refused in one sentence, and an empty id sends no request", async () => {
  const { call, asked } = await openStage(1);
  await call(...begin);
  const unknown = await call("resolve", "a02", "--adopt", crypto.randomUUID());
  expect(unknown).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/[^.]\. Nothing was changed\.\n$/),
  });
  asked.length = 0;
  const empty = await call("resolve", "a02", "--adopt", "");
  expect(empty).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("expected a task id, got nothing"),
  });
  expect(asked).toEqual([]);
});

test("P6: a task that another workspace of the account has is not adopted, and its workspace is named", async () => {
  const sandbox = await startSandbox();
  const place = newPlace();
  let isLost = false;
  const { env } = await startProxy(
    sandbox,
    ({ what }): Scripted => (isLost && what === "POST generate" ? "serve and cut" : "serve"),
  );
  for (const folder of ["one", "two"]) place.write(`${folder}/set.csv`, sheet(1));
  const call = (folder: string, ...words: string[]) =>
    run(place, words, { env, cwd: join(place.folder, folder) });
  const first = await call("one", "run", "set.csv", "--yes");
  expect(first, first.stderr).toMatchObject({ code: 0 });
  const [theirs] = sandbox.madeSoFar();
  isLost = true;
  const lost = await call("two", "run", "set.csv", "--job", "set", "--yes");
  expect(lost, lost.stderr).toMatchObject({ code: 10 });
  const own = sandbox.madeSoFar().find(({ id }) => id !== theirs?.id);
  const refused = await call("two", "resolve", "a01", "--adopt", theirs?.id ?? "");
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/already belongs to another workspace \(\S+\/one\); nothing/),
  });
  const adopted = await call("two", "resolve", "a01", "--adopt", own?.id ?? "");
  expect(adopted, adopted.stderr).toMatchObject({ code: 0 });
});
