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
