import { createHash } from "node:crypto";
import type { Disk } from "../../core/ports/disk.js";
import { openTemporary, type Temporary } from "../disk/temporary.js";
import { Checksums } from "./checksum.js";

/**
 * Transfers that broke off, kept while the process lives so that the next try fetches only the rest. What a dead
 * process left is never gone on with: after a power cut nobody knows which of its bytes are on the device.
 */

/** Bytes that are written at once: a network's pieces are small, and each write costs a turn. */
const writeBytes = 512 * 1024;
/** Bytes after which the device is set to work while more come in, so that little is left for the sync at the end. */
const flushBytes = 16 * 2 ** 20;

/** A file on its way in, and what is known of the bytes that it has. */
export class Partial {
  bytes = 0;
  sums = new Checksums({});
  /** The strong ETag of the version that the bytes are from; without one they cannot be gone on with. */
  etag: string | null = null;
  private gathered: Uint8Array[] = [];
  private gatheredBytes = 0;
  private writing: Promise<void> = Promise.resolve();
  private unflushedBytes = 0;
  private flushing: Promise<void> | null = null;
  /** A device tells of bytes that it lost once; the sync at the end would hear nothing of them. */
  private flushError: unknown = null;
  /** Address without its signature, of which a fresh one only changes the query. */
  private place = "";

  constructor(
    readonly temporary: Temporary,
    readonly folder: string,
  ) {}

  /** The bytes from 0 on are to come from this address, under these headers. */
  async begin(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
    await this.settle();
    if (this.bytes > 0) await this.temporary.file.empty();
    this.bytes = 0;
    this.sums = new Checksums(headers);
    this.place = placeOf(url);
    this.etag = strongTag(headers["etag"]);
  }

  /** One write is under way while the next bytes come in and are hashed. Rejects with what became of an earlier one. */
  async take(piece: Uint8Array): Promise<void> {
    this.gathered.push(piece);
    this.gatheredBytes += piece.length;
    this.bytes += piece.length;
    if (this.gatheredBytes >= writeBytes) await this.write();
    this.sums.update(piece);
  }

  /** Resolves when all that was taken is in the file. Rejects with what became of an earlier write or flush. */
  async settle(): Promise<void> {
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
    // It is awaited before the next one, or by `settle`.
    this.writing.catch(() => undefined);
  }

  /** One flush at a time, of whatever is in the file when it begins. */
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

  /** Whether the rest may be asked for at this address. */
  continues(url: string): boolean {
    return this.bytes > 0 && this.etag !== null && this.place === placeOf(url);
  }

  get isWorthKeeping(): boolean {
    return this.bytes > 0 && this.etag !== null;
  }
}

/** Null for a weak tag, which two versions may share, and for what is no tag. */
export function strongTag(etag: string | undefined): string | null {
  return etag !== undefined && /^"[^"]*"$/.test(etag) ? etag : null;
}

function placeOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { origin, pathname } = new URL(url);
  return createHash("sha256").update(`${origin}${pathname}`).digest("hex");
}

/** The transfers of one process that broke off, by the identity of their output. */
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

  /** Each holds an open file and its bytes on the disk, so there are only so many: the oldest goes. */
  async keep(identity: string, partial: Partial): Promise<void> {
    this.kept.set(identity, partial);
    const [oldest] = this.kept.keys();
    if (this.kept.size > this.keepMax && oldest !== undefined) await this.discard(oldest);
  }

  /** When nothing more is fetched. */
  async close(): Promise<void> {
    for (const identity of [...this.kept.keys()]) await this.discard(identity);
  }

  private async discard(identity: string): Promise<void> {
    await this.kept.get(identity)?.temporary.abandon();
    this.kept.delete(identity);
  }
}
