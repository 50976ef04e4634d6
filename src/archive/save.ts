import { join, posix } from "node:path";
import type { Clock } from "../clock.js";
import type { Disk } from "../core/ports/disk.js";
import type { Download } from "../core/ports/send.js";
import type { MediaContent } from "./check/content.js";
import { folderBelow, numberedName, outputName, safeName } from "./disk/names.js";
import { type DiskRefusal, refusalNow, refusalOf } from "./disk/space.js";
import type { Temporary } from "./disk/temporary.js";
import { type Partial as PartialFile, Partials } from "./download/partial.js";
import { type Limits, limitsFor, type Transfer, transfer } from "./download/transfer.js";
import {
  Indexes,
  type IndexFacts,
  type IndexLine,
  identityOf,
  type JobIndex,
  lengthUnknown,
} from "./index-file.js";
import { holds, isSuperseded, linked, supersede } from "./move.js";
import { quarantine } from "./quarantine.js";
import { sidecarOf, writeSidecar } from "./sidecar.js";

/**
 * How an output gets into the archive. The order is the promise (P13): the file is complete, checked and durable before it
 * has its name, and the caller writes its row only after this returned. So a crash at any step leaves nothing, a
 * temporary file, or a complete file that the next try recognises by its hash and adopts.
 */
export interface SaveRequest {
  /** The signed URL. */
  url: string;
  /** The job's folder: absolute path. */
  jobFolder: string;
  /** The name as the manifest gives it; it is made safe here. */
  name: string;
  /** Number of the output within its task, from 1, and how many there are. */
  outputNumber: number;
  outputCount: number;
  /** The task's category. */
  category: string;
  index: IndexFacts;
  /** Files of an earlier version of the row, which are moved away. */
  replaces?: readonly string[];
}

export interface SavePorts {
  disk: Disk;
  download: Download;
  clock: Clock;
  /** Shared by all saves of a process. */
  indexes: Indexes;
  /** Shared likewise. */
  partials: Partials;
  /** bulkgen's version, for the index. */
  version: string;
  /** Whether each file gets a sidecar. */
  sidecars?: boolean;
  /** Checks the received file. Rejects with errors of the disk. */
  inspect(path: string, category: string, bytes: number): Promise<MediaContent>;
  /** Ends the transfer. A file that is complete by then is still saved. */
  signal?: AbortSignal;
  /** Instead of those of the category. */
  limits?: Limits;
}

export type SaveResult =
  /** `file` is relative to the job's folder, with `/` between segments, as in its index. */
  | {
      kind: "saved";
      file: string;
      bytes: number;
      sha256: string;
      mime: string;
      check: string;
      /** Files that were moved away, with their new names. */
      moved?: readonly { from: string; to: string }[];
    }
  /** The URL has expired: fetch a new one. */
  | { kind: "expired"; status: number }
  /** Broken off, stalled, cut short, or refused by the check: then the file is in `_quarantine/`, with this hash. */
  | { kind: "try_again"; reason: string; sha256?: string }
  /** For good: an address that is not allowed, or an output that is too large. */
  | { kind: "refused"; reason: string }
  | DiskRefusal;

/** The archive of one process. All saves share the open indexes and the broken transfers. */
export interface Archive {
  save(request: SaveRequest, signal?: AbortSignal): Promise<SaveResult>;
  /** Why the disk would refuse every file of a job's folder now; null where there is room. */
  refusal(jobFolder: string): Promise<DiskRefusal | null>;
  /** The index of a job's folder. */
  indexOf(jobFolder: string): Promise<JobIndex>;
  /** Removes the temporary files of broken transfers. */
  close(): Promise<void>;
}

export function openArchive(ports: Omit<SavePorts, "indexes" | "partials" | "signal">): Archive {
  const shared = { ...ports, indexes: new Indexes(ports.disk), partials: new Partials() };
  return {
    save: (request, signal) => saveOutput(request, signal === undefined ? shared : { ...shared, signal }),
    refusal: (jobFolder) => refusalNow(ports.disk, jobFolder),
    indexOf: (jobFolder) => shared.indexes.of(jobFolder),
    close: () => shared.partials.close(),
  };
}

/** Fetches one output into the archive, unless it is there already. Rejects only on a defect of the program. */
export async function saveOutput(request: SaveRequest, ports: SavePorts): Promise<SaveResult> {
  try {
    const index = await ports.indexes.of(request.jobFolder);
    const known = index.find(identityOf(keyOf(request)));
    if (known !== undefined && (await holds(ports.disk, join(request.jobFolder, known.file), known)))
      return saved(known, []);
    return await fetchAndSave(request, ports, index);
  } catch (error) {
    return refusalOf(error, request.jobFolder);
  }
}

function keyOf({ index, outputNumber }: SaveRequest): { key: string; task: string; output: number } {
  return { key: index.key, task: index.task, output: outputNumber };
}

async function fetchAndSave(request: SaveRequest, ports: SavePorts, index: JobIndex): Promise<SaveResult> {
  const name = outputName(safeName(request.name), request.outputNumber, request.outputCount);
  const folder = await folderBelow(ports.disk, request.jobFolder, posix.dirname(name));
  const identity = identityOf(keyOf(request));
  const partial = await ports.partials.open(ports.disk, folder, identity);
  let kept = false;
  try {
    const limits = ports.limits ?? limitsFor(request.category);
    const freeBytes = () => ports.disk.freeBytes(folder);
    const received = await transfer(request.url, partial, limits, { ...ports, freeBytes });
    if (received.kind !== "received") {
      kept = received.kind !== "refused" && partial.isWorthKeeping;
      return received;
    }
    return await takeIn(request, ports, index, { name, folder, partial, received });
  } finally {
    if (kept) await ports.partials.keep(identity, partial);
    else await partial.temporary.abandon();
  }
}

