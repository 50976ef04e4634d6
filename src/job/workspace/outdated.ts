import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { EarlyExit } from "../../core/exit.js";
import type { Store } from "../../core/ports/store.js";
import { type IntentLine, lineIn } from "../../run/receipts/receipt-lines.js";
import { isRehearsal } from "./history.js";
import type { Workspace } from "./workspace.js";

/**
 * A database may be there and yet be an older one: restored from a copy, or left without its log after a crash. It would
 * pay again for what was paid since. It has every paid request on record before the receipts have, and a rebuilt one
 * has what can be read of them, so it must know the newest of theirs: as many as may have been under way at once.
 */
const requestsLooked = 32;
/** Bytes at the end of the receipts in which they are looked for. */
const tailBytes = 1 << 20;

/** Why the database is not the newest one of its workspace; null where it is. */
export async function outdatedHistory(
  workspace: Workspace,
  store: Pick<Store, "attempted">,
): Promise<string | null> {
  if (isRehearsal(workspace)) return null;
  const { stateFile, receiptsFile } = workspace;
  for (const { at, row, job, key, attempt } of newestIntents(receiptsFile)) {
    if (await store.attempted(job, key, attempt)) continue;
    return `the database ${stateFile} is older than ${receiptsFile}: it does not know the paid request of ${at} for ${row}; it was restored, or lost its log. With it, what was paid for would be paid for again. Bring the newer one back, or \`bulkgen doctor --rebuild\` makes it again from the receipts and the archive`;
  }
  return null;
}

/** Throws EarlyExit where the database is an older one. */
export async function refuseOutdated(workspace: Workspace, store: Pick<Store, "attempted">): Promise<void> {
  const outdated = await outdatedHistory(workspace, store);
  if (outdated !== null) throw new EarlyExit("usage", `${outdated}. Nothing was sent.`);
}

/** The last intents that can be read, the newest first. */
function newestIntents(receiptsFile: string): IntentLine[] {
  const lines = tailOf(receiptsFile).split("\n").map(lineIn).toReversed();
  const intents = lines.filter(
    (line): line is IntentLine => line !== null && line !== "other" && line.type === "intent",
  );
  return intents.slice(0, requestsLooked);
}

function tailOf(file: string): string {
  if (!existsSync(file)) return "";
  const fd = openSync(file, "r");
  try {
    const { size } = fstatSync(fd);
    const tail = Buffer.alloc(Math.min(size, tailBytes));
    const read = readSync(fd, tail, 0, tail.length, size - tail.length);
    return tail.toString("utf8", 0, read);
  } finally {
    closeSync(fd);
  }
}
