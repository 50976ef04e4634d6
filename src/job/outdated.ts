import { closeSync, existsSync, fstatSync, openSync, readSync, writeFileSync } from "node:fs";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import type { Store } from "../core/store.js";
import type { IntentLine } from "../run/receipt-lines.js";
import { isRehearsal } from "./history.js";
import type { Workspace } from "./workspace.js";

/**
 * A database may be there and yet be an older one: restored from a copy, or left without its log after a crash. It would
 * pay again for what was paid since. It has every paid request on record before the receipts have, so it must know the
 * newest of theirs: as many as may have been under way at once.
 */
const requestsLooked = 32;
/** Bytes at the end of the receipts in which they are looked for. */
const tailBytes = 1 << 20;

/** Stands in the receipts where a database was made of them: what comes before it says nothing about that one. */
interface RebuiltLine {
  type: "rebuilt";
  at: string;
}

type Line = IntentLine | RebuiltLine;

/** Why the database is not the newest one of its workspace; null where it is. */
export async function outdatedHistory(
  workspace: Workspace,
  store: Pick<Store, "attemptBooked">,
): Promise<string | null> {
  if (isRehearsal(workspace)) return null;
  const { stateFile, receiptsFile } = workspace;
  for (const { at, row, bookEntry } of newestIntents(receiptsFile)) {
    if (bookEntry === null || (await store.attemptBooked(bookEntry)) !== null) continue;
    return `the database ${stateFile} is older than ${receiptsFile}: it does not know the paid request of ${at} for ${row}; it was restored, or lost its log. With it, what was paid for would be paid for again. Bring the newer one back, or \`bulkgen doctor --rebuild\` makes it again from the receipts and the archive`;
  }
  return null;
}

/** Throws EarlyExit where the database is an older one. */
export async function refuseOutdated(
  workspace: Workspace,
  store: Pick<Store, "attemptBooked">,
): Promise<void> {
  const outdated = await outdatedHistory(workspace, store);
  if (outdated !== null) throw new EarlyExit("usage", `${outdated}. Nothing was sent.`);
}

/** Notes in the receipts that a database was made of them. */
export function noteRebuilt({ receiptsFile }: Workspace, clock: Clock): void {
  if (!existsSync(receiptsFile)) return;
  const line: RebuiltLine = { type: "rebuilt", at: new Date(clock.now()).toISOString() };
  writeFileSync(receiptsFile, `\n${JSON.stringify(line)}\n`, { flag: "a", flush: true });
}

/** The last intents since a database was made of the receipts, the newest first. */
function newestIntents(receiptsFile: string): IntentLine[] {
  const lines = tailOf(receiptsFile).split("\n").flatMap(lineIn).toReversed();
  const rebuilt = lines.findIndex(({ type }) => type === "rebuilt");
  return lines
    .slice(0, rebuilt === -1 ? lines.length : rebuilt)
    .flatMap((line) => (line.type === "intent" ? [line] : []))
    .slice(0, requestsLooked);
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

/** Lines that are damaged or cut short lose themselves alone. */
function lineIn(text: string): Line[] {
  try {
    const line = JSON.parse(text) as Partial<Line> | null;
    return line?.type === "intent" || line?.type === "rebuilt" ? [line as Line] : [];
  } catch {
    return [];
  }
}
