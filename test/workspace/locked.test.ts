import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { lockOwnerOf } from "../../src/workspace/lock.js";
import { lockWorkspace } from "../../src/workspace/open.js";
import { findWorkspace, type Workspace } from "../../src/workspace/workspace.js";
import { ManualClock } from "../manual-clock.js";

const root = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-locked-")));
afterEach(() => rmSync(root, { recursive: true, force: true }));

test.each([
  [false, "`bulkgen status` shows its progress"],
  [true, "`bulkgen status --sandbox` shows its progress"],
])("a workspace that is in use says which command shows the run; rehearsal: %s", async (sandbox, hint) => {
  const workspace = findWorkspace({ cwd: root, sandbox, env: { XDG_STATE_HOME: root } });
  const options = {
    workspace,
    ifLocked: "fail" as const,
    clock: new ManualClock(),
    signal: new AbortController().signal,
    onLocked() {},
  };
  const lock = await lockWorkspace(options);
  await expect(lockWorkspace(options)).rejects.toThrow(hint);
  await lock.release();
});

function lockOf(workspace: Workspace) {
  return lockWorkspace({
    workspace,
    ifLocked: "fail",
    clock: new ManualClock(),
    signal: new AbortController().signal,
    onLocked() {},
  });
}

test("what holds the run up is in the note of the lock, however long it is, until it is over", async () => {
  const workspace = findWorkspace({ cwd: root, sandbox: false, env: { XDG_STATE_HOME: root } });
  const lock = await lockOf(workspace);
  const told = async () => (await lockOwnerOf(workspace))?.reason;
  await lock.carries(3);
  expect(await told()).toBeUndefined();
  for (const text of ["disk full", `disk full (/${"ä".repeat(2_000)})`, null, "no such folder"]) {
    const reason = text === null ? null : ({ kind: "disk", text, until: 5 } as const);
    lock.says({ reason, forecastMs: null });
    expect(await told()).toEqual(reason);
  }
  await lock.release();
  expect(await lockOwnerOf(workspace)).toBeNull();
});

test("the note of a process that was killed is removed, so that the lock is tried for it only once", async () => {
  const workspace = findWorkspace({ cwd: root, sandbox: false, env: { XDG_STATE_HOME: root } });
  const lock = await lockOf(workspace);
  await lock.carries(3);
  const note = `${workspace.lockFile}.owner.json`;
  const left = readFileSync(note);
  expect(await lockOwnerOf(workspace)).toMatchObject({ run: 3 });
  expect(existsSync(note)).toBe(true);
  await lock.release();
  writeFileSync(note, left);
  expect(await lockOwnerOf(workspace)).toBeNull();
  expect(existsSync(note)).toBe(false);
});
