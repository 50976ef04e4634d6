import { hostname } from "node:os";
import { join } from "node:path";
import type { Clock, Random } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import {
  claim,
  claimedBy,
  readIdentity,
  type Workspace,
  workspacesFolder,
  writeIdentity,
} from "../workspace/workspace.js";
import { copyState, lockState } from "./place.js";

/** Makes a copied workspace one of its own. Returns the folder that it was a copy of. Throws EarlyExit where it is none. */
export function separateWorkspace(
  workspace: Workspace,
  { clock, random }: { clock: Clock; random: Random },
): string {
  const { root, markerFolder, sharedFolder } = workspace;
  const identity = readIdentity(markerFolder);
  const other = identity && claimedBy(identity.id, workspace);
  if (!other) throw new EarlyExit("done", `${root} is no copy of another workspace; nothing was changed`);
  const id = random.uuid();
  const own = { ...identity, id, host: hostname() };
  if (identity.state === null) {
    writeIdentity(markerFolder, own);
  } else {
    const state = join(workspacesFolder(sharedFolder), id);
    const release = lockState(identity.state, state, clock);
    try {
      copyState(identity.state, state);
      writeIdentity(markerFolder, { ...own, state });
    } finally {
      release();
    }
  }
  claim(id, workspace);
  return other;
}
