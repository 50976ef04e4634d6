import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { type IndexLine, identityOf, indexName, JobIndex } from "../../archive/index-file.js";

/** An output that the archive has: its line, with the name under which its content was found. */
export interface ArchivedLine extends IndexLine {
  /** The output folder, and the name of the job's folder in it. */
  outFolder: string;
  folder: string;
}

export interface ArchiveHistory {
  /** Outputs whose files are there, whole, by item key. */
  outputs: Map<string, ArchivedLine[]>;
  /** Files of which a line tells and whose content is nowhere: they are fetched again. */
  missing: string[];
  /** Files that were found under another name. */
  renamed: number;
  indexes: number;
}

/** Reads the index of every job's folder and holds each line to the file's content. Rejects with errors of the disk. */
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
    // The first folder counts where several have the same file, as a copy of the archive does.
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

/** Files of a job's folder of which no line tells, by their content: somebody may have given one another name. */
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

/** Null when there is no such file, or none of that size. */
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
