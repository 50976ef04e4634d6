import { join, posix } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { sha256Of } from "../text/pieces.js";
import { foldName } from "./disk/names.js";
import { temporaryName } from "./disk/temporary.js";
import {
  identityOf,
  indexName,
  isAccepted,
  isPruned,
  JobIndex,
  lengthUnknown,
  sidecarOf,
} from "./index-file.js";
import { bucketFilesAtOnce, mapAtOnce } from "./map-at-once.js";
import { quarantineName } from "./quarantine.js";

/**
 * Compares a job's folder with what the workspace and the folder's index say: every known file must be there with its
 * length and, if it is read, its hash. Other files are reported.
 */
export interface KnownFile {
  /** Of its output; see `identityOf`. */
  identity: string;
  /** Relative to the job's folder. */
  file: string;
  bytes: number;
  sha256: string;
}

export type FileFinding =
  | { kind: "missing"; file: string; identity: string }
  | { kind: "damaged"; file: string; identity: string; reason: string }
  /** Intact, but the index has no line for it, or a different one. */
  | { kind: "unindexed"; file: string; identity: string }
  /** As it was saved, but it may have been truncated then: the server stated no length, or a person accepted it (`reason`). */
  | { kind: "unproven"; file: string; identity: string; reason?: string }
  /** Intact, but its copy in the bucket is missing or different. */
  | { kind: "uncopied"; file: string; identity: string; reason: string }
  /** In neither the workspace nor the index. */
  | { kind: "unknown"; file: string; bytes: number }
  /** A temporary file of a crashed run, or a download that failed its check. */
  | { kind: "leftover"; file: string; bytes: number };

export interface Examination {
  /** Known files, and how many of them were read in full. */
  files: number;
  read: number;
  bytesRead: number;
  findings: FileFinding[];
}

export interface ExamineOptions {
  /** Which files are read in full. The others are only checked for existence and length. */
  reads(file: KnownFile): boolean;
  /** Whether the workspace has the file of an output in another folder by now: here it may be gone. */
  isElsewhere?(identity: string): boolean;
  /** Called after each file. */
  onFile?(): void;
  signal?: AbortSignal;
}

/** Examines one folder. `known` are the workspace's files there. Rejects with errors of the disk. */
export async function examine(
  disk: Disk,
  jobFolder: string,
  known: readonly KnownFile[],
  options: ExamineOptions,
): Promise<Examination> {
  const index = await JobIndex.open(disk, jobFolder);
  const rows = new Set(known.map(({ identity }) => identity));
  const all = [...known];
  for (const line of index.latest()) {
    const { file, bytes, sha256 } = line;
    const identity = identityOf(line);
    if (isPruned(line.check)) continue;
    if (!rows.has(identity)) all.push({ identity, file, bytes, sha256 });
  }
  const examination: Examination = { files: all.length, read: 0, bytesRead: 0, findings: [] };
  const found = await mapAtOnce(all, disk.inBucket ? bucketFilesAtOnce : 1, async (file) => {
    if (options.signal?.aborted) return null;
    const finding = await examineFile(disk, jobFolder, file, options.reads(file), examination);
    options.onFile?.();
    return finding;
  });
  for (const [at, file] of all.entries()) {
    const finding = found[at] ?? null;
    const isGoneFrom =
      finding?.kind === "missing" &&
      // The history may be a copy of before it was pruned.
      (isPruned(index.find(file.identity)?.check) || options.isElsewhere?.(file.identity));
    if (finding && !isGoneFrom) examination.findings.push(finding);
    else if (isGoneFrom) examination.files--;
    else if (rows.has(file.identity) && !isLine(index, file)) {
      examination.findings.push({ kind: "unindexed", file: file.file, identity: file.identity });
    } else {
      const { check = "" } = index.find(file.identity) ?? {};
      const reason = isAccepted(check) ? { reason: check } : {};
      if (isAccepted(check) || check.endsWith(lengthUnknown))
        examination.findings.push({ kind: "unproven", file: file.file, identity: file.identity, ...reason });
    }
  }
  for (const stray of await strays(disk, jobFolder, all)) examination.findings.push(stray);
  return examination;
}

function isLine(index: JobIndex, { identity, file, sha256 }: KnownFile): boolean {
  const line = index.find(identity);
  return line?.file === file && line.sha256 === sha256;
}

/** What is wrong with a file; null if nothing is. What was read is added to the sums of `examination`. */
export async function examineFile(
  disk: Disk,
  jobFolder: string,
  { file, identity, bytes, sha256 }: KnownFile,
  isRead: boolean,
  examination: Pick<Examination, "read" | "bytesRead"> = { read: 0, bytesRead: 0 },
): Promise<Extract<FileFinding, { kind: "missing" | "damaged" }> | null> {
  const path = join(jobFolder, file);
  const found = await disk.size(path).catch(nullWhereImpossible);
  if (found === null) return { kind: "missing", file, identity };
  if (found !== bytes)
    return { kind: "damaged", file, identity, reason: `expected ${bytes} bytes, got ${found}` };
  const inBucket = await disk.inBucket?.(path);
  if (inBucket && inBucket.sha256 !== sha256)
    return { kind: "damaged", file, identity, reason: `${inBucket.bucket} has other content` };
  if (!isRead) return null;
  examination.read++;
  examination.bytesRead += bytes;
  let digest: string;
  try {
    digest = await sha256Of(disk.read(path));
  } catch (error) {
    return { kind: "damaged", file, identity, reason: `cannot be read: ${(error as Error).message}` };
  }
  if (digest === sha256) return null;
  const reason = `expected sha256 ${sha256.slice(0, 12)}…, got ${digest.slice(0, 12)}…`;
  return { kind: "damaged", file, identity, reason };
}

/** A file below what is no folder, or of a name that no file can have, which is in a damaged line, is missing. */
function nullWhereImpossible(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOTDIR" || error.code === "ENAMETOOLONG") return null;
  throw error;
}

/** Files and folders that bulkgen itself writes at the top of a job's folder. */
const ownFiles = new Set([indexName, "problems.csv", "gallery.html", "picked.html"]);
const ownFolders = new Set(["_gallery"]);

async function strays(disk: Disk, jobFolder: string, known: readonly KnownFile[]): Promise<FileFinding[]> {
  const names = new Set(known.flatMap(({ file }) => [foldName(file), foldName(sidecarOf(file))]));
  const found: FileFinding[] = [];
  for await (const file of filesBelow(disk, jobFolder, "")) {
    if (names.has(foldName(file)) || ownFiles.has(file)) continue;
    const bytes = (await disk.size(join(jobFolder, file))) ?? 0;
    const isLeftover = temporaryName.test(posix.basename(file)) || file.startsWith(`${quarantineName}/`);
    found.push({ kind: isLeftover ? "leftover" : "unknown", file, bytes });
  }
  return found;
}

/** Relative paths, in order. Symbolic links are not followed. */
async function* filesBelow(disk: Disk, jobFolder: string, folder: string): AsyncGenerator<string> {
  for (const entry of (await disk.list(join(jobFolder, folder))).toSorted()) {
    const path = posix.join(folder, entry);
    if (!entry.endsWith("/")) yield path;
    else if (!ownFolders.has(path.slice(0, -1))) yield* filesBelow(disk, jobFolder, path.slice(0, -1));
  }
}
