import { join } from "node:path";
import { expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { startProxy } from "./service.js";
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

  for (const again of [["resume"], ["run", "set.csv", "--yes"]]) {
    const end = await run(place, again, proxy);
    expect(end.stdout + end.stderr).not.toMatch(/\bat .*\.js:\d+/);
  }
  expect(bodies).toHaveLength(5);
  expectArchived(folder, others);
  const tasks = await sandbox.tasks();
  expect(tasks.map((task) => task.prompt).toSorted()).toEqual(ids(5).map((id) => `a picture of ${id}`));
});

test("P5: one that never arrived is told with when it can be settled, and then it is sent again", async () => {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(3));
  let posts = 0;
  const proxy = await startProxy(sandbox, ({ what }) =>
    what === "POST generate" && ++posts === 2 ? "cut" : "serve",
  );

  const first = await run(place, ["run", "set.csv", "--yes"], proxy);
  expect(first, first.stderr).toMatchObject({ code: 8 });
  expect(first.stdout).toMatch(/unknown +1, whether they were charged is not known yet/);
  expect(first.stdout).toMatch(
    /Next: `bulkgen resume` after \d{4}-\d\d-\d\d \d\d:\d\d UTC finds out whether 1 lost request was charged/,
  );

  const again = ["run", "set.csv", "--yes", "--settle", "wait", "--settle-seconds", "1,2"];
  const second = await run(place, again, proxy);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(posts).toBe(4);
  const tasks = await sandbox.tasks();
  expect(tasks.map((task) => task.prompt).toSorted()).toEqual(ids(3).map((id) => `a picture of ${id}`));
});

test("--orphans resubmit without a bound is refused before anything is sent", async () => {
  const place = newPlace();
  place.write("set.csv", sheet(1));
  const end = await run(place, ["run", "set.csv", "--sandbox", "--yes", "--orphans", "resubmit"]);
  expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining("--orphan-credits N") });
});
