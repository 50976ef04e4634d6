import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { type Ended, newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Scripted, type ScriptedService, startProxy, startService, taskId } from "./service.js";
import { ids, sheet } from "./sheet.js";

test("P2: a paid request with no answer is held, never sent again; the others go on", async () => {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(5));
  const bodies: string[] = [];
  const proxy = await startProxy(sandbox, ({ what, body }) => {
    if (what === "POST generate") bodies.push(body);
    return what === "POST generate" && body.includes("a picture of a03") ? "serve and cut" : "serve";
  });

  const first = await run(place, ["run", "set.csv", "--yes"], proxy);
  expect(first, first.stderr).toMatchObject({ code: 10 });
  expect(first.stdout).toMatch(/held +1,/);
  expect(first.stdout).toMatch(/no answer: .*\(a03\)/);
  const folder = join(place.folder, "outputs", "set");
  const others = ids(5).filter((id) => id !== "a03");
  expectArchived(folder, others);

  // The evidence for the provider's support is in the summary, in status and in every export.
  const hash = createHash("sha256")
    .update(bodies.find((body) => body.includes("a03")) ?? "")
    .digest("hex");
  const evidence = `POST \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d UTC, no answer, body ${hash.slice(0, 12)}`;
  expect(first.stdout).toMatch(new RegExp(`a03: ${evidence}`));
  expect((await run(place, ["status"])).stdout.replace(/\s+/g, " ")).toMatch(new RegExp(evidence));
  const { trouble } = JSON.parse((await run(place, ["status", "--json"])).stdout);
  expect(trouble).toMatchObject([{ rowId: "a03", state: "held", status: null, bodySha256: hash }]);
  const exported = JSON.parse((await run(place, ["export", "--format", "json"])).stdout);
  expect(exported[2]).toMatchObject({
    item: "a03",
    state: "held",
    evidence: expect.stringMatching(new RegExp(`^${evidence}${hash.slice(12)}$`)),
  });
  expect(exported[1]).toMatchObject({ item: "a02", state: "archived", evidence: null });

  for (const again of [["resume"], ["run", "set.csv", "--yes"]]) {
    const end = await run(place, again, proxy);
    expect(end.stdout + end.stderr).not.toMatch(/\bat .*\.c?js:\d+/);
  }
  expect(bodies).toHaveLength(5);
  expectArchived(folder, others);
  const tasks = await sandbox.tasks();
  expect(tasks.map((task) => task.prompt).toSorted()).toEqual(ids(5).map((id) => `a picture of ${id}`));
});

test("P2: one whose row was changed since is not sent again: the new version alone is", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(3, "plain-image"));
  service.script(({ what, body }) =>
    what === "POST generate" && body.includes("a picture of a02") ? "cut" : "serve",
  );
  expect((await run(place, ["run", "set.csv", "--yes"], service)).code).toBe(8);
  service.script(() => "serve");
  place.write("set.csv", place.read("set.csv").replace("a picture of a02", "a cup"));
  const planned = await run(place, ["plan", "set.csv"], service);
  expect(planned.stdout).toMatch(/credits +2 needed/);
  const changed = await run(place, ["run", "set.csv", "--yes", "--settle", "wait"], service);
  expect(changed, changed.stderr).toMatchObject({ code: 0 });
  const made = () => service.made.map(({ prompt }) => prompt);
  expect(made()).toEqual(["a picture of a01", "a picture of a03", "a cup"]);
  place.write("set.csv", place.read("set.csv").replace("a cup", "a picture of a02"));
  const back = await run(place, ["run", "set.csv", "--yes"], service);
  expect(back, back.stderr).toMatchObject({ code: 0 });
  expect(made().slice(3)).toEqual(["a picture of a02"]);
});

