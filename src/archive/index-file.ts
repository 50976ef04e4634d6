import { createHash } from "node:crypto";
import { join, posix } from "node:path";
import { inBatches } from "../core/batches.js";
import { toNumber } from "../core/money.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Disk } from "../core/ports/disk.js";
import type { ArchivedOutput, NewItem } from "../core/ports/store.js";
import { ownVersion } from "../package-file.js";
import { openSqlite } from "../sqlite.js";
import { LineSplitter } from "../text/pieces.js";
import { isBelow } from "../text/within.js";
import { foldName, linked } from "./disk/names.js";
import { openTemporary } from "./disk/temporary.js";

/**
 * The index of a job's folder: `index.jsonl`, one line for each file in it, so that the folder explains itself
 * wherever it is copied to. It is read once and then known in tables: a line for each of ten thousand files would
 * otherwise be read ten thousand times. One process writes a job's folder at a time (the workspace's lock).
 */
export const indexName = "index.jsonl";

/** The last words of `check` if neither the content nor a length that the server stated proves that the file is whole. */
export const lengthUnknown = "length unknown";

/** Whether a `check` is that of a file that failed its check and that a person accepted. */
export function isAccepted(check: string): boolean {
  return check.startsWith("accepted");
}

/**
 * Whether a `check` is that of a file that a person removed as too old. Its line stays, as the proof that it was made and
 * paid for, and its name is free.
 */
export function isPruned(check: unknown): boolean {
  return typeof check === "string" && check.startsWith(prunedCheck);
}

/** How the `check` of a pruned file begins; a date follows. */
export const prunedCheck = "pruned";

/** How the note of an item begins whose files were pruned. */
export const prunedNote = `its files were ${prunedCheck}`;

/** Why an item has no file: `check` is that of its files. */
export function noteOfPruned(check: string): string {
  return `its files were ${check.replace(" ", " on ")}`;
}

/** Facts about an output that are copied into its index line. */
export interface IndexFacts {
  /** The row's id, for people. */
  item: string;
  /** The item's key. */
  key: string;
  /** The job's edition; absent for the first one. */
  edition?: string;
  /** The step of the job that made it; absent without steps. */
  step?: string;
  /** The task's id at the service. */
  task: string;
  external_task: string | null;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  /** Input media as the manifest names them. */
  inputs: Readonly<Record<string, string>>;
  /** Row ids of the items whose outputs it was made from, by input; absent if it uses none. */
  made_from?: Readonly<Record<string, string>>;
  /** Credits charged, if known. */
  credits: number | null;
  /** ISO 8601, as the service wrote them. */
  created: string | null;
  completed: string | null;
}

export interface IndexLine extends IndexFacts {
  /** Number of the output within its task, from 1. */
  output: number;
  /** Relative to the job's folder, with `/` between segments. */
  file: string;
  /** The bucket that has the file instead of this disk, such as `s3://bucket/prefix`; the file is `JOB/FILE` in it. */
  bucket?: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  mime: string;
  /** Of a picture or a film as it is shown, in pixels; absent where the check did not come across them. */
  width?: number;
  height?: number;
  /** Of a film or a sound, in seconds. */
  duration?: number;
  /**
   * How far the content was checked: `decoded`, `packets` or `type`, and after a comma why no further. `pruned` and a date if
   * the file was removed since.
   */
  check: string;
  /** When it was saved: ISO 8601, UTC. */
  saved: string;
  /** The version of bulkgen that saved it. */
  bulkgen: string;
}

/** Equal for the same output of the same task: a try after a crash recognises what the crash cut short. */
export function identityOf(line: Pick<IndexLine, "key" | "task" | "output">): string {
  return `${line.key}\n${line.task}\n${line.output}`;
}

/**
 * What is known about a folder. A million lines would take more than a gigabyte of memory, so they are in a temporary
 * SQLite database: it has no name, uses the disk only beyond its cache, and ends with the process.
 */
function openTables() {
  const db = openSqlite("");
  db.exec(`PRAGMA journal_mode = MEMORY;
    PRAGMA cache_size = -16000;
    CREATE TABLE lines (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, line TEXT NOT NULL);
    CREATE TABLE names (name TEXT PRIMARY KEY, identity TEXT) WITHOUT ROWID;
    BEGIN`);
  return {
    linesAfter: db.prepare("SELECT id, line FROM lines WHERE id > ? ORDER BY id LIMIT 1000"),
    line: db.prepare("SELECT line FROM lines WHERE identity = ?").pluck(),
    addLine: db.prepare("INSERT INTO lines (identity, line) VALUES (?, ?) ON CONFLICT DO NOTHING"),
    changeLine: db.prepare("UPDATE lines SET line = ? WHERE identity = ?"),
    removeLine: db.prepare("DELETE FROM lines WHERE identity = ?"),
    identity: db.prepare("SELECT identity FROM names WHERE name = ?").pluck(),
    addName: db.prepare("INSERT INTO names (name, identity) VALUES (?, ?) ON CONFLICT DO NOTHING"),
    setName: db.prepare("INSERT OR REPLACE INTO names (name, identity) VALUES (?, ?)"),
    removeName: db.prepare("DELETE FROM names WHERE name = ?"),
  };
}

