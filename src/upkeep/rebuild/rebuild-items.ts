import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { mediaFields } from "../../api/inputs.js";
import type { Category } from "../../api/records.js";
import { safeName } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import {
  type IndexLine,
  identityOf,
  indexName,
  isPruned,
  JobIndex,
  withoutExtension,
} from "../../archive/index-file.js";
import { isSuperseded } from "../../archive/move.js";
import { variantKey } from "../../core/identity.js";
import { asCredits, credits } from "../../core/money.js";
import type { NewItem } from "../../core/ports/store.js";
import { fileName, rowIdOf, variantNumber } from "../../core/variant.js";
import {
  type IntentLine,
  type KnownAttempt,
  KnownAttempts,
  lineIn,
  type RecordedDecision,
} from "../../run/receipts/receipt-lines.js";
import { absolutePath } from "../../store/workspace/own-paths.js";
import { sha256Of } from "../../text/pieces.js";
import { fileLines } from "../../workspace/history.js";
import type { Workspace } from "../../workspace/workspace.js";

export interface ReceiptHistory {
  /** In the order of submission, with absolute paths. */
  attempts: readonly KnownAttempt[];
  /** What people have decided, in their order. */
  decisions: readonly RecordedDecision[];
  lines: number;
  /** Numbers of the unreadable lines, from 1. */
  unreadable: readonly number[];
}

/** Reads the receipts. A damaged line is skipped and counted. */
export function readReceiptHistory({
  root,
  receiptsFile,
}: Pick<Workspace, "root" | "receiptsFile">): ReceiptHistory {
  const attempts = new KnownAttempts();
  const decisions: RecordedDecision[] = [];
  const unreadable: number[] = [];
  let [lines, number] = [0, 0];
  for (const row of existsSync(receiptsFile) ? fileLines(receiptsFile) : []) {
    number++;
    if (row.trim() === "") continue;
    lines++;
    const line = lineIn(row);
    if (line === null) unreadable.push(number);
    else if (line.type === "decision") decisions.push(line);
    else attempts.note(line.type === "intent" ? withPaths(line, root) : line);
  }
  return { attempts: attempts.all, decisions, lines, unreadable };
}

function withPaths(intent: IntentLine, root: string): IntentLine {
  return { ...intent, manifest: absolutePath(root, intent.manifest), out: absolutePath(root, intent.out) };
}

/** An output in the archive: its index line, and where it is. */
export interface ArchivedLine extends IndexLine {
  /** The output folder, and the name of the job's folder in it. */
  outFolder: string;
  folder: string;
}

export interface ArchiveHistory {
  /** Outputs whose files are intact, by item key. */
  outputs: Map<string, ArchivedLine[]>;
  /** Those whose files are gone or damaged. */
  missing: ArchivedLine[];
  indexes: number;
}

/** Reads the index of every job's folder and compares each line with its file. Rejects with errors of the disk. */
export async function readArchive(outFolders: readonly string[]): Promise<ArchiveHistory> {
  const history: ArchiveHistory = { outputs: new Map(), missing: [], indexes: 0 };
  for (const outFolder of outFolders) {
    for (const folder of foldersIn(outFolder)) {
      if (!existsSync(join(outFolder, folder, indexName))) continue;
      history.indexes++;
      await readJob(history, outFolder, folder);
    }
  }
  return history;
}

async function readJob(history: ArchiveHistory, outFolder: string, folder: string): Promise<void> {
  const jobFolder = join(outFolder, folder);
  for (const written of (await JobIndex.open(nodeDisk, jobFolder)).all()) {
    const line = soundLine(written);
    const ofItem = history.outputs.get(line.key) ?? [];
    // If several folders have the file, as in a copy of the archive, the first counts.
    if (ofItem.some((known) => known.folder === folder && identityOf(known) === identityOf(line))) continue;
    // Only `verify` reads buckets. What was pruned was made, and is not to be made or downloaded again.
    const isIntact =
      line.bucket !== undefined ||
      isPruned(line.check) ||
      (await hashOf(join(jobFolder, line.file), line.bytes)) === line.sha256;
    const output = { ...line, outFolder, folder };
    if (isIntact) history.outputs.set(line.key, [...ofItem, output]);
    else history.missing.push(output);
  }
}

