import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openWorkspace } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { runStart } from "../item-fixture.js";

const stateFile = () => join(mkdtempSync(join(tmpdir(), "bulkgen-paths-")), "state.db");

/** What a run that was begun at one root says of its paths at another. */
async function movedTo(root: string, from: string, paths: { manifest: string; outFolder: string }) {
  const file = stateFile();
  const store = openWorkspace({ stateFile: file, root: from }, new ManualClock());
  await store.startRun((await store.job("demo")).id, { ...runStart, ...paths });
  store.close();
  const moved = openWorkspace({ stateFile: file, root }, new ManualClock());
  const run = await moved.run("newest");
  moved.close();
  return { manifest: run?.manifest, outFolder: run?.outFolder };
}

test("paths in the workspace's folder follow it, the folder itself among them", async () => {
  expect(await movedTo("/two", "/one", { manifest: "/one/a/set.csv", outFolder: "/one" })).toEqual({
    manifest: "/two/a/set.csv",
    outFolder: "/two",
  });
});

test("paths elsewhere stay, also beside it and under a name that begins like its own", async () => {
  const paths = { manifest: "-", outFolder: "/one-more/outputs" };
  expect(await movedTo("/two", "/one", paths)).toEqual(paths);
});

test("what was kept absolute follows the folder from the first time it is opened there", async () => {
  const file = stateFile();
  const at = (root: string) => openWorkspace({ stateFile: file, root }, new ManualClock());
  const earlier = at("/elsewhere");
  await earlier.startRun((await earlier.job("demo")).id, { ...runStart, outFolder: "/one/outputs" });
  earlier.close();
  at("/one").close();
  const moved = at("/two");
  expect((await moved.run("newest"))?.outFolder).toBe("/two/outputs");
  moved.close();
});
