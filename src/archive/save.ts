import { dirname, join, posix, relative } from "node:path";
import type { Clock } from "../clock.js";
import type { Disk } from "../core/ports/disk.js";
import type { Download } from "../core/ports/send.js";
import { acceptedContent, type MediaContent, measuresOf } from "./check/content.js";
import { holds, isAboutName, linked, numberedName, outputName, placeFor, safeName } from "./disk/names.js";
import { type DiskRefusal, refusalNow, refusalOf } from "./disk/space.js";
import { type Temporary, temporaryName } from "./disk/temporary.js";
import { type Partial, Partials } from "./download/partial.js";
import { type Limits, limitsFor, type Transfer, transfer } from "./download/transfer.js";
import {
  Indexes,
  type IndexFacts,
  type IndexLine,
  identityOf,
  type JobIndex,
  lengthUnknown,
  sidecarOf,
  writeSidecar,
} from "./index-file.js";
import { isSuperseded, supersede } from "./move.js";
import { quarantine, quarantined } from "./quarantine.js";

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
  /** A person takes what comes, even if it fails its check. */
  accepts?: boolean;
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
  /** Replaces the limits of the category. */
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
      /** The bucket that has it instead of this disk. */
      bucket?: string;
      /** Files that were moved away, with their new names. */
      moved?: readonly { from: string; to: string }[];
    }
  /** The URL has expired: fetch a new one. */
  | { kind: "expired"; status: number }
  /** Broken off, stalled, cut short, or refused by the check: then the file is in `_quarantine/`, with this hash. */
  | { kind: "try_again"; reason: string; sha256?: string; pauseMs?: number }
  /** For good: an address that is not allowed, or an output that is too large. */
  | { kind: "refused"; reason: string }
  | DiskRefusal;

/** The archive of one process. All saves share the open indexes and the broken transfers. */
export interface Archive {
  save(request: SaveRequest, signal?: AbortSignal): Promise<SaveResult>;
  /** The first half of a save, on any host that shares the folder; see ReceivedFile. */
  receive(request: SaveRequest, signal: AbortSignal): Promise<Reception>;
  /** The output, if it is in the archive already; null if it is not. */
  known(request: SaveRequest): Promise<SaveResult | null>;
  /** The second half, in the process with the workspace's lock. */
  place(request: SaveRequest, received: ReceivedFile): Promise<SaveResult>;
  /** Why the disk would refuse every file of a job's folder now; null if there is room. */
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
    receive: (request, signal) => receiveOutput(request, { ...shared, signal }),
    async known(request) {
      try {
        return await knownFile(request, ports.disk, await shared.indexes.of(request.jobFolder));
      } catch (error) {
        return refusalOf(error, request.jobFolder);
      }
    },
    place: (request, received) => placeReceived(request, received, shared),
    refusal: (jobFolder) => refusalNow(ports.disk, jobFolder),
    indexOf: (jobFolder) => shared.indexes.of(jobFolder),
    close: () => shared.partials.close(),
  };
}

/** Fetches one output into the archive, unless it is there already. Rejects only on a defect of the program. */
export async function saveOutput(request: SaveRequest, ports: SavePorts): Promise<SaveResult> {
  try {
    const index = await ports.indexes.of(request.jobFolder);
    const known = await knownFile(request, ports.disk, index);
    if (known !== null) return known;
    return await receive(request, ports, (received) => place(request, ports, index, received));
  } catch (error) {
    return refusalOf(error, request.jobFolder);
  }
}

/** The output, if it is in the archive already. */
async function knownFile(
  request: SaveRequest,
  disk: Disk,
  index: JobIndex,
): Promise<Extract<SaveResult, { kind: "saved" }> | null> {
  const known = index.find(identityOf(keyOf(request)));
  if (known === undefined || !(await holds(disk, join(request.jobFolder, known.file), known))) return null;
  const line = await withPlace(known, disk, request.jobFolder);
  await index.add(line);
  return saved(line, []);
}

/** The line, naming the bucket that has its file if this disk does not. */
async function withPlace(line: IndexLine, disk: Disk, jobFolder: string): Promise<IndexLine> {
  const { bucket: _, ...rest } = line;
  const inBucket = await disk.inBucket?.(join(jobFolder, line.file));
  return inBucket ? { ...rest, bucket: inBucket.bucket } : rest;
}