/**
 * All that a line says besides key, task and file may be damaged, or changed by hand. Its file was made all the same, so
 * what cannot be read is replaced.
 */
const sound = z.looseObject({
  item: z.string().catch(""),
  edition: z.string().optional().catch(undefined),
  external_task: z.string().nullable().catch(null),
  model: z.string().catch(""),
  prompt: z.string().nullable().catch(null),
  params: z.record(z.string(), z.string()).catch({}),
  inputs: z.record(z.string(), z.unknown()).catch({}),
  credits: z
    .number()
    .refine((value) => asCredits(value) !== null)
    .nullable()
    .catch(null),
  created: z.string().nullable().catch(null),
  completed: z.string().nullable().catch(null),
  output: z.int().min(1).catch(1),
  bucket: z.string().optional().catch(undefined),
  bytes: z.int().min(0).catch(0),
  mime: z.string().catch(""),
  check: z.string().catch(""),
  saved: z.string().catch(""),
});

function soundLine(written: IndexLine): IndexLine {
  return { ...written, ...sound.parse(written) } as IndexLine;
}

/** Null when the file is missing or has another size. A damaged line may have a name that no file can have. */
async function hashOf(path: string, bytes: number): Promise<string | null> {
  if (!existsSync(path)) return null;
  const found = statSync(path);
  if (!found.isFile() || found.size !== bytes) return null;
  return sha256Of(createReadStream(path));
}

function foldersIn(folder: string): string[] {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );
}

/** What receipts and archive say about an item. */
export interface FoundItem {
  job: string;
  item: NewItem;
  /** The latest intent; null when only the archive has the item. */
  intent: IntentLine | null;
  attempts: ReadonlyMap<number, KnownAttempt>;
  outputs: readonly ArchivedLine[];
  /** Tasks that had outputs, of which the files may be gone. */
  made: ReadonlySet<string>;
  /** What people have decided about it. */
  decided: Decided;
}

/** Null if nobody has decided. */
export interface Decided {
  approval: "approved" | "rejected" | null;
  picked: boolean;
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
  for (const line of [...archive.outputs.values()].flat()) {
    const { outputs, made } = gathering.itemOf(line);
    outputs.push(line);
    made.add(line.task);
  }
  // With receipts, the task is looked up and its files are fetched. Without, nobody knows whose task it is: the item is
  // archived, and --missing decides about its files. The newest task counts, unless another one's files are there.
  for (const line of archive.missing.toReversed()) {
    const { attempts, outputs, made } = gathering.itemOf(line);
    made.add(line.task);
    const isNewest = line.task !== "" && outputs.every(({ task }) => task === line.task);
    if (attempts.size === 0 && isNewest) outputs.push(line);
  }
  const decided = decidedIn(receipts.decisions);
  const found = gathering.all.flatMap((gathered, index) => foundIn(gathered, index + 1, decided) ?? []);
  const items = withVariants(found);
  const known = new Set(items.flatMap(({ attempts }) => tasksOf([...attempts.values()])));
  return { items, orphans: tasksOf(receipts.attempts).filter((task) => !known.has(task)) };
}

/** Retakes of which there are files alone: their keys say of which row they are. */
function withVariants(items: readonly FoundItem[]): FoundItem[] {
  const named = ({ job, item: { edition } }: FoundItem, rowId: string) =>
    JSON.stringify([job, edition, rowId]);
  const keys = new Map<string, string[]>();
  for (const found of items) {
    const name = named(found, found.item.rowId);
    keys.set(name, [...(keys.get(name) ?? []), found.item.key]);
  }
  return items.map((found) => {
    const { item, intent } = found;
    const variant = intent === null ? variantNumber(item.rowId) : null;
    if (variant === null) return found;
    const originals = keys.get(named(found, rowIdOf({ ...item, variant }))) ?? [];
    const isVariant = originals.some((key) => variantKey(key, variant) === item.key);
    return isVariant ? { ...found, item: { ...item, variant } } : found;
  });
}

