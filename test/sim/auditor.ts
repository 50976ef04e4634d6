import { basename, dirname, join } from "node:path";
import type { ItemState } from "../../src/core/item.js";
import type { TaskRecord } from "../../src/service/state/state.js";
import { madeOf, sha256 } from "./files.js";
import type { Ledger } from "./ledger.js";
import type { MemoryDisk } from "./memory-disk.js";
import { isPaid, readable } from "./money-rules.js";
import type { Scenario } from "./scenario.js";
import { type Trip, Violation } from "./watch.js";

/**
 * Judges a finished run from outside: the service's own books, the archive's folders, and the list of items that the
 * program shows to its user. Of the program's tables it sees nothing.
 */
export interface SpendLog {
  ledger: Ledger;
  disk: MemoryDisk;
  /** Job folders of the archive. */
  folders: readonly string[];
  /** What the program reports of each item. */
  listed: ReadonlyMap<string, { state: ItemState; note: string | null }>;
  /** Files that a person has put there. */
  strangers: ReadonlyMap<string, Buffer>;
  /** Items whose request the service refused as wrong. */
  rejected: ReadonlySet<string>;
  /** The most that a run's items may cost; null without a cap. */
  cap: number | null;
  /** The most that a run's items of one model may cost. */
  modelCap: Scenario["modelCap"];
  /** What need not be left of the account's balance at the end; null where all of it may be spent. */
  spendable: number | null;
  modelOf(item: string): string;
  /** The most that it can cost. */
  priceOf(item: string): number;
  /** How far what it costs may lie from what was planned. */
  surpriseOf(item: string): number;
  /** It was planned for less than its like is charged, and nobody agrees to pay more; or its run was cancelled. */
  mayWait(item: string): boolean;
  /** From 0: each job of each workspace has one. */
  runOf(item: string): number;
  /** Credits that the runs of each job have cost, or may have, as the program tells its user. */
  spent: readonly number[];
  /** POSTs whose items were let go to be paid again, as allowed by the limit that the user set. */
  letGo: ReadonlySet<Trip>;
  /** How often an item was let go. */
  orphans: ReadonlyMap<string, number>;
  /** Tasks of which the program can see nothing. */
  unknowable: ReadonlySet<string>;
}

/** States of items whose charge is not known, and of all that have cost something or may have. */
const doubtful: readonly ItemState[] = ["held", "unknown", "overdue"];
const spending: readonly ItemState[] = [...doubtful, "archived", "ready", "processing"];

/** What a person has skipped may have cost something, as it may have while it was held. */
export const skippedNote = "skipped by a person";

export function audit(books: SpendLog): void {
  const tasks = new Map<string, TaskRecord[]>();
  for (const task of books.ledger.tasks.values()) {
    const item = books.ledger.madeFor.get(task.id) ?? "";
    if (books.listed.has(item) && !books.unknowable.has(task.id))
      tasks.set(item, [...(tasks.get(item) ?? []), task]);
  }
  for (const [item, own] of tasks) checkPaidOnce(item, own, books);
  for (const [item, { state }] of books.listed) {
    const hasFailed = tasks.get(item)?.some((task) => task.outcome === "failed") || books.rejected.has(item);
    if (state === "failed" && !hasFailed)
      throw new Violation("audit", `${item} is listed as failed and has not`);
  }
  checkCapsUsed(tasks, books);
  checkBooks(tasks, books);
  const files = filesOf(books);
  for (const [item, own] of tasks) for (const task of own) checkKept(item, task, files, books);
  const made = madeFor(tasks);
  checkFiles(files, made, books);
  checkIndexes(files, made, books);
  for (const [path, content] of books.strangers) {
    if (books.disk.content(path)?.equals(content) !== true)
      throw new Violation("P13", `${path}, which a person put there, is not as it was`);
  }
}

function checkPaidOnce(item: string, tasks: readonly TaskRecord[], books: SpendLog): void {
  const paid = tasks.filter((task) => isPaid(task) && !isLetGo(task, books));
  if (paid.length > 1) throw new Violation("P2", `${item} was paid ${paid.length} times`);
}

function isLetGo({ id }: TaskRecord, { letGo }: SpendLog): boolean {
  return [...letGo].some(({ made }) => made?.id === id);
}

/**
 * P7: nothing is left out for a cap that it would fit under: what failed has given its price back. Credits that do not
 * reach for all go to the items in their order, so that a dear one holds up the cheap.
 */
function checkCapsUsed(tasks: ReadonlyMap<string, TaskRecord[]>, books: SpendLog): void {
  const { cap, modelCap, spendable, listed, orphans, runOf, modelOf, priceOf } = books;
  const costOf = (item: string) => {
    const paid = (tasks.get(item) ?? []).filter((task) => isPaid(task) && !isLetGo(task, books));
    const isKnown = paid.length > 0 && !doubtful.includes(listed.get(item)?.state ?? "dropped");
    return isKnown ? paid.reduce((sum, { costMicro }) => sum + costMicro / 1e6, 0) : priceOf(item);
  };
  const worthOf = (item: string, states: readonly ItemState[]) =>
    (orphans.get(item) ?? 0) * priceOf(item) +
    (states.includes(listed.get(item)?.state ?? "dropped") || isSkipped(item, books) ? costOf(item) : 0);
  const worth = (items: readonly string[], states: readonly ItemState[]) =>
    items.reduce((sum, item) => sum + worthOf(item, states), 0);
  const items = [...listed.keys()];
  for (const run of new Set(items.map(runOf))) {
    const own = items.filter((item) => runOf(item) === run);
    const alike = own.filter((item) => modelOf(item) === modelCap?.model);
    const planned = own.filter((item) => listed.get(item)?.state === "planned");
    const dearest = Math.max(0, ...planned.map(priceOf));
    const room = Math.min(
      cap === null ? Number.POSITIVE_INFINITY : cap - worth(own, spending),
      // Whatever is in doubt may be taken from the balance, of whichever run.
      spendable === null ? Number.POSITIVE_INFINITY : spendable - worth(items, doubtful),
    );
    const ofModel = modelCap === undefined ? room : Math.min(room, modelCap.most - worth(alike, spending));
    const roomOf = (item: string) => (alike.includes(item) ? ofModel : room);
    const left = planned.find((item) => dearest <= roomOf(item) && !books.mayWait(item));
    if (left !== undefined)
      throw new Violation("P7", `${left} waits though ${roomOf(left)} credits may be spent`);
  }
}