export class JobIndex {
  /** Lines by identity; folded name → the identity of its output, or null for a file without an index line. */
  private readonly tables = openTables();
  private readonly listed = new Map<string, Promise<void>>();
  private readonly turns = new Map<string, Promise<void>>();
  private endsInLine = true;
  /** False after the file was read: a killed process may have written it without syncing the file or its folder. */
  private isDurable = true;
  /** One append at a time: two at once could mix their lines. An empty text only syncs what is there. */
  private readonly write = inBatches<string>((texts) => this.append(texts.join("")));

  private constructor(
    private readonly disk: Disk,
    private readonly jobFolder: string,
  ) {}

  static async open(disk: Disk, jobFolder: string): Promise<JobIndex> {
    const index = new JobIndex(disk, jobFolder);
    const path = join(jobFolder, indexName);
    if ((await disk.size(path)) === null) return index;
    index.isDurable = false;
    await index.read(path);
    return index;
  }

  private async read(path: string): Promise<void> {
    const splitter = new LineSplitter();
    for await (const piece of this.disk.read(path)) this.learn(splitter.take(piece));
    const last = splitter.last();
    this.endsInLine = last === "";
    this.learn([last]);
  }

  private learn(rows: readonly string[]): void {
    for (const row of rows) {
      const line = parse(row);
      if (line === null) continue;
      const before = this.know(line, row);
      if (before && before.file !== line.file && this.identityAt(before.file) === identityOf(line))
        this.free(before.file);
    }
  }

  /**
   * The latest line of an output says where its file is; the latest line of a name says which output has it. Returns the
   * line that the output had before.
   */
  private know(line: IndexLine, text: string): IndexLine | undefined {
    const identity = identityOf(line);
    const isNew = this.tables.addLine.run(identity, text).changes > 0;
    const before = isNew ? undefined : this.find(identity);
    if (!isNew) this.tables.changeLine.run(text, identity);
    if (isPruned(line.check)) {
      if (this.identityAt(line.file) === identity) this.free(line.file);
      return before;
    }
    if (this.tables.addName.run(foldName(line.file), identity).changes === 0) {
      const other = this.identityAt(line.file);
      if (typeof other === "string" && other !== identity) this.tables.removeLine.run(other);
      this.setIdentity(line.file, identity);
    }
    return before;
  }

  find(identity: string): IndexLine | undefined {
    const line = this.tables.line.get(identity);
    return line === undefined ? undefined : (JSON.parse(line as string) as IndexLine);
  }

  /** Learns the names of all files in a folder, with or without index lines. `folder` is relative. */
  async learnNames(folder: string): Promise<void> {
    let known = this.listed.get(folder);
    if (known === undefined) {
      known = this.list(folder);
      this.listed.set(folder, known);
      // After an error the next call tries again.
      known.catch(() => this.listed.delete(folder));
    }
    await known;
  }

  private async list(folder: string): Promise<void> {
    for (const entry of await this.disk.list(join(this.jobFolder, folder))) {
      this.tables.addName.run(foldName(posix.join(folder, entry.replace(/\/$/, ""))), null);
    }
  }

  /** The identity of the output with this name, ignoring case; null for a file without a line; undefined when free. */
  identityAt(file: string): string | null | undefined {
    return this.tables.identity.get(foldName(file)) as string | null | undefined;
  }

  /** Sets what `identityAt` returns for a name. */
  setIdentity(file: string, identity: string | null): void {
    this.tables.setName.run(foldName(file), identity);
  }

  /** The latest line of each output. */
  all(): IndexLine[] {
    return [...this.latest()];
  }

  /** The latest line of each output, read page by page. */
  *latest(): Generator<IndexLine> {
    let last = 0;
    for (;;) {
      const page = this.tables.linesAfter.all(last) as { id: number; line: string }[];
      if (page.length === 0) return;
      for (const { id, line } of page) {
        yield JSON.parse(line) as IndexLine;
        last = id;
      }
    }
  }

  /**
   * Runs `give` for one output at a time among those that want the same name. While one output checks whether an existing
   * file is its own, the name is reserved: another output, whose file it really is, would move on to the next name.
   */
  async inTurn<Result>(name: string, give: () => Promise<Result>): Promise<Result> {
    const key = foldName(name);
    const given = (this.turns.get(key) ?? Promise.resolve()).then(give);
    const turn = given.then(
      () => undefined,
      () => undefined,
    );
    this.turns.set(key, turn);
    try {
      return await given;
    } finally {
      if (this.turns.get(key) === turn) this.turns.delete(key);
    }
  }

