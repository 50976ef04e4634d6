import { createCipheriv } from "node:crypto";
import { dirname, join } from "node:path";
import { inBatches } from "../../core/batches.js";
import type { Attempt, Conclusion } from "../../core/ports/attempt.js";
import type { Disk } from "../../core/ports/disk.js";
import type { Item, Run } from "../../core/ports/store.js";
import {
  type AnswerLine,
  answerLine,
  conclusionIn,
  type DecisionLine,
  type IntentLine,
  intentLine,
  lineIn,
  type RecordedDecision,
} from "./receipt-lines.js";

/**
 * Disk space for answers (P17). If the disk fills up between a paid request and its answer, the task's id could not be
 * written. So a file of random text takes up space before anything is bought, and is removed when an answer needs the
 * space: for its receipt and for what the database writes, for all lanes at once.
 */
const reserveBytes = 1024 * 1024;

/** What was asked for and paid is nobody else's business. */
const ownFile = 0o600;

class Reserve {
  private isTaken = false;

  constructor(
    private readonly disk: Disk,
    private readonly path: string,
  ) {}

  /** Reserves the space, unless it is reserved already. Rejects with errors of the disk. */
  async take(): Promise<void> {
    if (this.isTaken) return;
    const bytes = await this.disk.size(this.path);
    if (bytes !== null && bytes !== reserveBytes) await this.disk.unlink(this.path);
    if (bytes !== reserveBytes) await this.disk.append(this.path, filling(), ownFile);
    this.isTaken = true;
  }

  /** The folder was removed, so the space must be reserved again. */
  lost(): void {
    this.isTaken = false;
  }

  /** Frees the space. False when there is none to free. */
  async give(): Promise<boolean> {
    if (!this.isTaken) return false;
    this.isTaken = false;
    return this.disk.unlink(this.path).then(
      () => true,
      () => false,
    );
  }
}

let filled: string | undefined;

/** Text that no file system can compress. A process with many runs makes it once. */
function filling(): string {
  filled ??= noise();
  return filled;
}

function noise(): string {
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16), Buffer.alloc(16));
  return cipher.update(Buffer.alloc((reserveBytes * 3) / 4)).toString("base64");
}

/**
 * The workspace's second record of what was paid for, beside the database: an append-only file with a line before each
 * paid request and a line for its answer, each synced before the program continues. Whichever of the two survives has
 * the id of every task. Lines that a crash cut short are skipped when the file is read.
 */
export interface Receipts {
  /**
   * Before the request leaves: records the request and its item. Reserves space for the answer. Rejects with errors of
   * the disk.
   */
  intent(run: Run, item: Item, attempt: Attempt, body: string): Promise<void>;
  /** When the answer is known: records it before anything else uses it. Rejects with errors of the disk. */
  answer(run: Run, item: Item, attempt: Attempt, conclusion: Conclusion): Promise<void>;
  /** What a person has decided, once the database has it: a rebuild brings it back. Rejects with errors of the disk. */
  decided(decisions: readonly RecordedDecision[]): Promise<void>;
  /**
   * The body of one attempt's request, as it was sent, durable by the time it is returned; null when it is not recorded. Rejects
   * with errors of the disk.
   */
  requestOf(run: Run, item: Item, attempt: Attempt): Promise<string | null>;
  /** The recorded answer to one attempt of an item, under any run of its job; null when there is none. */
  answerTo(run: Run, item: Item, attempt: Attempt): Promise<Conclusion | null>;
}

/** Where the receipts lie, and the folder that paths in them are relative to. */
export interface ReceiptsPlace {
  receiptsFile: string;
  root: string;
}

