import { appendFileSync, existsSync, statSync } from "node:fs";
import type { Clock } from "../../clock.js";
import type { MovedLine } from "../../run/receipts/receipt-lines.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import type { Workspace } from "../workspace/workspace.js";

type Moved = Pick<Workspace, "root" | "former" | "stateFile" | "receiptsFile">;

/**
 * What earlier versions kept absolute of a workspace that lies elsewhere now follows it: its database is changed, and its
 * receipts say where the lines above were written. To be done before it is forgotten where that was. False where the
 * database cannot be opened. Throws errors of the disk.
 */
export function pathsFollow(workspace: Moved, clock: Clock): boolean {
  const { former, stateFile, receiptsFile } = workspace;
  if (former === null) return true;
  try {
    if (existsSync(stateFile)) openWorkspace(workspace, clock).close();
  } catch {
    return false;
  }
  // Receipts that tell of nothing are no history, and must not look like one.
  if ((statSync(receiptsFile, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    const line: MovedLine = { type: "moved", at: new Date(clock.now()).toISOString(), from: former };
    appendFileSync(receiptsFile, `\n${JSON.stringify(line)}\n`, { flush: true });
  }
  return true;
}
