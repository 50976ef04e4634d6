import { mkdirSync, mkdtempSync, realpathSync, symlinkSync } from "node:fs";
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
  await store.close();
  const moved = openWorkspace({ stateFile: file, root }, new ManualClock());
  const run = await moved.run("newest");
  await moved.close();
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

test("P18: a path inside the workspace is stored relative to it under any name that its folder has", async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-paths-")));
  mkdirSync(join(base, "one"));
  symlinkSync(join(base, "one"), join(base, "link"));
  const from = join(base, "link");
  const paths = { manifest: join(base, "one", "set.csv"), outFolder: join(base, "link", "outputs") };
  expect(await movedTo("/two", from, paths)).toEqual({ manifest: "/two/set.csv", outFolder: "/two/outputs" });
});
