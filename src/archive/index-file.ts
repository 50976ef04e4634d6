import { join, posix } from "node:path";
import { inBatches } from "../core/batches.js";
import type { Disk } from "../core/ports/disk.js";
import { LineSplitter } from "../text/lines.js";
import { foldName } from "./disk/names.js";

/**
 * The index of a job's folder: `index.jsonl`, one line for each file in it, so that the folder explains itself
 * wherever it is copied to. It is read once and then known in memory: a line for each of ten thousand files would
 * otherwise be read ten thousand times. One process writes a job's folder at a time (the workspace's lock).
 */
export const indexName = "index.jsonl";

/** Ends the check of a file whose end is proven neither by its content nor by a length that the server stated. */
export const lengthUnknown = "length unknown";

/** Facts about an output that are copied into its index line. */
export interface IndexFacts {
  /** The row's id, for people. */
  item: string;
  /** The item's key. */
  key: string;
  /** The task's id at the service. */
  task: string;
  external_task: string | null;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  /** Input media as the manifest names them. */
  inputs: Readonly<Record<string, string>>;
  /** Credits charged, where known. */
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
  /** The bucket that has it instead of this disk, as `BUCKET/JOB/FILE`: `s3://bucket/prefix`. */
  bucket?: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  mime: string;
  /** How far the content was checked; see `CheckLevel`. */
  check: string;
  /** When it was saved: ISO 8601, UTC. */
  saved: string;
  /** The version of bulkgen that saved it. */
  bulkgen: string;
}

/** The same output of the same task: what a redo after a crash has in common with what was cut short. */
export function identityOf(line: Pick<IndexLine, "key" | "task" | "output">): string {
  return `${line.key}\n${line.task}\n${line.output}`;
}

export class JobIndex {
  private readonly lines = new Map<string, IndexLine>();
  /** Folded name → the identity of its output, or null for a file without an index line. */
  private readonly identities = new Map<string, string | null>();
  private readonly listed = new Map<string, Promise<void>>();
  private readonly turns = new Map<string, Promise<void>>();
  private endsInLine = true;
  /** A process that was killed may have written what was read, and not have synced it. */
  private isDurable = true;
  /** One append at a time: two at once could mix their lines. Null appends nothing, and syncs what is there. */
  private readonly write = inBatches<IndexLine | null>((lines) => this.append(lines));

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
    for await (const piece of this.disk.read(path)) for (const row of splitter.take(piece)) this.learn(row);
    const last = splitter.last();
    this.endsInLine = last === "";
    this.learn(last);
  }

  private learn(row: string): void {
    const line = parse(row);
    if (line === null) return;
    const before = this.lines.get(identityOf(line));
    this.know(line);
    if (before && before.file !== line.file && this.identityAt(before.file) === identityOf(line))
      this.free(before.file);
  }

  /** The latest line of an output says where its file is; the latest line of a name says which output has it. */
  private know(line: IndexLine): void {
    const identity = identityOf(line);
    const other = this.identityAt(line.file);
    if (typeof other === "string" && other !== identity) this.lines.delete(other);
    this.lines.set(identity, line);
    this.setIdentity(line.file, identity);
  }

  find(identity: string): IndexLine | undefined {
    return this.lines.get(identity);
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
      const folded = foldName(posix.join(folder, entry.replace(/\/$/, "")));
      if (!this.identities.has(folded)) this.identities.set(folded, null);
    }
  }

  /** The identity of the output with this name, ignoring case; null for a file without a line; undefined when free. */
  identityAt(file: string): string | null | undefined {
    return this.identities.get(foldName(file));
  }

  /** Sets what `identityAt` returns for a name. */
  setIdentity(file: string, identity: string | null): void {
    this.identities.set(foldName(file), identity);
  }

  /** The latest line of each output. */
  all(): IndexLine[] {
    return [...this.lines.values()];
  }

  /**
   * Gives names to outputs that want the same one after the other: while one looks whether a file of that name is its
   * own, another would take the name to be taken, though the file is its own.
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
    this.identities.delete(foldName(file));
  }

  /** Appends a line and returns when it is durable. Does nothing when the index has the same file in the same place. */
  async add(line: IndexLine): Promise<void> {
    const last = this.lines.get(identityOf(line));
    if (last?.file === line.file && last.sha256 === line.sha256 && last.bucket === line.bucket) {
      if (!this.isDurable) await this.write(null);
      return;
    }
    await this.write(line);
    this.know(line);
  }

  private async append(lines: readonly (IndexLine | null)[]): Promise<void> {
    const text = lines.map((line) => (line === null ? "" : `${JSON.stringify(line)}\n`)).join("");
    // Start a new line after one that a full disk or a crash cut short.
    const begin = this.endsInLine ? "" : "\n";
    this.endsInLine = false;
    await this.disk.append(join(this.jobFolder, indexName), begin + text);
    this.endsInLine = true;
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

/** Null for a line that was cut short, or edited by hand so that it points out of the folder. */
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
  return isComplete && staysInside(file ?? "") ? (line as IndexLine) : null;
}

function staysInside(file: string): boolean {
  return posix.normalize(file) === file && !posix.isAbsolute(file) && !file.startsWith("..");
}
