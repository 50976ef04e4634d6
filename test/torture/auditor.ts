import { type Archive, sha256 } from "./archive.js";
import type { TaskOnRecord } from "./ledger.js";

/**
 * Judges from outside: the service's own books, the archive's folder, and in the end what the program reports to its
 * user. Of the runner's tables it sees nothing. Every method returns what is wrong, one line each, with the promise's
 * number.
 */
export interface Sheet {
  /** Row ids by their prompts; every row is one item. */
  rows: ReadonlyMap<string, string>;
  /** The most that may be spent, in credits. */
  cap: number | null;
}

/** What the program reports to its user at the end. */
export interface Told {
  /** States of items in trouble by row id: held, unknown, overdue, failed. */
  trouble: ReadonlyMap<string, string>;
  /** Items that were never submitted. */
  planned: number;
}

/** A stretch of time in which so many paid requests may have been cut off. Times are UTC ms. */
export interface Cut {
  from: number;
  to: number;
  lanes: number;
}

export interface Closing {
  tasks: readonly TaskOnRecord[];
  archive: Archive;
  told: Told;
  /** What the service hands out for each task. */
  outputs: ReadonlyMap<string, readonly Uint8Array[]>;
  /** When requests were cut off; null where the service itself loses answers, so that no count can be held to it. */
  cuts: readonly Cut[] | null;
}

const inDoubt = ["held", "unknown", "overdue"];

export class Auditor {
  /** Files seen so far, by path. */
  private readonly seen = new Map<string, string>();

  constructor(private readonly sheet: Sheet) {}

  /** What must hold at every instant. */
  look(tasks: readonly TaskOnRecord[], archive: Archive): string[] {
    const own = tasks.filter((task) => this.sheet.rows.has(task.prompt));
    return [...this.paidOnce(own), ...this.withinCap(own), ...this.kept(archive), ...this.indexed(archive)];
  }

  /** What must hold when everything that could be done was done. */
  close({ tasks, archive, told, outputs, cuts }: Closing): string[] {
    const own = tasks.filter((task) => this.sheet.rows.has(task.prompt));
    return [
      ...this.look(tasks, archive),
      ...this.collected(own, archive, told, outputs),
      ...whole(archive, outputs),
      ...this.accounted(archive, told),
      ...(cuts === null ? [] : lostPerCut(own, archive, cuts)),
    ];
  }

  /** P2: a task is made for an item once, and again only after the service has let the last one fail. */
  private paidOnce(tasks: readonly TaskOnRecord[]): string[] {
    const byPrompt = new Map<string, TaskOnRecord[]>();
    for (const task of tasks) byPrompt.set(task.prompt, [...(byPrompt.get(task.prompt) ?? []), task]);
    return [...this.sheet.rows].flatMap(([prompt, row]) => {
      const made = byPrompt.get(prompt) ?? [];
      return made.slice(1).flatMap((task, index) => {
        const before = made[index] as TaskOnRecord;
        if (before.outcome === "failed" && before.endsAt <= task.createdAt) return [];
        return [`P2: ${row} was paid again (task ${task.id}) while task ${before.id} had not failed`];
      });
    });
  }

  private withinCap(tasks: readonly TaskOnRecord[]): string[] {
    const { cap } = this.sheet;
    const spent = tasks.reduce((sum, task) => sum + (task.outcome === "failed" ? 0 : task.credits), 0);
    return cap !== null && spent > cap ? [`P7: ${spent} credits were spent, and the cap is ${cap}`] : [];
  }

  /** P13: a file that was there once stays, as it is. */
  private kept({ files }: Archive): string[] {
    const wrong = [...this.seen].flatMap(([path, hash]) => {
      const now = files.get(path);
      if (now === undefined) return [`P13: ${path} is gone from the archive`];
      return now.sha256 === hash ? [] : [`P13: ${path} is another file now`];
    });
    for (const [path, { sha256: hash }] of files) this.seen.set(path, hash);
    return wrong;
  }

