import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { type IndexLine, identityOf, indexName, JobIndex } from "../../archive/index-file.js";

/** An output in the archive: its index line, with the name under which its content was found. */
export interface ArchivedLine extends IndexLine {
  /** The output folder, and the name of the job's folder in it. */
  outFolder: string;
  folder: string;
}

export interface ArchiveHistory {
  /** Outputs whose files are intact, by item key. */
  outputs: Map<string, ArchivedLine[]>;
  /** Files with an index line whose content was not found: they are fetched again. */
  missing: string[];
  /** Files that were found under another name. */
  renamed: number;
  indexes: number;
}

/** Reads the index of every job's folder and compares each line with its file. Rejects with errors of the disk. */
export async function readArchive(outFolders: readonly string[]): Promise<ArchiveHistory> {
  const history: ArchiveHistory = { outputs: new Map(), missing: [], renamed: 0, indexes: 0 };
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
  const lines = (await JobIndex.open(nodeDisk, jobFolder)).all();
  const others = new OtherFiles(jobFolder, new Set(lines.map((line) => line.file)));
  for (const line of lines) {
    const ofItem = history.outputs.get(line.key) ?? [];
    // If several folders have the file, as in a copy of the archive, the first counts.
    if (ofItem.some((known) => known.folder === folder && identityOf(known) === identityOf(line))) continue;
    const inPlace = (await hashOf(join(jobFolder, line.file), line.bytes)) === line.sha256;
    const file = inPlace ? line.file : await others.find(line);
    if (file === null) {
      history.missing.push(join(folder, line.file));
      continue;
    }
    if (!inPlace) history.renamed++;
    history.outputs.set(line.key, [...ofItem, { ...line, file, outFolder, folder }]);
  }
}

/** Files without an index line, found by content: a person may have renamed one. */
class OtherFiles {
  private bySize: Map<number, string[]> | null = null;

  constructor(
    private readonly jobFolder: string,
    private readonly known: ReadonlySet<string>,
  ) {}

  async find({ bytes, sha256 }: IndexLine): Promise<string | null> {
    this.bySize ??= this.list();
    for (const file of this.bySize.get(bytes) ?? []) {
      if ((await hashOf(join(this.jobFolder, file), bytes)) === sha256) return file;
    }
    return null;
  }

  private list(): Map<number, string[]> {
    const bySize = new Map<number, string[]>();
    for (const entry of readdirSync(this.jobFolder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      const file = path.slice(this.jobFolder.length + 1);
      if (!entry.isFile() || this.known.has(file)) continue;
      const { size } = statSync(path);
      bySize.set(size, [...(bySize.get(size) ?? []), file]);
    }
    return bySize;
  }
}

/** Null when the file is missing or has another size. */
async function hashOf(path: string, bytes: number): Promise<string | null> {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size !== bytes) return null;
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return hash.digest("hex");
}

function foldersIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );
}
