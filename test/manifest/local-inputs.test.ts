import { createHash } from "node:crypto";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LocalInputs } from "../../src/manifest/local-inputs.js";
import { folderWith } from "./folder.js";
import { readManifest } from "./read.js";

/** What is found out of these inputs, for a manifest in the folder `job` with `cup.png` beside it. */
async function inputs(...values: string[]) {
  const rows = values.map((image_url) => ({ image_url }));
  const folder = await folderWith({
    "job/job.json": JSON.stringify(rows),
    "job/cup.png": "a cup",
    "job/more/jug.png": "a jug",
    "secret.png": "not for the job",
  });
  await symlink(join(folder, "secret.png"), join(folder, "job", "link.png"));
  const manifest = join(folder, "job", "job.json");
  const local = new LocalInputs(manifest);
  await local.read((await readManifest(manifest)).rows);
  return { folder, found: local.found };
}

const sha256 = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;

test("a local input is identified by its content; its path is relative to the manifest's folder", async () => {
  const { folder, found } = await inputs("cup.png", "./more/jug.png", "https://example.com/x.png");
  expect([...found]).toEqual([
    ["cup.png", { path: join(folder, "job/cup.png"), sha256: sha256("a cup"), bytes: 5, mime: null }],
    [
      "./more/jug.png",
      { path: join(folder, "job/more/jug.png"), sha256: sha256("a jug"), bytes: 5, mime: null },
    ],
  ]);
});

test("a missing file is reported with the nearest name", async () => {
  const { found } = await inputs("more/jgu.png");
  expect(found.get("more/jgu.png")).toMatchObject({
    wrong: "there is no such file",
    nearest: "more/jug.png",
  });
});

test("a path that Windows wrote is reported with the path that is meant", async () => {
  const { found } = await inputs("more\\jug.png");
  expect(found.get("more\\jug.png")).toMatchObject({
    wrong: "there is no such file",
    nearest: "more/jug.png",
  });
});

test.each([["../secret.png"], ["/etc/hostname"], ["link.png"], ["more/../../secret.png"]])(
  "%s leads out of the manifest's folder and is refused",
  async (value) => {
    const { found } = await inputs(value);
    expect(found.get(value)).toMatchObject({ wrong: "it lies outside the manifest's folder" });
  },
);

test("a folder is no input", async () => {
  expect((await inputs("more")).found.get("more")).toMatchObject({ wrong: "it is not a file" });
});
