import { extname, join } from "node:path";
import { holds, isAboutName, jobFolder, numberedName, outputName, safeName } from "../archive/disk/names.js";
import { refusalOf } from "../archive/disk/space.js";
import { type IndexLine, identityOf, type JobIndex } from "../archive/index-file.js";
import { moveFile, supersede } from "../archive/move.js";
import type { Disk } from "../core/ports/disk.js";
import type { Log } from "../core/ports/send.js";
import type { ArchivedFile, Item, Run } from "../core/ports/store.js";
import { fileName } from "../core/variant.js";
import type { Store } from "../store/workspace/workspace.js";
import { count } from "../text/amounts.js";

type Named = Pick<Item, "id" | "rowId" | "name" | "edition">;

/** Files of earlier versions of a row, which are moved away once the file of the current version is saved. */
export class Replacements {
  private readonly byRow = new Map<string, ArchivedFile[]>();
  private readonly byFile = new Map<string, ArchivedFile>();

  learn(items: readonly Item[], files: readonly ArchivedFile[]): void {
    const vanished = new Map(
      items.filter((item) => item.vanished && item.variant === 1).map((item) => [item.id, item]),
    );
    for (const file of files) {
      const item = vanished.get(file.itemId);
      if (item === undefined) continue;
      this.byFile.set(file.file, file);
      for (const row of rowsOf(item)) this.byRow.set(row, [...(this.byRow.get(row) ?? []), file]);
    }
  }

  /** The files that an item of a row replaces, wherever they are by now. */
  of(item: Named): string[] {
    return [...new Set(rowsOf(item).flatMap((row) => this.byRow.get(row) ?? []))]
      .filter((file) => file.itemId !== item.id)
      .map(({ file }) => file);
  }

  async moved(store: Pick<Store, "moved">, from: string, to: string): Promise<void> {
    const file = this.byFile.get(from);
    if (file === undefined) return;
    await store.moved(file.itemId, file.number, to);
    file.file = to;
    this.byFile.set(to, file);
  }
}

/** A row is known by its id and by its output name: either may have changed. */
function rowsOf({ rowId, name, edition }: Named): string[] {
  return [`${edition}\nid ${rowId}`, `${edition}\nname ${name}`];
}

/**
 * Before a run submits anything, archived files get the names that the sheet gives them now: ids and outputs may have
 * been renamed, and a row may ask for a superseded file again. Renames can form chains and rings (two rows swap ids),
 * so a file waits for a name that is about to become free, and a temporary number breaks a ring.
 */
export interface ArrangePorts {
  store: Store;
  disk: Disk;
  log: Log;
}

/**
 * Renames what it can. A disk error does not stop the run: the next run tries again. Once all files have been renamed,
 * a resume of the run, which reads no sheet, only has to handle files that were moved away for others.
 */
export async function arrange(
  ports: ArrangePorts,
  run: Run,
  openIndex: () => Promise<JobIndex>,
): Promise<void> {
  const { store } = ports;
  const only = run.arranged ? "vanished" : undefined;
  const files = await store.files(run.jobName, only);
  try {
    if (files.length > 0)
      await new Arrangement(ports, jobFolder(run), await openIndex()).go(run, {
        files,
        items: await store.toArrange(run.jobName, only),
      });
    await store.setRun(run.id, { arranged: true });
  } catch (error) {
    const { code, reason } = refusalOf(error, jobFolder(run));
    ports.log.warn({ code }, `files keep their old names for now: ${reason}`);
  }
}

/** A file that is to have another name. */
interface Move {
  item: Item;
  file: ArchivedFile;
  /** Without extension, and without a number for a name that is taken. */
  wanted: string;
}

class Arrangement {
  private readonly items = new Map<string, Item>();
  private readonly owners = new Map<string, ArchivedFile>();
  /** How many files cannot be renamed, by the bucket that alone has them, and that this run does not use. */
  private readonly outOfReach = new Map<string, number>();

  constructor(
    private readonly ports: ArrangePorts,
    private readonly folder: string,
    private readonly index: JobIndex,
  ) {}

  async go(run: Run, { files, items }: { files: ArchivedFile[]; items: Item[] }): Promise<void> {
    for (const item of items) this.items.set(item.key, item);
    const counts = new Map<number, number>();
    for (const { itemId } of files) counts.set(itemId, (counts.get(itemId) ?? 0) + 1);
    const moves: Move[] = [];
    for (const file of files) {
      if (!(await this.isHere(file))) continue;
      this.owners.set(identityOfFile(file), file);
      const item = this.items.get(file.key);
      // Variants stay in the run that made them, and are called as their rows are.
      const isOfRun =
        item !== undefined && (item.runId === run.id || (item.variant > 1 && item.edition === run.edition));
      if (!isOfRun || item.vanished) continue;
      const wanted = outputName(safeName(fileName(item)), file.number, counts.get(item.id) ?? 1);
      moves.push({ item, file, wanted });
    }
    await this.renameAll(moves);
    for (const [bucket, number] of this.outOfReach)
      this.ports.log.warn(
        {},
        `${count(number, "file is", "files are")} in ${bucket} alone and ${number === 1 ? "keeps its old name" : "keep their old names"} until a run with --archive and --archive-only`,
      );
  }