  /** Marks a name as free. */
  free(file: string): void {
    this.tables.removeName.run(foldName(file));
  }

  /** Appends a line and returns when it is durable. Does nothing when the index has the same file in the same place. */
  async add(line: IndexLine): Promise<void> {
    const last = this.find(identityOf(line));
    const isSame = (["file", "sha256", "bucket"] as const).every((key) => last?.[key] === line[key]);
    if (last && isSame && isPruned(last.check) === isPruned(line.check)) {
      if (!this.isDurable) await this.write("");
      return;
    }
    const text = JSON.stringify(line);
    await this.write(`${text}\n`);
    this.know(line, text);
  }

  private async append(text: string): Promise<void> {
    // Start a new line after one that a full disk or a crash cut short.
    const begin = this.endsInLine ? "" : "\n";
    this.endsInLine = false;
    await this.disk.append(join(this.jobFolder, indexName), begin + text);
    this.endsInLine = true;
    if (!this.isDurable) await this.disk.syncFolder(this.jobFolder);
    this.isDurable = true;
  }
}

/** The open indexes of one process, by job folder. */
export class Indexes {
  private readonly open = new Map<string, Promise<JobIndex>>();

  constructor(private readonly disk: Disk) {}

  /** Rejects with errors of the disk; the next call tries again. */
  of(jobFolder: string): Promise<JobIndex> {
    let index = this.open.get(jobFolder);
    if (index === undefined) {
      index = JobIndex.open(this.disk, jobFolder);
      this.open.set(jobFolder, index);
      index.catch(() => this.open.delete(jobFolder));
    }
    return index;
  }
}

/** Null for a line that was cut short, damaged, or edited by hand so that it points out of the folder. */
function parse(row: string): IndexLine | null {
  let line: Partial<IndexLine> | null;
  try {
    line = JSON.parse(row) as Partial<IndexLine> | null;
  } catch {
    return null;
  }
  const { key, task, output, file, sha256, bytes } = line ?? {};
  const isComplete =
    [key, task, file, sha256].every((text) => typeof text === "string") &&
    [output, bytes].every((number) => typeof number === "number");
  return isComplete && isBelow(file ?? "") ? (line as IndexLine) : null;
}

/** The `NAME.json` beside `NAME.png`: a copy of its index line, for tools that read one file at a time. */
export function sidecarOf(file: string): string {
  return withoutExtension(file) + sidecarExtension;
}

export function withoutExtension(file: string): string {
  return file.replace(/\.[^./]*$/, "");
}

const sidecarExtension = ".json";

/** Writes the sidecar durably, beside its file. The caller syncs the folder. */
export async function writeSidecar(
  disk: Disk,
  jobFolder: string,
  folder: string,
  line: IndexLine,
): Promise<void> {
  const temporary = await openTemporary(disk, folder, `sidecar ${identityOf(line)}`);
  const text = Buffer.from(`${JSON.stringify(line, null, 2)}\n`);
  const sha256 = createHash("sha256").update(text).digest("hex");
  const content = { bytes: text.length, sha256, mime: "application/json" };
  try {
    await temporary.file.write(text);
    await temporary.file.sync();
    const target = join(jobFolder, sidecarOf(line.file));
    // An existing file is this output's own, from before a crash: no other file may have this name.
    await linked(disk, temporary.path, target, line.bucket === undefined ? undefined : content);
  } finally {
    await temporary.discard();
  }
}

/** The line of an output in the index of its folder, as the workspace knows it. */
export function lineOf(output: ArchivedOutput): IndexLine {
  const { item, number, file, bucket, bytes, sha256, mime, check, savedAt } = output;
  return {
    ...indexFacts(item, output),
    output: number,
    file,
    ...(bucket == null ? {} : { bucket }),
    bytes,
    sha256,
    mime,
    check,
    saved: new Date(savedAt).toISOString(),
    bulkgen: ownVersion(),
  };
}

/** What the index says about an item and the task that made its files. */
export function indexFacts(item: NewItem, task: TaskOfFile | null): IndexFacts {
  const { rowId, key, edition, model, prompt, params, inputs } = item;
  const step = stepOf(item);
  const charged = task?.charged ?? null;
  return {
    item: rowId,
    key,
    ...(edition === "" ? {} : { edition }),
    ...(step === null ? {} : { step }),
    task: task?.taskId ?? "",
    external_task: task?.externalTaskId ?? null,
    model,
    prompt,
    params,
    inputs,
    credits: charged === null ? null : toNumber(charged),
    created: task?.createdAt ?? null,
    completed: task?.completedAt ?? null,
  };
}

/** The step of the job that made an item, as its cells have it; null without steps. */
export function stepOf({ cells }: Pick<NewItem, "cells">): string | null {
  return cells.find(([column]) => column === "step")?.[1] ?? null;
}

type TaskOfFile = Pick<Attempt, "taskId" | "externalTaskId" | "charged" | "createdAt" | "completedAt">;
