import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { foundJson, foundTable } from "../../../src/report/find.js";
import { type FindQuery, findOutputs } from "../../../src/upkeep/archive/find.js";
import { createIdentity } from "../../../src/workspace/identity.js";
import { findWorkspace } from "../../../src/workspace/workspace.js";
import { media } from "../../archive/media.js";
import { type ArchivedPlace, archivedPlace } from "../archived-place.js";

let place: ArchivedPlace;
beforeAll(async () => {
  place = await archivedPlace();
  const [png, jpeg, gif] = await Promise.all([media.png(), media.jpeg(), media.gif()]);
  await place.archive("cup", [png], { prompt: "A red CAFÉ cup", params: { style: "dusk" } });
  place.clock.advance(86_400_000);
  await place.archive("leaf", [jpeg, gif], { prompt: "a leaf\u001b[2J falls", model: "flux" });
});
afterAll(() => place.close());

async function found(wanted: Partial<FindQuery>): Promise<string[]> {
  const { newest } = await findOutputs(place.workspace, { params: {}, ...wanted }, place.clock);
  return newest.map((output) => output.file);
}

describe("what is found in the archive", () => {
  test.each([
    [{ text: "cup red" }, ["cup.png"]],
    [{ text: "cafe\u0301" }, ["cup.png"]],
    [{ text: "leaf-2" }, ["leaf-2.gif"]],
    [{ text: "cup leaf" }, []],
    [{ model: "flux" }, ["leaf-1.jpg", "leaf-2.gif"]],
    [{ params: { style: "dusk" } }, ["cup.png"]],
    [{ params: { style: "dawn" } }, []],
    [{ since: Date.UTC(2026, 0, 2) }, ["leaf-1.jpg", "leaf-2.gif"]],
    [{ until: Date.UTC(2026, 0, 2) }, ["cup.png"]],
    [{}, ["leaf-1.jpg", "leaf-2.gif", "cup.png"]],
  ] as [Partial<FindQuery>, string[]][])("%j: %j", async (wanted, files) => {
    expect(await found(wanted)).toEqual(files);
  });

  test("the newest are kept of more, and all counted", async () => {
    const kept = (most: number) => findOutputs(place.workspace, { params: {} }, place.clock, most);
    const files = ["leaf-1.jpg", "leaf-2.gif", "cup.png"];
    for (const most of [0, 1, 2, 3, 4]) {
      const { newest, count } = await kept(most);
      expect([newest.map(({ file }) => file), count]).toEqual([files.slice(0, most), 3]);
    }
  });

  test("a file leads back to its row, also as a copy under another name, and also when it was changed", async () => {
    const copy = join(place.workspace.root, "from a mail.jpeg");
    copyFileSync(join(place.folder, "leaf-1.jpg"), copy);
    expect(await found({ text: copy })).toEqual(["leaf-1.jpg"]);
    writeFileSync(join(place.folder, "leaf-2.gif"), "spoiled");
    expect(await found({ text: join(place.folder, "leaf-2.gif") })).toEqual(["leaf-2.gif"]);
    writeFileSync(copy, "of nobody");
    expect(await found({ text: copy })).toEqual([]);
  });

  test("a workspace that was never used is told how to begin", async () => {
    const root = join(place.workspace.root, "new");
    const workspace = findWorkspace({ cwd: root, named: root, sandbox: false, env: {} });
    await expect(findOutputs(workspace, { params: {} }, place.clock)).rejects.toThrow(
      `no runs in ${root}: it is not a workspace yet`,
    );
  });

  test("P2: a workspace whose database is gone while its archive is there is lost, not empty", async () => {
    const workspace = { ...place.workspace, stateFile: join(place.workspace.root, "none.db") };
    createIdentity(workspace.markerFolder, { id: "w1", state: null, host: "here", why: null });
    await expect(findOutputs(workspace, { params: {} }, place.clock)).rejects.toThrow(
      /none\.db is missing, but the archive in .*outputs has files that it recorded: expected both or neither/,
    );
    // What lies outside may be another workspace's.
    const elsewhere = { ...workspace, root: join(place.workspace.root, "other") };
    await expect(findOutputs(elsewhere, { params: {} }, place.clock)).rejects.toThrow("no runs in ");
  });
});

test("P24: the table shows no control characters; JSON has the whole row", async () => {
  const found = await findOutputs(place.workspace, { params: {}, text: "leaf-1" }, place.clock);
  const text = foundTable(found);
  expect(text).toContain("3 (leaf)");
  expect(text).not.toContain("\u001b");
  expect(foundTable({ newest: [], count: 0 })).toBe("nothing found");
  // What was looked for is the file: its name is not cut, however narrow the terminal.
  const [first] = found.newest;
  const lines = foundTable(found, { width: 50, colour: false }).split("\n");
  expect(lines[0]).toBe(first?.path);
  expect(lines[1]).toMatch(/^ {2}row 3 \(leaf\), /);
  expect(lines.join("\n")).not.toContain("…");
  expect(foundTable({ ...found, count: 11 })).toContain("and 10 more files: --json");
  expect(found.newest.map(foundJson)).toMatchObject([
    {
      job: "demo",
      run: 1,
      rowNumber: 3,
      rowId: "leaf",
      model: "flux",
      output: 1,
      taskId: "task-leaf",
      credits: 4,
      savedAt: "2026-01-02T00:00:00.000Z",
      mime: "image/jpeg",
      check: "decoded",
    },
  ]);
});