test("P5: one that never arrived is reported with the time when it can be settled, and then sent again", async () => {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(3));
  let posts = 0;
  const proxy = await startProxy(sandbox, ({ what }) =>
    what === "POST generate" && ++posts === 2 ? "cut" : "serve",
  );

  const first = await run(place, ["run", "set.csv", "--yes"], proxy);
  expect(first, first.stderr).toMatchObject({ code: 8 });
  expect(first.stdout).toMatch(/unknown +1, not yet known whether charged/);
  expect(first.stdout).toMatch(
    /Next: `bulkgen resume` after \d{4}-\d\d-\d\d \d\d:\d\d UTC checks again, and decides by (\d{4}-\d\d-\d\d )?\d\d:\d\d( UTC)? whether 1 lost request was charged/,
  );

  const planned = await run(place, ["plan", "set.csv"], proxy);
  expect(planned.stdout).toMatch(/credits +0 needed, up to 1 more if 1 request in doubt was not charged, /);

  const again = ["run", "set.csv", "--yes", "--settle", "wait", "--settle-seconds", "1,2"];
  const second = await run(place, again, proxy);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(
    [first, second].map(({ stderr }) => stderr.includes("--settle-seconds decides 2 s after a lost request")),
  ).toEqual([false, true]);
  expect(posts).toBe(4);
  const tasks = await sandbox.tasks();
  expect(tasks.map((task) => task.prompt).toSorted()).toEqual(ids(3).map((id) => `a picture of ${id}`));
});

test("P5: a run does not stay for a reading that it may take tomorrow, and says when", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(1, "plain-image"));
  let isLost = false;
  service.script(({ what }): Scripted => {
    if (what === "POST generate") isLost = true;
    if (what === "GET me" && isLost) return { status: 429, headers: { "Retry-After": "86000" }, json: {} };
    return what === "POST generate" ? "cut" : "serve";
  });
  const end = await run(place, ["run", "set.csv", "--yes", "--lanes", "1"], service);
  expect(end, end.stderr).toMatchObject({ code: 8 });
  const told = /Next: `bulkgen resume` after (\S+ \S+) UTC decides/.exec(end.stdout)?.[1];
  expect(Date.parse(`${told}Z`)).toBeGreaterThan(Date.now() + 80_000_000);
});

test("P5: requests of another workspace of the account are in the spend log and do not weaken the proof", async () => {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("one/set.csv", sheet(3).replaceAll("of a", "of one a"));
  place.write("two/set.csv", sheet(3));
  let other: Ended | null = null;
  const proxy: ScriptedService = await startProxy(sandbox, async ({ what, body }): Promise<Scripted> => {
    if (what !== "POST generate") return "serve";
    if (body.includes("of a01") && other === null)
      other = await run(place, ["run", "set.csv", "--yes"], { ...proxy, cwd: join(place.folder, "one") });
    return body.includes("of a02") ? "serve and cut" : "serve";
  });
  const cwd = join(place.folder, "two");
  const end = await run(place, ["run", "set.csv", "--yes", "--lanes", "1"], { ...proxy, cwd });
  expect(other).toMatchObject({ code: 0 });
  expect(end, end.stderr).toMatchObject({ code: 10 });
  const { trouble } = JSON.parse((await run(place, ["status", "--json"], { cwd })).stdout);
  expect(trouble).toMatchObject([
    { rowId: "a02", state: "held", reason: expect.stringMatching(/^charged, but its task id was lost/) },
  ]);
  expect(await sandbox.tasks()).toHaveLength(6);
});

test("P6: a task of an earlier request of the same item is not adopted for its newest one", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(2, "plain-image"));
  const failed = taskId(900);
  const task = {
    task_id: failed,
    model: "plain-image",
    category: "image",
    credits_consumed: 0,
    input: {},
    output_urls: null,
    error: "the provider is down",
    created_at: new Date().toISOString(),
    completed_at: new Date().toISOString(),
  };
  let posts = 0;
  service.script(({ what, path, body }): Scripted => {
    if (what === "GET task" && path.endsWith(failed)) return { json: { ...task, status: "failed" } };
    if (what !== "POST generate" || !body.includes("a02")) return "serve";
    if (++posts > 1) return "serve and cut";
    return { json: { ...task, external_task_id: "x", status: "processing", credits_remaining: 98 } };
  });
  const end = await run(
    place,
    ["run", "set.csv", "--yes", "--retries", "1", "--settle", "wait", "--settle-seconds", "1,2"],
    service,
  );
  expect(end, end.stderr).toMatchObject({ code: 10 });
  expect(await run(place, ["resolve", "a02", "--adopt", failed], service)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("already belongs to an earlier request of a02; nothing was changed"),
  });
});

test("--orphans resubmit without a bound is refused before anything is sent", async () => {
  const place = newPlace();
  place.write("set.csv", sheet(1));
  const end = await run(place, ["run", "set.csv", "--sandbox", "--yes", "--orphans", "resubmit"]);
  expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining("--orphan-credits N") });
});