export function openReceipts(
  disk: Disk,
  { receiptsFile: path, root }: ReceiptsPlace,
  now: () => number,
): Receipts {
  // A line that a crash cut short must not swallow the next one.
  let begin = "\n";
  const reserve = new Reserve(disk, join(dirname(path), "receipts.reserve"));
  const append = async (group: readonly PendingLine[]) => {
    const text = begin + group.map(({ text }) => text).join("");
    begin = "\n";
    await disk.append(path, text, ownFile);
    begin = "";
  };
  // The folder exists, unless this is the first line, or the folder was removed.
  const inFolder = async (work: () => Promise<void>) => {
    await work().catch(async (error: unknown) => {
      if (!isError(error, "ENOENT")) throw error;
      reserve.lost();
      await disk.makeFolder(dirname(path));
      await work();
    });
  };
  const writeGroup = async (group: readonly PendingLine[]) => {
    const [answers, intents] = [
      group.filter(({ isAnswer }) => isAnswer),
      group.filter(({ isAnswer }) => !isAnswer),
    ];
    try {
      await inFolder(async () => {
        if (intents.length > 0) await reserve.take();
        await append(group);
      });
    } catch (error) {
      for (const { reject } of intents) reject(error);
      if (answers.length > 0) await writeAnswers(answers, error);
      return;
    }
    for (const { resolve } of group) resolve();
  };
  /** Answers are written even if the disk, or this user's quota on it, is full. */
  const writeAnswers = async (answers: readonly PendingLine[], refusal: unknown) => {
    try {
      if (isError(refusal, "ENOSPC", "EDQUOT")) await reserve.give();
      await append(answers);
      for (const { resolve } of answers) resolve();
    } catch (error) {
      for (const { reject } of answers) reject(error);
    }
  };
  // Two appends at once could tear each other's lines.
  const writeNext = inBatches(writeGroup);
  const write = (line: object, isAnswer: boolean) =>
    new Promise<void>((resolve, reject) => {
      const text = `${JSON.stringify({ at: new Date(now()).toISOString(), ...line })}\n`;
      void writeNext({ text, isAnswer, resolve, reject });
    });
  // A process that was killed may have written its last lines without syncing them.
  let isSynced = false;
  const sync = async () => {
    if (!isSynced)
      await new Promise<void>(
        (resolve, reject) => void writeNext({ text: "", isAnswer: true, resolve, reject }),
      );
    isSynced = true;
  };
  return {
    intent: (run, item, attempt, body) => write(intentLine(root, run, item, attempt, body), false),
    answer: (run, item, attempt, conclusion) => write(answerLine(run, item, attempt, conclusion), true),
    async decided(decisions) {
      await Promise.all(decisions.map((each) => write({ type: "decision", ...each }, true)));
    },
    async requestOf(run, item, attempt) {
      for await (const line of newestLines(disk, path, item.key)) {
        if (line.type !== "intent") continue;
        if (line.key !== item.key || line.attempt !== attempt.number || line.job !== run.jobName) continue;
        await sync();
        return JSON.stringify(line.request);
      }
      return null;
    },
    async answerTo(run, item, attempt) {
      for await (const line of newestLines(disk, path, item.key)) {
        if (line.type === "decision") continue;
        const isOfAttempt =
          line.key === item.key && line.attempt === attempt.number && line.job === run.jobName;
        // An intent that is the newest line of its attempt has no answer.
        if (isOfAttempt) return line.type === "answer" ? conclusionIn(line) : null;
      }
      return null;
    },
  };
}

interface PendingLine {
  text: string;
  isAnswer: boolean;
  resolve(): void;
  reject(error: unknown): void;
}

function isError(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(String((error as { code?: unknown }).code));
}

const pieceBytes = 256 * 1024;

/**
 * The lines that contain a text, newest first. What a process left behind is near the end of the file, and a file with
 * lines for a million items is larger than memory.
 */
async function* newestLines(
  disk: Disk,
  path: string,
  text: string,
): AsyncGenerator<IntentLine | AnswerLine | DecisionLine> {
  let end = (await disk.size(path)) ?? 0;
  /** The end of a line that begins in an earlier piece. */
  let rest: Uint8Array = new Uint8Array();
  while (end > 0) {
    const start = Math.max(0, end - pieceBytes);
    const pieces: Uint8Array[] = [];
    for await (const piece of disk.read(path, { start, end })) pieces.push(piece);
    const bytes = Buffer.concat([...pieces, rest]);
    const newline = bytes.indexOf("\n");
    const cut = start === 0 ? 0 : newline < 0 ? bytes.length : newline + 1;
    const whole = bytes.subarray(cut);
    if (whole.includes(text)) yield* linesIn(whole.toString("utf8"), text);
    rest = bytes.subarray(0, cut);
    end = start;
  }
}

function linesIn(rows: string, text: string): (IntentLine | AnswerLine | DecisionLine)[] {
  const lines = rows.split("\n").filter((row) => row.includes(text));
  return lines.toReversed().flatMap((row) => lineIn(row) ?? []);
}
