import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { takeLock } from "../../../src/store/lock.js";
import { openWorkspace } from "../../../src/store/workspace/workspace.js";
import { placeOfState } from "../../../src/upkeep/doctor/machine.js";
import { readIdentity } from "../../../src/workspace/identity.js";
import {
  type PlaceOptions,
  placeWorkspace,
  separateWorkspace,
} from "../../../src/workspace/state-folder/state-folder.js";
import { findWorkspace, type Workspace } from "../../../src/workspace/workspace.js";
import { systemError } from "../../archive/watched-disk.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../../store/item-fixture.js";

const clock = new ManualClock();
const random = { next: () => 0.5, uuid: () => crypto.randomUUID() };

/** The workspaces lie on one file system and the local state folder on another. */
let base: string;
let told: string[];
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-settle-")));
  told = [];
  for (const name of ["share", "local"]) mkdirSync(join(base, name));
});

function mounts(share: string, local = "ext4"): string {
  const table = [
    `a / ext4 rw`,
    `b ${join(base, "share")} ${share} rw`,
    `c ${join(base, "local")} ${local} rw`,
  ];
  return table.join("\n");
}

function find(name: string, sandbox = false): Workspace {
  const root = join(base, "share", name);
  mkdirSync(root, { recursive: true });
  return findWorkspace({ cwd: root, named: root, sandbox, env: { XDG_STATE_HOME: join(base, "local") } });
}

function settle(name: string, type: string, change: Partial<PlaceOptions> & { sandbox?: boolean } = {}) {
  const { sandbox = false, ...rest } = change;
  return placeWorkspace({
    find: () => find(name, sandbox),
    mounts: mounts(type),
    make: true,
    clock,
    random,
    tell: (line) => told.push(line),
    ...rest,
  });
}

/** A workspace with a history: one item that was submitted, in the database and in the receipts. */
async function used(workspace: Workspace): Promise<void> {
  const store = openWorkspace(workspace, clock);
  const run = await store.startRun((await store.job("demo")).id, runStart);
  await store.enroll(run.id, [newItem("a"), newItem("b")]);
  await store.close();
  writeFileSync(workspace.receiptsFile, '{"type":"intent"}\n');
}

async function itemsIn(workspace: Workspace): Promise<string[]> {
  const store = openWorkspace(workspace, clock);
  const ids = (await store.itemsOf("demo")).map((item) => item.rowId);
  await store.close();
  return ids;
}

