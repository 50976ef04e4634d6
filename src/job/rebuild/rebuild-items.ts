import { mediaFields } from "../../api/inputs.js";
import type { Category } from "../../api/records.js";
import { safeName } from "../../archive/disk/names.js";
import { credits } from "../../core/money.js";
import type { NewItem } from "../../core/ports/store.js";
import type { IntentLine, KnownAttempt } from "../../run/receipts/receipt-lines.js";
import type { ArchivedLine, ArchiveHistory } from "./archive-history.js";
import type { ReceiptHistory } from "./receipt-history.js";

/** What receipts and archive say about an item. */
export interface FoundItem {
  job: string;
  item: NewItem;
  /** The latest intent; null when only the archive has the item. */
  intent: IntentLine | null;
  attempts: ReadonlyMap<number, KnownAttempt>;
  outputs: readonly ArchivedLine[];
}

export interface FoundItems {
  items: FoundItem[];
  /** Paid tasks whose requests are not on record. */
  orphans: string[];
}

/** Groups receipts and files by item. Nothing is guessed: an answer without its request is an orphan. */
export function findItems(receipts: ReceiptHistory, archive: ArchiveHistory): FoundItems {
  const gathering = new Gathering();
  for (const attempt of receipts.attempts) gathering.takeAttempt(attempt);
  for (const line of [...archive.outputs.values()].flat()) gathering.takeOutput(line);
  const items = gathering.all.flatMap((gathered, index) => foundIn(gathered, index + 1) ?? []);
  const known = new Set(items.flatMap(({ attempts }) => tasksOf([...attempts.values()])));
  return { items, orphans: tasksOf(receipts.attempts).filter((task) => !known.has(task)) };
}

/** The receipts and files of one item. A job has one item of a key. */
interface Gathered {
  job: string;
  key: string;
  attempts: Map<number, KnownAttempt>;
  outputs: ArchivedLine[];
}

class Gathering {
  private readonly byKey = new Map<string, Gathered[]>();

  get all(): readonly Gathered[] {
    return [...this.byKey.values()].flat();
  }

  takeAttempt(attempt: KnownAttempt): void {
    const { job, key, number } = attempt;
    const { attempts } = this.of(key).find((item) => item.job === job) ?? this.begin(job, key);
    // A second attempt with the same number is from a database that was started again beside old receipts.
    if (!attempts.has(number)) attempts.set(number, attempt);
  }

  /** An output belongs to the item of its task, else to the item of the job whose folder it is in. */
  takeOutput(line: ArchivedLine): void {
    const { key, task, folder } = line;
    const items = this.of(key);
    const item =
      items.find(({ attempts }) => tasksOf([...attempts.values()]).includes(task)) ??
      items.find(({ job }) => safeName(job) === folder) ??
      this.begin(folder, key);
    item.outputs.push(line);
  }

  private of(key: string): Gathered[] {
    return this.byKey.get(key) ?? [];
  }

  private begin(job: string, key: string): Gathered {
    const item: Gathered = { job, key, attempts: new Map(), outputs: [] };
    this.byKey.set(key, [...this.of(key), item]);
    return item;
  }
}

/** Null for an item without any intent or file. */
function foundIn({ job, attempts, outputs }: Gathered, position: number): FoundItem | null {
  const intent = [...attempts.values()].findLast((attempt) => attempt.intent)?.intent ?? null;
  const [line] = outputs;
  if (intent) return { job, item: fromIntent(intent, position), intent, attempts, outputs };
  return line ? { job, item: fromLine(line, position), intent, attempts, outputs } : null;
}

function fromIntent(intent: IntentLine, position: number): NewItem {
  const { model, prompt = null, params = {} } = intent.request;
  return {
    key: intent.key,
    edition: intent.edition,
    position,
    priority: 0,
    cells: [],
    model,
    prompt,
    params,
    inputs: inputsOf(intent.request),
    occurrence: intent.occurrence,
    variant: intent.variant,
    rowNumber: intent.rowNumber,
    rowId: intent.row,
    name: intent.name,
    category: intent.category,
    price: credits(intent.price),
  };
}

function fromLine(line: ArchivedLine, position: number): NewItem {
  const { key, item: rowId, model, prompt, params } = line;
  return {
    key,
    edition: "",
    occurrence: 1,
    variant: 1,
    position,
    priority: 0,
    rowNumber: 0,
    cells: [],
    rowId,
    model,
    prompt,
    params,
    inputs: inputsOf(line.inputs ?? {}),
    name: line.file.replace(/\.[^./]*$/, ""),
    category: categories.find((category) => line.mime.startsWith(`${category}/`)) ?? "image",
    price: credits(line.credits ?? 0),
  };
}

function inputsOf(from: Readonly<Record<string, unknown>>): NewItem["inputs"] {
  const named = mediaFields.map((field) => [field, from[field]] as const);
  return Object.fromEntries(named.filter(([, value]) => typeof value === "string"));
}

const categories: readonly Category[] = ["image", "video", "audio"];

function tasksOf(attempts: readonly KnownAttempt[]): string[] {
  return attempts.flatMap(({ answer }) => answer?.conclusion.outcome.taskId ?? []);
}
