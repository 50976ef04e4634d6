import { existsSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname } from "node:path";
import { EarlyExit } from "../core/exit.js";
import { identityFile, readIdentity } from "./identity-file.js";
import type { Workspace } from "./workspace.js";

/** Why the history of a workspace is not to be had though there was one; null where all is well, or new. */
export function lostHistory(workspace: Workspace): string | null {
  const { root, markerFolder, stateFile, receiptsFile } = workspace;
  const identity = readIdentity(markerFolder);
  if (identity?.state && !existsSync(identity.state)) {
    const where = identity.host === hostname() ? "this machine, and is gone" : `the machine ${identity.host}`;
    return `the state of ${root} lies in ${identity.state} on ${where}; ${identityFile(markerFolder)} says so. Without it, what was paid for would be paid for again. Run it there, or bring that folder here; where it is lost, \`bulkgen doctor --rebuild\` makes what the archive knows`;
  }
  const receipts = existsSync(receiptsFile) ? statSync(receiptsFile).size : 0;
  if (existsSync(stateFile) || receipts === 0 || isRehearsal(workspace)) return null;
  return `the database ${stateFile} is missing, and ${receiptsFile} tells of paid requests: expected both or neither. \`bulkgen doctor --rebuild\` makes it again from the receipts and the archive`;
}

/** Throws EarlyExit where there was a history that is not to be had. */
export function refuseLost(workspace: Workspace): void {
  const lost = lostHistory(workspace);
  if (lost !== null) throw new EarlyExit("usage", `${lost}. Nothing was sent.`);
}

/** Rehearsals pay nothing, so nothing is lost with them. */
export function isRehearsal({ stateFile }: Workspace): boolean {
  return basename(dirname(stateFile)) === "sandbox";
}