/**
 * Where many hosts share a job's folder, any of them may do the first half of a save: download, check and keep the file,
 * durable, under a temporary name. Only the process with the workspace's lock does the second: it gives the file its
 * name and writes the index, so that no two hosts give names.
 */
export interface ReceivedFile {
  kind: "received";
  /** The temporary file, relative to the job's folder, with `/` between segments. */
  temporary: string;
  bytes: number;
  sha256: string;
  lengthStated: boolean;
  content: Extract<MediaContent, { kind: "media" }>;
}

export type Reception = ReceivedFile | Exclude<SaveResult, { kind: "saved" }>;

/** The first half. Rejects only on a defect of the program. */
async function receiveOutput(request: SaveRequest, ports: SavePorts): Promise<Reception> {
  try {
    return await receive<Reception>(request, ports, async ({ temporary, received, content }) => {
      await temporary.file.sync();
      await ports.disk.syncFolder(dirname(temporary.path));
      await temporary.release();
      const { bytes, sha256, lengthStated } = received;
      const path = relative(request.jobFolder, temporary.path).replaceAll("\\", "/");
      return { kind: "received", temporary: path, bytes, sha256, lengthStated, content };
    });
  } catch (error) {
    return refusalOf(error, request.jobFolder);
  }
}

/** Removes a received file that is no longer wanted. */
export async function dropReceived(
  disk: Disk,
  jobFolder: string,
  { temporary }: ReceivedFile,
): Promise<void> {
  if (temporaryName.test(posix.basename(temporary)))
    await disk.unlink(join(jobFolder, temporary)).catch(() => undefined);
}

/** The second half. Rejects only on a defect of the program. */
async function placeReceived(
  request: SaveRequest,
  { temporary: path, bytes, sha256, lengthStated, content }: ReceivedFile,
  ports: SavePorts,
): Promise<SaveResult> {
  const { disk } = ports;
  const temporary = join(request.jobFolder, path);
  try {
    if (!temporaryName.test(posix.basename(path)) || posix.normalize(path) !== path || path.startsWith(".."))
      return { kind: "try_again", reason: `${path} is not a temporary file of the archive` };
    const wanted = outputName(safeName(request.name), request.outputNumber, request.outputCount);
    const { name, folder } = await placeFor(disk, request.jobFolder, wanted);
    const inBucket = await disk.inBucket?.(temporary);
    if ((await disk.size(temporary)) !== bytes || (inBucket && inBucket.sha256 !== sha256))
      return { kind: "try_again", reason: `the downloaded file ${temporary} is gone or not whole` };
    const index = await ports.indexes.of(request.jobFolder);
    const discard = () => disk.unlink(temporary).catch(() => undefined);
    const file = { path: temporary, discard, file: { sync: async () => undefined } };
    return await place(request, ports, index, {
      name,
      folder,
      temporary: file,
      received: { bytes, sha256, lengthStated },
      content,
    });
  } catch (error) {
    return refusalOf(error, request.jobFolder);
  }
}

function keyOf({ index, outputNumber }: SaveRequest): { key: string; task: string; output: number } {
  return { key: index.key, task: index.task, output: outputNumber };
}

/** Downloads and checks, and hands the file over. Rejects with errors of the disk. */
async function receive<Result>(
  request: SaveRequest,
  ports: SavePorts,
  use: (checked: Checked & { temporary: Temporary }) => Promise<Result>,
): Promise<Result | Exclude<SaveResult, { kind: "saved" }>> {
  const wanted = outputName(safeName(request.name), request.outputNumber, request.outputCount);
  const { name, folder } = await placeFor(ports.disk, request.jobFolder, wanted);
  const identity = identityOf(keyOf(request));
  const partial = await ports.partials.open(ports.disk, folder, identity);
  const { temporary } = partial;
  let kept = false;
  try {
    const limits = ports.limits ?? limitsFor(request.category);
    const freeBytes = () => ports.disk.freeBytes(folder);
    const received =
      (await fromQuarantine(request, ports.disk, partial)) ??
      (await transfer(request.url, partial, limits, { ...ports, freeBytes }));
    if (received.kind !== "received") {
      kept = received.kind !== "refused" && partial.isWorthKeeping;
      return received;
    }
    const found = await ports.inspect(temporary.path, request.category, received.bytes);
    if (found.kind === "bad" && request.accepts !== true)
      return await reject(request, ports, temporary, received, found.reason);
    const content =
      found.kind === "media"
        ? found
        : await acceptedContent(ports.disk, temporary.path, request.url, found.reason);
    return await use({ name, folder, temporary, received, content });
  } finally {
    if (kept) await ports.partials.keep(identity, partial);
    else await temporary.abandon();
  }
}

