import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { placeWorkspace } from "../../../src/job/place/place.js";
import { separateWorkspace } from "../../../src/job/place/separate.js";
import { readReceiptHistory } from "../../../src/job/rebuild/receipt-history.js";
import { findWorkspace, type Workspace } from "../../../src/job/workspace/workspace.js";
import { openSqlite } from "../../../src/sqlite.js";
import { openWorkspace } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { runStart } from "../../store/item-fixture.js";

const clock = new ManualClock();
const random = { next: () => 0.5, uuid: () => crypto.randomUUID() };

let base: string;
const at = (...names: string[]) => join(base, ...names);
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-follow-")));
  mkdirSync(at("one"));
});

function find(name: string): Workspace {
  return findWorkspace({ cwd: base, named: name, sandbox: false, env: { XDG_STATE_HOME: at("local") } });
}

function settle(name: string): Workspace {
  const ground = { mounts: "a / ext4 rw", fileSystemNumber: () => null };
  return placeWorkspace({ find: () => find(name), make: true, ground, clock, random, tell: () => {} });
}

const line = (row: string, out: string) =>
  `${JSON.stringify({
    type: "intent",
    at: "2026-01-01T00:00:00.000Z",
    key: `k1:${row}`,
    attempt: 1,
    job: "demo",
    manifest: join(out, "..", "demo.csv"),
    out,
    row,
    request: { model: "picture" },
  })}\n`;

/** A workspace `one` of an earlier version, which kept its paths absolute. */
async function ofBefore(): Promise<void> {
  const { stateFile, receiptsFile } = settle("one");
  const store = openWorkspace({ stateFile, root: at("nowhere") }, clock);
  const manifest = at("one/demo.csv");
  await store.startRun((await store.job("demo")).id, { ...runStart, manifest, outFolder: at("one/outputs") });
  store.close();
  writeFileSync(receiptsFile, line("a", at("one/outputs")));
}

async function pathsIn(workspace: Workspace) {
  const store = openWorkspace(workspace, clock);
  const run = await store.run("newest");
  store.close();
  return { manifest: run?.manifest, outFolder: run?.outFolder };
}

const outsIn = (workspace: Workspace) =>
  readReceiptHistory(workspace).attempts.map(({ intent }) => [intent?.manifest, intent?.out]);
const of = (root: string) => [join(root, "demo.csv"), join(root, "outputs")];

describe("P18: what an earlier version kept absolute follows its workspace", () => {
  test("to where it was moved, from the first look at it on", async () => {
    await ofBefore();
    renameSync(at("one"), at("two"));
    expect(find("two").former).toBe(at("one"));
    expect(outsIn(find("two"))).toEqual([of(at("two"))]);
    expect(Object.values(await pathsIn(find("two")))).toEqual(of(at("two")));
  });

  test("and from there to another place, while what is really elsewhere stays there", async () => {
    await ofBefore();
    renameSync(at("one"), at("two"));
    const { receiptsFile } = settle("two");
    expect(find("two").former).toBeNull();
    // The old place is nothing of this workspace now.
    writeFileSync(receiptsFile, line("b", at("one/outputs")), { flag: "a" });
    const store = openWorkspace(find("two"), clock);
    await store.startRun((await store.job("other")).id, { ...runStart, outFolder: at("one/outputs") });
    store.close();
    expect((await pathsIn(find("two"))).outFolder).toBe(at("one/outputs"));

    renameSync(at("two"), at("three"));
    expect(outsIn(find("three"))).toEqual([of(at("three")), of(at("one"))]);
    settle("three");
    settle("three");
    expect(outsIn(find("three"))).toEqual([of(at("three")), of(at("one"))]);
    expect(readReceiptHistory(find("three"))).toMatchObject({ lines: 4, unreadable: [] });
  });

  test("and a copy, once it is one of its own; the original keeps its own", async () => {
    await ofBefore();
    cpSync(at("one"), at("two"), { recursive: true });
    separateWorkspace(find("two"), { clock, random });
    for (const name of ["one", "two"]) {
      const workspace = settle(name);
      expect(outsIn(workspace)).toEqual([of(at(name))]);
      expect(Object.values(await pathsIn(workspace))).toEqual(of(at(name)));
    }
  });

  test("also where its database cannot be opened at first, nor its copy's", async () => {
    await ofBefore();
    const { stateFile } = find("one");
    const whole = readFileSync(stateFile);
    writeFileSync(stateFile, "no database ".repeat(400));
    cpSync(at("one"), at("copy"), { recursive: true });
    expect(separateWorkspace(find("copy"), { clock, random })).toBe(at("one"));
    renameSync(at("one"), at("two"));
    writeFileSync(settle("two").stateFile, whole);
    expect(find("two").former).toBe(at("one"));
    settle("two");
    expect(find("two").former).toBeNull();
    expect(Object.values(await pathsIn(find("two")))).toEqual(of(at("two")));
  });

  test("and makes no history where there is none", () => {
    settle("one");
    renameSync(at("one"), at("two"));
    settle("two");
    expect(settle("two").former).toBeNull();
  });
});

test("P18: a workspace that is named through a link keeps its own paths relative, also those named without it", async () => {
  await ofBefore();
  symlinkSync(at("one"), at("link"));
  expect(find("link").former).toBeNull();
  expect(outsIn(find("link"))).toEqual([of(at("link"))]);
  await pathsIn(find("link"));
  const db = openSqlite(find("one").stateFile);
  expect(db.prepare("SELECT manifest, out_folder FROM runs").raw().get()).toEqual([
    "./demo.csv",
    "./outputs",
  ]);
  db.prepare("UPDATE runs SET manifest = ?, out_folder = ?").run(of(at("link")));
  db.close();
  expect(Object.values(await pathsIn(find("one")))).toEqual(of(at("one")));
});
