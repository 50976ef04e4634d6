import { dirname, join } from "node:path";
import type { GenerateRequest } from "../api/records.js";
import type { Disk } from "../core/disk.js";
import type { ItemEvent } from "../core/item.js";
import { type Credits, credits, toNumber } from "../core/money.js";
import type { Attempt, AttemptOutcome, Item, Run } from "../core/store.js";
import type { Conclusion } from "./conclusion.js";
import { Reserve } from "./reserve.js";

/**
 * The workspace's second memory of what was paid for: an append-only file with a line before each paid request and one
 * for its answer, each synced before the program goes on. The database is the first; whichever of the two survives, a
 * task's id is in it. Lines that a crash cut short are skipped when it is read.
 */
export interface Receipts {
  /** Before the request leaves: what is asked, for which item; there is room for its answer then. Rejects with errors of the disk. */
  intent(run: Run, item: Item, attempt: Attempt, body: string): Promise<void>;
  /** When its answer is known, before anything else is made of it. Rejects with errors of the disk. */
  answer(item: Item, attempt: Attempt, conclusion: Conclusion): Promise<void>;
  /** What is on file for one attempt of an item; null when its answer never came. */
  answerTo(itemKey: string, attempt: number): Promise<Conclusion | null>;
}

export function openReceipts(disk: Disk, path: string, now: () => number): Receipts {
  // One after the other: two appends at once could tear each other's lines.
  let last: Promise<void> = Promise.resolve();
  // A line that a crash cut short must not swallow the next one.
  let begin = "\n";
  const reserve = new Reserve(disk, join(dirname(path), "receipts.reserve"));
  const write = async (line: object) => {
    const text = `${begin}${JSON.stringify({ at: new Date(now()).toISOString(), ...line })}\n`;
    begin = "\n";
    await disk.append(path, text);
    begin = "";
  };
  // Its folder is there, unless this is the first line of all, or somebody took it away.
  const inFolder = async (work: () => Promise<void>) => {
    await work().catch(async (error: unknown) => {
      if (!isError(error, "ENOENT")) throw error;
      reserve.lost();
      await disk.makeFolder(dirname(path));
      await work();
    });
  };
  const inTurn = (work: () => Promise<void>) => {
    const done = last.then(() => inFolder(work));
    last = done.catch(() => undefined);
    return done;
  };
  return {
    intent: (run, item, attempt, body) =>
      inTurn(async () => {
        await reserve.take();
        await write(intentLine(run, item, attempt, body));
      }),
    answer: (item, attempt, { event, outcome }) => {
      const { charged, remaining, ...rest } = outcome;
      const amounts = { charged: shown(charged), remaining: shown(remaining) };
      const line = { type: "answer", key: item.key, attempt: attempt.number, event, ...rest, ...amounts };
      return inTurn(() =>
        write(line).catch(async (error: unknown) => {
          // The disk is full, or what this user may take of it.
          if (!isError(error, "ENOSPC", "EDQUOT") || !(await reserve.give())) throw error;
          await write(line);
        }),
      );
    },
    async answerTo(itemKey, attempt) {
      const lines = await linesOf(disk, path);
      const line = lines.find(
        ({ type, key, attempt: n }) => type === "answer" && key === itemKey && n === attempt,
      );
      return line === undefined ? null : conclusionIn(line);
    },
  };
}

function isError(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(String((error as { code?: unknown }).code));
}

/** What is written before a paid request leaves: enough to make its item again. */
export interface IntentLine {
  type: "intent";
  at: string;
  key: string;
  attempt: number;
  /** Its entry in the account's books. */
  bookEntry: number | null;
  run: number;
  job: string;
  manifest: string;
  out: string;
  edition: string;
  origin: string;
  account: string;
  row: string;
  rowNumber: number;
  occurrence: number;
  variant: number;
  name: string;
  category: string;
  /** In credits. */
  price: number;
  request: GenerateRequest;
}

function intentLine(run: Run, item: Item, attempt: Attempt, body: string): Omit<IntentLine, "at"> {
  return {
    type: "intent",
    key: item.key,
    attempt: attempt.number,
    bookEntry: attempt.bookEntry,
    run: run.id,
    job: run.jobName,
    manifest: run.manifest,
    out: run.outFolder,
    edition: item.edition,
    origin: run.origin,
    account: run.accountId,
    row: item.rowId,
    rowNumber: item.rowNumber,
    occurrence: item.occurrence,
    variant: item.variant,
    name: item.name,
    category: item.category,
    price: toNumber(item.price),
    request: JSON.parse(body),
  };
}

/** What is written when the answer of a paid request is known. */
export interface ReceiptLine extends Omit<AttemptOutcome, "charged" | "remaining"> {
  at: string;
  type: string;
  key: string;
  attempt: number;
  event: ItemEvent;
  charged?: number;
  remaining?: number;
}

export function conclusionIn({
  at: _at,
  type: _type,
  key: _key,
  attempt: _attempt,
  event,
  ...rest
}: ReceiptLine): Conclusion {
  const { charged, remaining, ...outcome } = rest;
  return {
    event,
    outcome: {
      ...outcome,
      ...(charged === undefined ? {} : { charged: credits(charged) }),
      ...(remaining === undefined ? {} : { remaining: credits(remaining) }),
    },
  };
}

function shown(amount: Credits | undefined): number | undefined {
  return amount === undefined ? undefined : toNumber(amount);
}

async function linesOf(disk: Disk, path: string): Promise<ReceiptLine[]> {
  if ((await disk.size(path)) === null) return [];
  const pieces: Uint8Array[] = [];
  for await (const piece of disk.read(path)) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8").split("\n").flatMap(parsed);
}

function parsed(text: string): ReceiptLine[] {
  try {
    return [JSON.parse(text) as ReceiptLine];
  } catch {
    return [];
  }
}