type Received = Extract<Transfer, { kind: "received" }>;

/** What a person accepts may be gone at the service; the download that failed its check is kept here. */
async function fromQuarantine(
  { jobFolder, index, outputNumber, accepts }: SaveRequest,
  disk: Disk,
  partial: Partial,
): Promise<Received | null> {
  if (accepts !== true) return null;
  const found = await quarantined(disk, jobFolder, { task: index.task, output: outputNumber });
  if (found === null) return null;
  await partial.begin("", {});
  for await (const piece of disk.read(found.path)) await partial.take(piece);
  await partial.complete();
  const { bytes } = partial;
  const { sha256 } = partial.sums.end();
  if (sha256 === found.sha256) return { kind: "received", bytes, sha256, lengthStated: true };
  await partial.begin("", {});
  return null;
}

async function reject(
  request: SaveRequest,
  { disk }: SavePorts,
  temporary: Temporary,
  { bytes, sha256 }: Received,
  reason: string,
): Promise<Extract<SaveResult, { kind: "try_again" }>> {
  const { index, outputNumber: output, jobFolder, name } = request;
  const facts = { item: index.item, task: index.task, output, bytes, sha256, reason };
  const kept = await quarantine(disk, jobFolder, temporary.path, safeName(name), facts).catch(
    (error: unknown) => {
      // Something else is in the place of the quarantine: that must not stop the other files.
      if (isAboutName(error)) return null;
      throw error;
    },
  );
  return { kind: "try_again", reason: kept === null ? reason : `${reason} (kept as ${kept})`, sha256 };
}

interface Checked {
  /** Wanted, safe, relative to the job's folder, without extension. */
  name: string;
  /** Its folder: absolute path. */
  folder: string;
  temporary: Pick<Temporary, "path" | "discard"> & { file: Pick<Temporary["file"], "sync"> };
  received: Pick<Received, "bytes" | "sha256" | "lengthStated">;
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
  const file = await index.inTurn(checked.name, () =>
    giveName(disk, request, index, { ...checked, sidecars }),
  );
  const { bytes, sha256 } = received;
  const { mime } = content;
  const unproven = content.check !== "decoded" && !received.lengthStated;
  const check = [content.check, content.because, unproven ? lengthUnknown : undefined]
    .filter((piece) => piece !== undefined)
    .join(", ");
  const placed: IndexLine = {
    ...request.index,
    output: request.outputNumber,
    file,
    bytes,
    sha256,
    mime,
    ...measuresOf(content),
    check,
    saved: new Date(clock.now()).toISOString(),
    bulkgen: version,
  };
  const line = await withPlace(placed, disk, request.jobFolder);
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
    const facts = { ...received, mime: content.mime };
    if (occupant !== null && (await linked(disk, temporary.path, path, facts))) return file;
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
  { file, bytes, sha256, mime, check, bucket }: IndexLine,
  moved: { from: string; to: string }[],
): Extract<SaveResult, { kind: "saved" }> {
  const where = bucket === undefined ? {} : { bucket };
  return {
    kind: "saved",
    file,
    bytes,
    sha256,
    mime,
    check,
    ...where,
    ...(moved.length === 0 ? {} : { moved }),
  };
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
    try {
      moved.push({ from, to: await supersede(disk, jobFolder, index, line) });
    } catch (error) {
      // Something else is in the place of the folder for superseded files: the old file stays, and the new one lies beside it.
      if (!isAboutName(error)) throw error;
    }
  }
  return moved;
}