/** The last decisions about each item. The folder of a job has its name as a file can have it. */
function decidedIn(decisions: readonly RecordedDecision[]): Map<string, Decided> {
  const found = new Map<string, Decided>();
  for (const { job, key, decision } of decisions) {
    const name = decidedName(job, key);
    const { approval, picked } = found.get(name) ?? nothingDecided;
    const isPick = decision === "picked" || decision === "unpicked";
    found.set(name, isPick ? { approval, picked: decision === "picked" } : { approval: decision, picked });
  }
  return found;
}

const nothingDecided: Decided = { approval: null, picked: false };

function decidedName(job: string, key: string): string {
  return `${key} ${safeName(job)}`;
}

/** The receipts and files of one item. A job has one item of a key. */
interface Gathered {
  job: string;
  key: string;
  attempts: Map<number, KnownAttempt>;
  outputs: ArchivedLine[];
  made: Set<string>;
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
  itemOf({ key, task, folder }: ArchivedLine): Gathered {
    const items = this.of(key);
    return (
      items.find(({ attempts }) => tasksOf([...attempts.values()]).includes(task)) ??
      items.find(({ job }) => safeName(job) === folder) ??
      this.begin(folder, key)
    );
  }

  private of(key: string): Gathered[] {
    return this.byKey.get(key) ?? [];
  }

  private begin(job: string, key: string): Gathered {
    const item: Gathered = { job, key, attempts: new Map(), outputs: [], made: new Set() };
    this.byKey.set(key, [...this.of(key), item]);
    return item;
  }
}

/** Null for an item without any intent or file. */
function foundIn(
  { job, key, attempts, outputs, made }: Gathered,
  position: number,
  decisions: ReadonlyMap<string, Decided>,
): FoundItem | null {
  const decided = decisions.get(decidedName(job, key)) ?? nothingDecided;
  const intent = [...attempts.values()].findLast((attempt) => attempt.intent)?.intent ?? null;
  const [line] = outputs;
  if (intent) {
    const item = { ...fromIntent(intent, position), ...namesSince(intent, outputs) };
    return { job, item, intent, attempts, outputs, made, decided };
  }
  return line ? { job, item: fromLine(line, position), intent, attempts, outputs, made, decided } : null;
}

function fromIntent(intent: IntentLine, position: number): NewItem {
  const { model, prompt = null, params = {} } = intent.request;
  const references = intent.parents?.map(({ field, written }) => [field, written] as const) ?? [];
  return {
    key: intent.key,
    edition: intent.edition,
    position,
    priority: 0,
    cells: [],
    model,
    prompt,
    params,
    inputs: { ...inputsOf(intent.request), ...Object.fromEntries(references) },
    ...(intent.parents === undefined
      ? {}
      : { parents: intent.parents.map(({ field, key, output }) => ({ field, key, output })) }),
    occurrence: intent.occurrence,
    variant: intent.variant,
    rowNumber: intent.rowNumber,
    rowId: intent.row,
    name: intent.name,
    category: intent.category,
    ...(intent.approve ? { approve: true as const } : {}),
    price: credits(intent.price),
  };
}

/** The names that a row and its file were given after the request, as the index has them. */
function namesSince(intent: IntentLine, outputs: readonly ArchivedLine[]): Partial<NewItem> {
  const [line] = outputs;
  if (line === undefined || isSuperseded(line.file)) return {};
  const stem = withoutExtension(line.file);
  const end = outputs.length > 1 ? `-${line.output}` : "";
  const before = safeName(fileName(intent));
  // A number may follow where a name was taken.
  const isAsBefore = stem.startsWith(before) && /^(?:-\d+)*$/.test(stem.slice(before.length));
  return {
    ...(line.item === "" ? {} : { rowId: line.item }),
    ...(isAsBefore ? {} : { name: stem.endsWith(end) ? stem.slice(0, stem.length - end.length) : stem }),
  };
}

function fromLine(line: ArchivedLine, position: number): NewItem {
  const { key, model, prompt, params } = line;
  return {
    key,
    edition: line.edition ?? "",
    occurrence: 1,
    variant: 1,
    position,
    priority: 0,
    rowNumber: 0,
    cells: [],
    rowId: line.item || withoutExtension(line.file),
    model,
    prompt,
    params,
    inputs: inputsOf(line.inputs ?? {}),
    name: withoutExtension(line.file),
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