interface Fetched {
  name: string;
  folder: string;
  partial: PartialFile;
  received: Received;
}

async function takeIn(
  request: SaveRequest,
  ports: SavePorts,
  index: JobIndex,
  { name, folder, partial: { temporary }, received }: Fetched,
): Promise<SaveResult> {
  const content = await ports.inspect(temporary.path, request.category, received.bytes);
  if (content.kind === "bad") return reject(request, ports, temporary, received, content.reason);
  return place(request, ports, index, { name, folder, temporary, received, content });
}

type Received = Extract<Transfer, { kind: "received" }>;

async function reject(
  request: SaveRequest,
  { disk }: SavePorts,
  temporary: Temporary,
  { bytes, sha256 }: Received,
  reason: string,
): Promise<SaveResult> {
  const { index, outputNumber: output, jobFolder, name } = request;
  const facts = { item: index.item, task: index.task, output, bytes, sha256, reason };
  const kept = await quarantine(disk, jobFolder, temporary.path, safeName(name), facts);
  return { kind: "try_again", reason: `${reason} (kept as ${kept})`, sha256 };
}

interface Checked {
  /** Wanted, safe, relative to the job's folder, without extension. */
  name: string;
  /** Its folder: absolute path. */
  folder: string;
  temporary: Temporary;
  received: Received;
  content: Extract<MediaContent, { kind: "media" }>;
}

/** Turns a checked temporary file into a file of the archive. Durability depends on the order of these lines. */
async function place(
  request: SaveRequest,
  ports: SavePorts,
  index: JobIndex,
  checked: Checked,
): Promise<SaveResult> {
  const { disk, clock, version, sidecars = false } = ports;
  const { temporary, received, content, folder } = checked;
  await temporary.file.sync();
  const moved = await makeWay(disk, request, index);
  const file = await giveName(disk, request, index, { ...checked, sidecars });
  const { bytes, sha256 } = received;
  const { mime } = content;
  const unproven = content.check !== "decoded" && !received.lengthStated;
  const check = [content.check, content.because, unproven ? lengthUnknown : undefined]
    .filter((piece) => piece !== undefined)
    .join(", ");
  const line: IndexLine = {
    ...request.index,
    output: request.outputNumber,
    file,
    bytes,
    sha256,
    mime,
    check,
    saved: new Date(clock.now()).toISOString(),
    bulkgen: version,
  };
  await temporary.discard();
  if (sidecars) await writeSidecar(disk, request.jobFolder, folder, line);
  await disk.syncFolder(folder);
  await index.add(line);
  return saved(line, moved);
}

/**
 * Links the file to the first free name and returns it. A file with the same content and without an index line was left
 * by a crash between link and line: it is adopted.
 */
async function giveName(
  disk: Disk,
  request: SaveRequest,
  index: JobIndex,
  checked: Checked & { sidecars: boolean },
): Promise<string> {
  const { name, temporary, received, content, sidecars } = checked;
  const identity = identityOf(keyOf(request));
  await index.learnNames(posix.dirname(name));
  for (let number = 1; ; number++) {
    const file = numberedName(name, number, content.extension);
    const path = join(request.jobFolder, file);
    const occupant = index.identityAt(file);
    const taken = typeof occupant === "string" && occupant !== identity;
    if (taken && !(await isLost(disk, path, occupant, request))) continue;
    // Two files that differ only in their extension would share a sidecar. An existing sidecar may be from a crash.
    if (sidecars && !sidecarIsFree(index, file, identity)) continue;
    // Reserved before the next await, so that two outputs cannot both find it free. It stays reserved when a later step
    // fails, so that the next try uses it again.
    index.setIdentity(file, identity);
    if (sidecars) index.setIdentity(sidecarOf(file), identity);
    if (occupant !== null && (await linked(disk, temporary.path, path))) return file;
    if (await holds(disk, path, received)) return file;
    index.setIdentity(file, null);
  }
}

/** Whether the name belongs to an earlier output of the same item whose file is lost: the item was made again for it. */
async function isLost(disk: Disk, path: string, occupant: string, request: SaveRequest): Promise<boolean> {
  const { key, output } = keyOf(request);
  const same = occupant.startsWith(`${key}\n`) && occupant.endsWith(`\n${output}`);
  return same && (await disk.size(path)) === null;
}

function sidecarIsFree(index: JobIndex, file: string, identity: string): boolean {
  const occupant = index.identityAt(sidecarOf(file));
  return (
    occupant === undefined ||
    occupant === identity ||
    (occupant === null && index.identityAt(file) !== undefined)
  );
}

function saved(
  { file, bytes, sha256, mime, check }: IndexLine,
  moved: { from: string; to: string }[],
): SaveResult {
  return { kind: "saved", file, bytes, sha256, mime, check, ...(moved.length === 0 ? {} : { moved }) };
}

/** Called only when the new file is complete: until then the old file stays in place. */
async function makeWay(
  disk: Disk,
  { jobFolder, replaces = [] }: SaveRequest,
  index: JobIndex,
): Promise<{ from: string; to: string }[]> {
  const moved: { from: string; to: string }[] = [];
  for (const from of replaces) {
    const occupant = index.identityAt(from);
    const line = typeof occupant === "string" ? index.find(occupant) : undefined;
    if (line?.file !== from || isSuperseded(from)) continue;
    if ((await disk.size(join(jobFolder, from))) === null) continue;
    moved.push({ from, to: await supersede(disk, jobFolder, index, line) });
  }
  return moved;
}
