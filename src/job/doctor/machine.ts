import { existsSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../clock.js";
import { openAccounts } from "../../store/accounts/accounts.js";
import { openDatabase, wayOut } from "../../store/open.js";
import { type Filesystem, tryLockElsewhere } from "../place/filesystem.js";
import type { Workspace } from "../workspace/workspace.js";
import { type Check, fine, problem, unchecked } from "./check.js";
import { diskSpace, onlyOne, placeOfState, scratchFolder, writable } from "./folders.js";
import { history } from "./history.js";

export interface MachineOptions {
  workspace: Workspace;
  clock: Clock;
  /** Version of the running Node, without the `v`. */
  node: string;
  ground: Filesystem;
}

/** The oldest Node that bulkgen runs on. */
const oldestNode = [20, 19] as const;

/** What has to be true of this machine and its folders. Leaves nothing behind. */
export async function examineMachine({ workspace, clock, node, ground }: MachineOptions): Promise<Check[]> {
  const stateFolder = dirname(workspace.stateFile);
  const scratch = scratchFolder(stateFolder);
  try {
    return [
      nodeVersion(node),
      ...(scratch.path === null
        ? [
            problem("state folder", {
              expected: "a folder that can be written",
              got: `${scratch.reason} in ${scratch.at}`,
              todo: "make it writable, or name another workspace with --workspace",
            }),
            unchecked("SQLite", "", "there is no folder to try it in"),
            unchecked("lock", "", "there is no folder to try it in"),
          ]
        : [placeOfState(workspace, ground), sqlite(scratch.path), lock(scratch.path)]),
      onlyOne(workspace),
      await history(workspace, clock),
      accountsData(workspace.accountsFile, clock),
      writable(workspace.outFolder),
      await diskSpace(workspace.outFolder),
    ];
  } finally {
    if (scratch.path !== null) rmSync(scratch.path, { recursive: true, force: true });
  }
}

function nodeVersion(version: string): Check {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const expected = `${oldestNode.join(".")} or newer`;
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1])
    ? fine("Node", expected, version)
    : problem("Node", { expected, got: version, todo: "install a newer Node" });
}

/** A database as all of bulkgen's are opened, with what makes it durable read back from it. */
function sqlite(folder: string): Check {
  const expected = "write-ahead log, synchronous FULL";
  try {
    const db = openDatabase(join(folder, "trial.db"), [
      (fresh) => fresh.exec("CREATE TABLE opened (count INTEGER); INSERT INTO opened VALUES (0)"),
    ]);
    try {
      const version = db.prepare("SELECT sqlite_version()").pluck().get();
      const journal = db.pragma("journal_mode", { simple: true });
      const synchronous = db.pragma("synchronous", { simple: true });
      const got = `${version}, journal ${journal}, synchronous ${synchronous === 2 ? "FULL" : synchronous}`;
      if (journal === "wal" && synchronous === 2) return fine("SQLite", expected, got);
      return problem("SQLite", { expected, got, todo: "keep the workspace on a local disk" });
    } finally {
      db.close();
    }
  } catch (error) {
    const got = (error as Error).message;
    return problem("SQLite", { expected, got, todo: "keep the workspace on a local disk" });
  }
}

/** Tried by another process, because a file system without real locks refuses nothing to anybody else. */
function lock(folder: string): Check {
  const expected = "a second process is refused the lock of the first";
  const got = tryLockElsewhere(folder);
  if (got === null) return fine("lock", expected, "refused while held, given after");
  return problem("lock", { expected, got, todo: "keep the workspace on a local disk" });
}

/** Whether what accounts share, in a database beside no workspace, can be read and written. */
export function accountsData(accountsFile: string, clock: Clock): Check {
  const expected = "a request ledger and books that can be read, or none yet";
  if (!existsSync(accountsFile)) return fine("accounts", expected, "none yet");
  try {
    openAccounts(accountsFile, clock).close();
    return fine("accounts", expected, accountsFile);
  } catch (error) {
    const todo = wayOut(error);
    if (todo === null) throw error;
    return problem("accounts", { expected, got: (error as Error).message, todo });
  }
}