describe("P18: the state of a workspace", () => {
  test("stays in the folder where a database can be trusted", () => {
    const workspace = settle("plain", "ext4");
    expect(workspace.stateFile).toBe(join(base, "share", "plain", ".bulkgen", "state.db"));
    expect(told).toEqual([]);
    expect(readdirSync(workspace.markerFolder)).toEqual(["workspace.json"]);
  });

  test.each(["nfs4", "cifs", "fuse.sshfs"])(
    "moves automatically from %s, says so once, and is found",
    (type) => {
      const workspace = settle("remote", type);
      const { id } = readIdentity(workspace.markerFolder) ?? { id: "" };
      const state = join(base, "local", "bulkgen", "workspaces", id);
      expect(workspace.stateFile).toBe(join(state, "state.db"));
      expect(workspace.receiptsFile).toBe(join(state, "receipts.jsonl"));
      expect(workspace.lockFile).toBe(join(state, "run.lock"));
      expect(workspace.outFolder).toBe(join(base, "share", "remote", "outputs"));
      expect(told).toEqual([expect.stringContaining(`is kept in ${state}: ${workspace.root}`)]);
      expect(told[0]).toContain(`(${type}); outputs stay`);
      expect(settle("remote", type)).toEqual(workspace);
      expect(find("remote", true).stateFile).toBe(join(state, "sandbox", "state.db"));
      expect(told).toHaveLength(1);
      expect(placeOfState(workspace, mounts(type))).toMatchObject({
        state: "ok",
        got: `the state is in ${state}: ${workspace.root} is on ${type}`,
      });
    },
  );

  test("moves from a synced folder with its history, and leaves nothing that is taken for one", async () => {
    const before = find("Dropbox/jobs");
    await used(before);
    const workspace = settle("Dropbox/jobs", "ext4");
    expect(await itemsIn(workspace)).toEqual(["a", "b"]);
    expect(readFileSync(workspace.receiptsFile, "utf8")).toBe('{"type":"intent"}\n');
    expect(existsSync(before.stateFile)).toBe(false);
    expect(existsSync(before.receiptsFile)).toBe(false);
    expect(readdirSync(before.markerFolder)).toContain("state.db.moved");
    expect(told[0]).toContain("(Dropbox)");
  });

  test.each([
    ["ENOSPC", "free some space for"],
    ["EROFS", "make"],
  ])(
    "P18: that cannot be written (%s) is told of; one with a history is not to be left for another",
    async (code, todo) => {
      const locks = () => {
        throw systemError(code);
      };
      const { markerFolder } = find("plain");
      const message = `cannot be written (${code}). Nothing was sent. To continue, ${todo} ${markerFolder}`;
      expect(() => settle("plain", "squashy", { locks })).toThrow(message);
      expect(() => settle("plain", "squashy", { locks })).toThrow("--workspace");
      await used(find("plain"));
      expect(() => settle("plain", "squashy", { locks })).toThrow(message);
      expect(() => settle("plain", "squashy", { locks })).not.toThrow("--workspace");
    },
  );

  test("is not moved while a process uses it", async () => {
    const before = find("Dropbox/jobs");
    await used(before);
    const lock = takeLock(before.lockFile);
    expect(() => settle("Dropbox/jobs", "ext4")).toThrow("another run is using the workspace");
    lock?.release();
    expect(await itemsIn(before)).toEqual(["a", "b"]);
  });

  test("moves where locks do not work", () => {
    const locks = (folder: string) => (folder.includes("share") ? "it was granted to both" : null);
    expect(settle("plain", "squashy", { locks }).stateFile).toContain(join("local", "bulkgen"));
    expect(told[0]).toContain("(locks do not work: it was granted to both)");
  });

  test("stays, with its locks untested, on a disk whose locks are known to work", () => {
    const locks = () => "it was granted to both";
    expect(settle("plain", "ext4", { locks }).stateFile).toContain(join("share", "plain"));
  });

  test("stays on a network where the home is on one too, if only its locks work", () => {
    const options = { mounts: mounts("nfs4", "nfs4"), locks: () => null };
    expect(settle("remote", "", options).stateFile).toContain(join("share", "remote"));
    const remote = (folder: string) => (folder.includes("share") ? "it was granted to both" : null);
    expect(settle("remote", "", { ...options, locks: remote }).stateFile).toContain(join("local", "bulkgen"));
    const none = { locks: () => "it was granted to both" };
    expect(() => settle("plain", "", { ...none, mounts: mounts("squashy", "squashy") })).toThrow(
      "no folder is safe for this workspace's state",
    );
    expect(() => settle("other", "", { ...options, ...none })).toThrow(/: nfs4; nor is .* \(nfs4\)/);
  });

  test("is not made by a command that only continues a run", () => {
    expect(settle("plain", "nfs4", { make: false }).stateFile).toContain(join("share", "plain"));
    expect(readdirSync(join(base, "share", "plain"))).toEqual([]);
  });

  test("of a rehearsal leaves nothing outside its folder, unless it cannot be kept there", () => {
    settle("plain", "ext4", { sandbox: true });
    expect(existsSync(join(base, "local", "bulkgen", "workspaces"))).toBe(false);
    expect(settle("remote", "nfs4", { sandbox: true }).serviceFile).toContain(join("local", "bulkgen"));
  });

  test("of another workspace, named by a folder from elsewhere, is not followed", () => {
    const { markerFolder, stateFile } = settle("mine", "nfs4");
    const { id, state } = readIdentity(markerFolder) ?? { id: "", state: null };
    const strange = join(base, "share", "strange");
    mkdirSync(join(strange, ".bulkgen"), { recursive: true });
    const claims = (identity: object) =>
      writeFileSync(
        join(strange, ".bulkgen", "workspace.json"),
        JSON.stringify({ host: "", why: null, ...identity }),
      );
    claims({ id: "other", state });
    expect(() => find("strange")).toThrow(
      /is in .*, which bulkgen did not make for it: expected .*other\. Nothing.* If another user works in this folder, take one of your own \(--workspace\)/,
    );
    claims({ id: "other", state: join(base, "share") });
    expect(() => find("strange")).toThrow("which bulkgen did not make for it");
    claims({ id, state });
    expect(() => settle("strange", "nfs4")).toThrow("is a copy of the workspace");
    expect(existsSync(stateFile)).toBe(false);
  });

  test("that was moved and is gone is not replaced by an empty one: that would pay for everything again", () => {
    const workspace = settle("remote", "nfs4");
    rmSync(join(base, "local"), { recursive: true });
    expect(() => settle("remote", "nfs4")).toThrow(
      /is kept in .* on this machine, but it is gone.*paid for again/,
    );
    expect(existsSync(workspace.stateFile)).toBe(false);
    const identity = readIdentity(workspace.markerFolder);
    writeFileSync(
      join(workspace.markerFolder, "workspace.json"),
      JSON.stringify({ ...identity, host: "other" }),
    );
    expect(() => settle("remote", "nfs4")).toThrow("on the machine other");
  });

  test("whose database is gone while its receipts are there is not replaced by an empty one", async () => {
    const workspace = settle("plain", "ext4");
    await used(workspace);
    rmSync(workspace.stateFile);
    expect(() => settle("plain", "ext4")).toThrow(/state\.db is missing, but .*receipts\.jsonl.*--rebuild/);
    rmSync(workspace.receiptsFile);
    expect(settle("plain", "ext4")).toEqual(workspace);
  });

  test.each(["", "{", '{"id":"../../up","state":null}', '{"id":7}', "null"])(
    "is not looked for where a damaged file says: %j",
    (text) => {
      const { markerFolder } = settle("plain", "ext4");
      writeFileSync(join(markerFolder, "workspace.json"), text);
      expect(() => settle("plain", "ext4")).toThrow(/workspace\.json is damaged: expected/);
    },
  );
});

