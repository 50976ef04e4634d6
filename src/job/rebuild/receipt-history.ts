import { existsSync, readFileSync } from "node:fs";
import {
  type IntentLine,
  type KnownAttempt,
  KnownAttempts,
  lineIn,
} from "../../run/receipts/receipt-lines.js";
import { keptIn, toldPath } from "../../store/workspace/own-paths.js";
import type { Workspace } from "../workspace/workspace.js";

export interface ReceiptHistory {
  /** In the order in which they were made; their paths are absolute, where the workspace lies now. */
  attempts: readonly KnownAttempt[];
  lines: number;
  /** Numbers of the lines that cannot be read, from 1. */
  unreadable: readonly number[];
}

/** Reads the receipts, however damaged: each line stands for itself. */
export function readReceiptHistory({
  root,
  former,
  receiptsFile,
}: Pick<Workspace, "root" | "former" | "receiptsFile">): ReceiptHistory {
  const attempts = new KnownAttempts();
  const unreadable: number[] = [];
  let lines = 0;
  let intents: IntentLine[] = [];
  const follow = (...roots: (string | null)[]) => {
    const told = tellPaths(root, roots);
    for (const intent of intents) {
      intent.manifest = told(intent.manifest);
      intent.out = told(intent.out);
    }
    intents = [];
  };
  const text = existsSync(receiptsFile) ? readFileSync(receiptsFile, "utf8") : "";
  for (const [index, row] of text.split("\n").entries()) {
    if (row.trim() === "") continue;
    lines++;
    const line = lineIn(row);
    if (line === null) unreadable.push(index + 1);
    else if (line === "other") continue;
    else if (line.type === "moved") follow(line.from);
    else {
      if (line.type === "intent") intents.push(line);
      attempts.note(line);
    }
  }
  follow(root, former);
  return { attempts: attempts.all, lines, unreadable };
}

/** Where a path leads now that was written while the workspace was one of these folders. */
function tellPaths(root: string, roots: readonly (string | null)[]): (path: string) => string {
  const known = new Map<string, string>();
  return (path) => {
    // A line may have been edited by hand.
    if (typeof path !== "string") return path;
    const now = known.get(path) ?? toldPath(root, keptIn(roots, path));
    known.set(path, now);
    return now;
  };
}
