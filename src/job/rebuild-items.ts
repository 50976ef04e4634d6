import { mediaFields } from "../api/inputs.js";
import type { Category } from "../api/records.js";
import { credits } from "../core/money.js";
import type { NewItem } from "../core/store.js";
import type { IntentLine } from "../run/receipts.js";
import type { ArchivedLine, ArchiveHistory } from "./rebuild-archive.js";
import type { KnownAttempt, ReceiptHistory } from "./rebuild-receipts.js";

/** An item as receipts and archive know it. */
export interface FoundItem {
  job: string;
  item: NewItem;
  /** The newest intent; null when only the archive knows the item. */
  intent: IntentLine | null;
  attempts: ReadonlyMap<number, KnownAttempt>;
  outputs: readonly ArchivedLine[];
}

export interface FoundItems {
  items: FoundItem[];
  /** Tasks that were paid for, of requests that nobody knows any more. */
  orphans: string[];
}

/** Puts together what belongs to the same item. Nothing is guessed: an answer without its request is an orphan. */
export function findItems(receipts: ReceiptHistory, archive: ArchiveHistory): FoundItems {
  const found: FoundItems = { items: [], orphans: [] };
  for (const key of new Set([...receipts.attempts.keys(), ...archive.outputs.keys()])) {
    const attempts = receipts.attempts.get(key) ?? new Map<number, KnownAttempt>();
    const outputs = archive.outputs.get(key) ?? [];
    const intent = [...attempts.values()].findLast((attempt) => attempt.intent)?.intent ?? null;
    const position = found.items.length + 1;
    const [line] = outputs;
    if (intent) {
      found.items.push({ job: intent.job, item: fromIntent(intent, position), intent, attempts, outputs });
    } else if (line) {
      found.items.push({ job: line.folder, item: fromLine(line, position), intent, attempts, outputs });
    } else found.orphans.push(...tasksOf(attempts));
  }
  return found;
}

function fromIntent(intent: IntentLine, position: number): NewItem {
  const { model, prompt = null, params = {} } = intent.request;
  return {
    ...{ key: intent.key, edition: intent.edition, position, priority: 0, cells: [] },
    ...{ model, prompt, params, inputs: inputsOf(intent.request) },
    // Receipts of earlier versions lack these.
    occurrence: intent.occurrence ?? 1,
    variant: intent.variant ?? 1,
    rowNumber: intent.rowNumber ?? 0,
    rowId: intent.row,
    name: intent.name,
    category: intent.category,
    price: credits(intent.price),
  };
}

function fromLine(line: ArchivedLine, position: number): NewItem {
  const { key, item: rowId, model, prompt, params } = line;
  return {
    ...{ key, edition: "", occurrence: 1, variant: 1, position, priority: 0, rowNumber: 0, cells: [] },
    ...{ rowId, model, prompt, params },
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

function tasksOf(attempts: ReadonlyMap<number, KnownAttempt>): string[] {
  return [...attempts.values()].flatMap(({ answer }) => answer?.conclusion.outcome.taskId ?? []);
}