/**
 * P8: the cost that the program reports for its items is what the service has charged for them. More than that only for
 * items of which it tells that this is in doubt; and of those it knows the planned price alone.
 */
function checkBooks(tasks: ReadonlyMap<string, TaskRecord[]>, books: SpendLog): void {
  const { listed, letGo, orphans, runOf, priceOf, surpriseOf } = books;
  const paid = [...letGo].filter(({ made }) => made !== null && isPaid(made));
  const free = (item: string) => (orphans.get(item) ?? 0) - paid.filter((trip) => trip.item === item).length;
  for (const [run, told] of books.spent.entries()) {
    let [charged, doubt, surprise] = [0, 0, 0];
    for (const [item, { state }] of listed) {
      if (runOf(item) !== run) continue;
      for (const task of tasks.get(item) ?? []) if (isPaid(task)) charged += task.costMicro / 1e6;
      const isOpen = doubtful.includes(state) || isSkipped(item, books) ? 1 : 0;
      doubt += (free(item) + isOpen) * priceOf(item);
      surprise += ((orphans.get(item) ?? 0) + isOpen) * surpriseOf(item);
    }
    if (told < charged - surprise - 1e-6 || told > charged + doubt + surprise + 1e-6) {
      throw new Violation(
        "P8",
        `the program tells of ${told} credits, the service has charged ${charged}, and ${doubt} are in doubt`,
      );
    }
  }
}

function isSkipped(item: string, { listed }: SpendLog): boolean {
  const { state, note } = listed.get(item) ?? {};
  return state === "dropped" && note === skippedNote;
}

/** What was paid for is in the archive, or the user is told that it is not. */
function checkKept(item: string, task: TaskRecord, files: Files, books: SpendLog): void {
  if (!isPaid(task) || isLetGo(task, books)) return;
  const kept = task.outputs.every((_, index) => files.has(madeOf(task, index + 1).sha256));
  const { state, note } = books.listed.get(item) ?? { state: "dropped", note: null };
  const told = isSkipped(item, books) || state === "held" || state === "overdue" || state === "unknown";
  if (!kept && !told)
    throw new Violation("audit", `${item} was paid for, has no file, and is listed as ${state}`);
  if (state === "held" && note === null) throw new Violation("audit", `${item} is held and nothing says why`);
}

/** Paths by the hash of their content. */
type Files = Map<string, string[]>;

function filesOf({ disk, folders, strangers }: SpendLog): Files {
  const files: Files = new Map();
  for (const path of folders.flatMap((folder) => disk.below(folder))) {
    const isOwn = basename(path) !== "index.jsonl" && !path.includes("/_quarantine/");
    if (!isOwn || strangers.has(path)) continue;
    const hash = sha256(disk.content(path) ?? Buffer.alloc(0));
    files.set(hash, [...(files.get(hash) ?? []), path]);
  }
  return files;
}

/** Items by the hash of what the service made for them. */
function madeFor(tasks: ReadonlyMap<string, TaskRecord[]>): Map<string, string> {
  const made = new Map<string, string>();
  for (const [item, own] of tasks) {
    for (const task of own)
      for (let n = 1; n <= task.outputs.length; n++) made.set(madeOf(task, n).sha256, item);
  }
  return made;
}

function checkFiles(files: Files, made: ReadonlyMap<string, string>, { listed }: SpendLog): void {
  for (const [hash, paths] of files) {
    if (!made.has(hash))
      throw new Violation("P13", `${paths[0]} is no output of the service, or not all of one`);
    if (paths.length > 1) throw new Violation("P13", `${paths.join(" and ")} are the same output`);
  }
  for (const [item, { state }] of listed) {
    if (state !== "archived") continue;
    const own = [...made].filter(([hash, owner]) => owner === item && files.has(hash));
    if (own.length === 0) throw new Violation("audit", `${item} is listed as archived and has no file`);
  }
}

/** Each line names a file with that content, and each file of an archived item has one. */
function checkIndexes(
  files: Files,
  made: ReadonlyMap<string, string>,
  { disk, folders, listed }: SpendLog,
): void {
  const lined = new Set<string>();
  for (const folder of folders) {
    const index = disk.content(join(folder, "index.jsonl"))?.toString("utf8") ?? "";
    for (const line of index.split("\n").map(readable)) {
      if (line === null) continue;
      const path = join(folder, String(line["file"]));
      const isTrue = files.get(String(line["sha256"]))?.includes(path) === true;
      if (!isTrue)
        throw new Violation("P13", `the index of ${dirname(path)} tells of ${path}, which is not there`);
      lined.add(path);
    }
  }
  for (const [hash, [path = ""]] of files) {
    const isArchived = listed.get(made.get(hash) ?? "")?.state === "archived";
    if (isArchived && !lined.has(path)) throw new Violation("P13", `${path} is in no index`);
  }
}