  /** P13: each line of the index describes a file as it is, each file and each output has one at most. */
  private indexed({ files, lines }: Archive): string[] {
    const wrong = lines.flatMap((line) => {
      const file = files.get(line.file);
      if (file === undefined) return [`P13: the index tells of ${line.file}, which is not there`];
      const isTrue = file.sha256 === line.sha256 && file.bytes === line.bytes;
      return isTrue ? [] : [`P13: ${line.file} is not the file that the index tells of`];
    });
    return [
      ...wrong,
      ...twice(lines.map((line) => line.file)).map((file) => `P13: ${file} has two lines in the index`),
      ...twice(lines.map((line) => `${line.task}, output ${line.output},`)).map(
        (output) => `P13: ${output} has two lines in the index`,
      ),
      ...twice([...files.values()].map((file) => file.sha256)).map(
        (hash) => `P13: two files have the content ${hash.slice(0, 12)}`,
      ),
    ];
  }

  /** Every completed task has its files, or the user is told that it is in doubt. */
  private collected(
    tasks: readonly TaskOnRecord[],
    { files }: Archive,
    { trouble }: Told,
    outputs: Closing["outputs"],
  ): string[] {
    const hashes = new Set([...files.values()].map((file) => file.sha256));
    return tasks.flatMap((task) => {
      if (task.outcome === "failed") return [];
      const row = this.sheet.rows.get(task.prompt) ?? "";
      const made = outputs.get(task.id) ?? [];
      const isThere = made.length > 0 && made.every((bytes) => hashes.has(sha256(bytes)));
      const state = trouble.get(row) ?? "in no trouble";
      if (isThere || inDoubt.includes(state)) return [];
      return [`P4: ${row} was paid for (task ${task.id}), has no file, and is said to be ${state}`];
    });
  }

  /** Every row has a line in the index, or the user is told why not. */
  private accounted({ lines }: Archive, { trouble, planned }: Told): string[] {
    const archived = new Set(lines.map((line) => line.item));
    const missing = [...this.sheet.rows.values()].filter((row) => !archived.has(row) && !trouble.has(row));
    if (missing.length === planned) return [];
    return [
      `P4: ${missing.join(", ")} are not archived and in no trouble; ${planned} are said to be planned`,
    ];
  }
}

/** P13: each file is an output of the service, whole, and has its line; nothing half done lies about. */
function whole({ files, lines, temporaries }: Archive, outputs: Closing["outputs"]): string[] {
  const hashes = new Set([...outputs.values()].flat().map(sha256));
  const lined = new Set(lines.map((line) => line.file));
  return [
    ...[...files]
      .filter(([, file]) => !hashes.has(file.sha256))
      .map(([path]) => `P13: ${path} is not what the service made`),
    ...[...files.keys()].filter((path) => !lined.has(path)).map((path) => `P13: ${path} is in no index`),
    ...temporaries.map((path) => `P13: ${path} was left behind`),
  ];
}

/** P3: a task that was paid for and never collected was cut off, and no cut takes more of them than lanes. */
function lostPerCut(tasks: readonly TaskOnRecord[], { lines }: Archive, cuts: readonly Cut[]): string[] {
  const collected = new Set(lines.map((line) => line.task));
  const lost = tasks.filter((task) => task.outcome !== "failed" && !collected.has(task.id));
  const left = cuts.map((cut) => ({ ...cut }));
  return lost.flatMap((task) => {
    const cut = left.find(
      ({ from, to, lanes }) => from <= task.createdAt && task.createdAt <= to && lanes > 0,
    );
    if (cut === undefined) return [`P3: task ${task.id} was lost, and no kill explains it`];
    cut.lanes--;
    return [];
  });
}

function twice(values: readonly string[]): string[] {
  const once = new Set<string>();
  const again = new Set<string>();
  for (const value of values) (once.has(value) ? again : once).add(value);
  return [...again];
}