describe("P18: a workspace that was copied", () => {
  const copy = () => cpSync(join(base, "share", "one"), join(base, "share", "two"), { recursive: true });

  test.each(["ext4", "nfs4"])("on %s is refused, and the first one is not", async (type) => {
    await used(settle("one", type));
    copy();
    expect(() => settle("two", type)).toThrow(`is a copy of the workspace ${join(base, "share", "one")}`);
    expect(await itemsIn(settle("one", type))).toEqual(["a", "b"]);
  });

  test.each(["ext4", "nfs4"])("on %s can be made one of its own, with the same history", async (type) => {
    const one = settle("one", type);
    await used(one);
    copy();
    expect(separateWorkspace(find("two"), { clock, random })).toBe(one.root);
    const two = settle("two", type);
    expect(two.stateFile).not.toBe(one.stateFile);
    expect(await itemsIn(two)).toEqual(["a", "b"]);
    expect(settle("one", type)).toEqual(one);
    expect(() => separateWorkspace(two, { clock, random })).toThrow("is not a copy of another workspace");
  });

  test("is none when it was moved, or goes by another name", async () => {
    const one = settle("one", "ext4");
    await used(one);
    symlinkSync(one.root, join(base, "share", "alias"));
    expect(settle("alias", "ext4").stateFile).toBe(join(base, "share", "alias", ".bulkgen", "state.db"));
    renameSync(one.root, join(base, "share", "two"));
    expect(await itemsIn(settle("two", "ext4"))).toEqual(["a", "b"]);
    expect(told).toEqual([]);
  });
});
