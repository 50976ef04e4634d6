import { basename, dirname, join } from "node:path";
import type { SavedFile } from "../../src/core/ports/store.js";
import { madeOf, sha256 } from "./files.js";
import type { Ledger } from "./ledger.js";
import type { MemoryDisk } from "./memory-disk.js";
import { readable } from "./money-rules.js";
import { type Effect, type Rule, Violation } from "./watch.js";
import type { Job, Workspace } from "./workspace.js";

const temporary = /^\.bulkgen-.*\.part$/;

/** P13: a name in the archive always stands for a complete file that no power cut takes away, and stays as it is. */
export class ArchiveRules implements Rule {
  private readonly hashes = new Set<string>();
  private readonly hashed = new Set<string>();
  /** File and hash of each line. */
  private readonly indexed = new Map<string, string>();

  constructor(
    private readonly disk: MemoryDisk,
    private readonly ledger: Ledger,
    private readonly workspaces: readonly Workspace[],
    /** A process that was stopped before it wrote a line may write it when another has done so. */
    private readonly mayRepeat: boolean,
  ) {}

  done({ sender, name, values }: Effect): void {
    const workspace = this.workspaces[sender.workspace] as Workspace;
    const { folder } = workspace.jobs[sender.job] as Job;
    const isKept = (path: string) =>
      path.startsWith(`${workspace.outFolder}/`) && !temporary.test(basename(path));
    const [first, second] = values;
    switch (name) {
      case "disk.link":
        this.checkFile(String(second));
        return;
      case "disk.create":
        if (isKept(String(first)))
          throw new Violation("P13", `${first} has a name of the archive before it has its content`);
        return;
      case "disk.unlink":
        if (isKept(String(first))) throw new Violation("P13", `${first} was removed from the archive`);
        return;
      case "disk.append":
        if (basename(String(first)) === "index.jsonl") this.checkIndex(String(first), String(second));
        return;
      case "store.saved":
        this.checkSaved(folder, values[2] as SavedFile);
    }
  }

  /** A line that was torn off is written again; that is no second line. */
  crashed(): void {
    this.indexed.clear();
    for (const { folder } of this.workspaces.flatMap(({ jobs }) => jobs)) {
      const index = join(folder, "index.jsonl");
      for (const text of this.disk.content(index)?.toString("utf8").split("\n") ?? []) {
        const line = readable(text);
        if (line !== null) this.indexed.set(identityOf(index, line), saidBy(line));
      }
    }
  }

  /** Whether the content under a path is one that the service made, whole. */
  isWhole(path: string): boolean {
    const content = this.disk.content(path);
    if (content === null) return false;
    return this.known().has(sha256(content));
  }

  private checkFile(path: string): void {
    if (path.includes("/_quarantine/")) return;
    if (!this.isWhole(path)) throw new Violation("P13", `${path} is not what the service made`);
    if (!this.disk.isContentDurable(path))
      throw new Violation("P13", `${path} has its name before it is synced`);
  }

  private checkIndex(path: string, lines: string): void {
    if (path.includes("/_quarantine/")) return;
    for (const text of lines.split("\n")) {
      const line = readable(text);
      if (line === null) continue;
      const identity = identityOf(path, line);
      const file = join(dirname(path), String(line["file"]));
      if (!this.disk.isDurable(file)) throw new Violation("P13", `the index tells of ${file} too early`);
      const before = this.indexed.get(identity);
      const isRepeated = this.mayRepeat && before === saidBy(line);
      if (before !== undefined && !isRepeated)
        throw new Violation("P13", `a second index line for ${identity}`);
      this.indexed.set(identity, saidBy(line));
    }
  }

  private checkSaved(folder: string, saved: SavedFile): void {
    const path = join(folder, saved.file);
    if (!this.isWhole(path)) throw new Violation("P13", `the row of ${path} was written before its file`);
    if (!this.disk.isDurable(path))
      throw new Violation("P13", `the row of ${path} is more durable than its name`);
    const index = join(folder, "index.jsonl");
    const lines = this.disk.content(index)?.toString("utf8") ?? "";
    if (!lines.includes(`"file":"${saved.file}"`) || !this.disk.isDurable(index)) {
      throw new Violation("P13", `the row of ${path} was written before its line in the index`);
    }
  }

  /** Hashes of everything that the service has made so far. */
  private known(): Set<string> {
    for (const task of this.ledger.tasks.values()) {
      if (this.hashed.has(task.id)) continue;
      this.hashed.add(task.id);
      for (let number = 1; number <= task.outputs.length; number++)
        this.hashes.add(madeOf(task, number).sha256);
    }
    return this.hashes;
  }
}

function saidBy(line: Record<string, unknown>): string {
  return `${line["file"]} ${line["sha256"]}`;
}

/** What distinguishes one index line from another. */
function identityOf(path: string, line: Record<string, unknown>): string {
  return `${path} ${line["key"]} ${line["task"]} ${line["output"]}`;
}