  /** Whether the file lies in this folder; where a move was cut short, the index is right and the workspace is not. */
  private async isHere(file: ArchivedFile): Promise<boolean> {
    const { disk, store } = this.ports;
    const line = this.line(file);
    if (!line) return false;
    // Checking each of many files would take the bucket long. It has confirmed them; `verify` checks them again.
    const isConfirmed = line.bucket !== undefined && line.file === file.file;
    if (isConfirmed) return true;
    if ((await disk.size(join(this.folder, line.file))) !== file.bytes) return false;
    if (line.file === file.file) return true;
    const old = join(this.folder, file.file);
    const left = typeof this.index.identityAt(file.file) !== "string" && (await holds(disk, old, file));
    if (left) await disk.unlink(old);
    await store.moved(file.itemId, file.number, line.file);
    file.file = line.file;
    return true;
  }

  /** A file whose name is taken by one that will leave follows as soon as that one has left. */
  private async renameAll(moves: readonly Move[]): Promise<void> {
    const leaving = new Set(moves.map(({ file }) => identityOfFile(file)));
    const followers = new Map<string, Move[]>();
    const waiting = new Set<Move>();
    const taken = (identity: string): Move[] => {
      const found = followers.get(identity) ?? [];
      followers.delete(identity);
      return found;
    };
    const go = async (first: readonly Move[]): Promise<void> => {
      const ready = [...first];
      for (let move = ready.pop(); move !== undefined; move = ready.pop()) {
        const own = identityOfFile(move.file);
        const occupant = await this.way(move, leaving);
        if (occupant === null) {
          leaving.delete(own);
          waiting.delete(move);
          ready.push(...taken(own));
        } else {
          waiting.add(move);
          followers.set(occupant, [...(followers.get(occupant) ?? []), move]);
        }
      }
    };
    for (const move of moves) await go([move]);
    // Those that still wait are in rings, or follow one. A numbered name opens a ring.
    for (const move of moves) {
      if (!waiting.has(move)) continue;
      await this.rename(move);
      await go(taken(identityOfFile(move.file)));
    }
  }

  /** Renames a file if its name is free; if the name is about to become free, returns the file that has it. */
  private async way(move: Move, leaving: ReadonlySet<string>): Promise<string | null> {
    const { file, wanted } = move;
    const own = identityOfFile(file);
    for (let number = 1; ; number++) {
      const name = numberedName(wanted, number, extname(file.file).slice(1));
      const occupant = this.index.identityAt(name);
      if (name === file.file) return null;
      if (occupant === own) {
        await this.recapitalise(move);
        return null;
      }
      if (typeof occupant !== "string") break;
      if (await this.makesWay(occupant, file)) break;
      if (number === 1 && leaving.has(occupant)) return occupant;
    }
    await this.rename(move);
    return null;
  }

  /**
   * Moves a file away that no row asks for, or that an earlier task of the same item made. Returns whether it moved
   * one.
   */
  private async makesWay(occupant: string, { key, taskId }: ArchivedFile): Promise<boolean> {
    const { disk, store } = this.ports;
    const line = this.index.find(occupant);
    if (!line) return false;
    const earlier = line.key === key && line.task !== taskId;
    if (!earlier && !this.items.get(line.key)?.vanished) return false;
    if ((await disk.size(join(this.folder, line.file))) === null) return false;
    const to = await supersede(disk, this.folder, this.index, line);
    const owner = this.owners.get(occupant);
    if (owner) await store.moved(owner.itemId, owner.number, to);
    return true;
  }

  /** Many file systems take names for one that differ in capitals alone, so the file has another name in between. */
  private async recapitalise(move: Move): Promise<void> {
    const from = move.file.file;
    await this.rename({ ...move, wanted: `${move.wanted}-renamed` });
    if (move.file.file !== from) await this.rename(move);
  }

  private async rename({ item, file, wanted }: Move): Promise<void> {
    const { disk, store, log } = this.ports;
    const line = this.line(file);
    if (!line) return;
    if (line.bucket !== undefined && (await disk.size(join(this.folder, line.file))) === null) {
      this.outOfReach.set(line.bucket, (this.outOfReach.get(line.bucket) ?? 0) + 1);
      return;
    }
    const from = file.file;
    try {
      file.file = await moveFile(disk, this.folder, this.index, { line, name: wanted, item: item.rowId });
    } catch (error) {
      if (!isAboutName(error)) throw error;
      log.warn({ from, to: wanted }, `the file keeps its old name: ${(error as Error).message}`);
      return;
    }
    if (file.file === from) return;
    await store.moved(file.itemId, file.number, file.file);
    log.info({ from, to: file.file }, "renamed");
  }

  private line(file: ArchivedFile): IndexLine | undefined {
    return this.index.find(identityOfFile(file));
  }
}

function identityOfFile({ key, taskId, number }: ArchivedFile): string {
  return identityOf({ key, task: taskId, output: number });
}
