import { createHash } from "node:crypto";
import type { Disk } from "../../core/ports/disk.js";
import { openTemporary, type Temporary } from "../disk/temporary.js";
import { Checksums } from "./checksum.js";

/**
 * Broken transfers, kept while the process lives, so that the next try fetches only the rest. A partial file of an
 * earlier process is never continued: after a power cut it is unknown which of its bytes reached the device.
 */

/** Bytes of one write: pieces from the network are small, and each write costs a turn of the event loop. */
const writeBytes = 512 * 1024;
/** Bytes between two flushes during the transfer, so that the sync at the end is short. */
const flushBytes = 16 * 2 ** 20;

/** A partly received file with the hashes of its bytes so far. */
export class Partial {
  bytes = 0;
  sums = new Checksums({});
  /** The strong ETag of the version of these bytes; without it the transfer cannot be continued. */
  etag: string | null = null;
  private gathered: Uint8Array[] = [];
  private gatheredBytes = 0;
  private writing: Promise<void> = Promise.resolve();
  private unflushedBytes = 0;
  private flushing: Promise<void> | null = null;
  /** A device reports lost bytes only once, so the sync at the end would not report them again. */
  private flushError: unknown = null;
  /** Hash of the URL without its query: a fresh signature changes only the query. */
  private place = "";

  constructor(
    readonly temporary: Temporary,
    readonly folder: string,
  ) {}

  /** Starts from byte 0 with the answer of this URL and its headers. */
  async begin(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
    await this.complete();
    if (this.bytes > 0) await this.temporary.file.empty();
    this.bytes = 0;
    this.sums = new Checksums(headers);
    this.place = placeOf(url);
    this.etag = strongTag(headers["etag"]);
  }

  /** Takes the next bytes while an earlier write is in progress. Rejects with the error of that write. */
  async take(piece: Uint8Array): Promise<void> {
    this.gathered.push(piece);
    this.gatheredBytes += piece.length;
    this.bytes += piece.length;
    if (this.gatheredBytes >= writeBytes) await this.write();
    this.sums.update(piece);
  }

  /** Resolves when all bytes are in the file. Rejects with the error of an earlier write or flush. */
  async complete(): Promise<void> {
    if (this.gatheredBytes > 0) await this.write();
    await this.writing;
    await this.flushing;
    if (this.flushError !== null) throw this.flushError;
  }

  private async write(): Promise<void> {
    const bytes = this.gathered.length === 1 ? this.gathered[0] : Buffer.concat(this.gathered);
    this.gathered = [];
    this.gatheredBytes = 0;
    await this.writing;
    if (bytes === undefined) return;
    this.flush(bytes.length);
    this.writing = this.temporary.file.write(bytes);
    // Awaited before the next write, or by `complete`.
    this.writing.catch(() => undefined);
  }

  /** Flushes the bytes that are in the file, one flush at a time. */
  private flush(bytes: number): void {
    this.unflushedBytes += bytes;
    if (this.unflushedBytes < flushBytes || this.flushing !== null) return;
    this.unflushedBytes = 0;
    this.flushing = this.temporary.file
      .sync()
      .catch((error: unknown) => {
        this.flushError ??= error;
      })
      .finally(() => {
        this.flushing = null;
      });
  }

  /** Whether the rest can be requested at this URL. */
  continues(url: string): boolean {
    return this.bytes > 0 && this.etag !== null && this.place === placeOf(url);
  }

  get isWorthKeeping(): boolean {
    return this.bytes > 0 && this.etag !== null;
  }
}

/** Null for a weak tag, which two versions may share, and for a malformed tag. */
export function strongTag(etag: string | undefined): string | null {
  return etag !== undefined && /^"[^"]*"$/.test(etag) ? etag : null;
}

function placeOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { origin, pathname } = new URL(url);
  return createHash("sha256").update(`${origin}${pathname}`).digest("hex");
}

/** The broken transfers of one process, by the identity of their output. */
export class Partials {
  private readonly kept = new Map<string, Partial>();

  constructor(private readonly keepMax = 32) {}

  /** The partial of an output in that folder, or a new one. */
  async open(disk: Disk, folder: string, identity: string): Promise<Partial> {
    const kept = this.kept.get(identity);
    this.kept.delete(identity);
    if (kept?.folder === folder) return kept;
    await kept?.temporary.abandon();
    return new Partial(await openTemporary(disk, folder, identity), folder);
  }

  /** Keeps at most `keepMax`, because each holds an open file and space on the disk. The oldest is discarded. */
  async keep(identity: string, partial: Partial): Promise<void> {
    this.kept.set(identity, partial);
    const [oldest] = this.kept.keys();
    if (this.kept.size > this.keepMax && oldest !== undefined) await this.discard(oldest);
  }

  /** Discards all partial files. */
  async close(): Promise<void> {
    for (const identity of [...this.kept.keys()]) await this.discard(identity);
  }

  private async discard(identity: string): Promise<void> {
    await this.kept.get(identity)?.temporary.abandon();
    this.kept.delete(identity);
  }
}
