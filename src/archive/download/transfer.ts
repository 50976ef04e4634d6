import type { Clock } from "../../clock.js";
import { statedPauseMs } from "../../core/again.js";
import type { Download, DownloadReply } from "../../core/ports/send.js";
import { codingsOf, decoded } from "../../encoding.js";
import { checkSpace } from "../disk/space.js";
import { AddressRefused } from "./address.js";
import { type Partial, strongTag } from "./partial.js";

/** One transfer: from a signed URL into an open file, hashed on the way, within limits. */

export interface Limits extends TransferRate {
  /** Bytes of one output. */
  bytesMax: number;
}

const mebibyte = 2 ** 20;
const minuteMs = 60_000;

/** Far above the outputs of today's services; they stop a server that sends forever. */
const limits: Readonly<Record<"image" | "audio" | "video", Limits>> = {
  image: { bytesMax: 256 * mebibyte, msMax: 10 * minuteMs, stallMsMax: minuteMs, bytesPerSecondMin: 1024 },
  audio: { bytesMax: 1024 * mebibyte, msMax: 30 * minuteMs, stallMsMax: minuteMs, bytesPerSecondMin: 1024 },
  video: { bytesMax: 8192 * mebibyte, msMax: 120 * minuteMs, stallMsMax: minuteMs, bytesPerSecondMin: 4096 },
};

/** The limits of a category; those of video, the highest, for a category that this version does not know. */
export function limitsFor(category: string): Limits {
  return Object.hasOwn(limits, category) ? limits[category as keyof typeof limits] : limits.video;
}

/** Bytes between two checks of the free space. */
const checkEveryBytes = 16 * mebibyte;

export type Transfer =
  /** `lengthStated`: the server stated a length, and that many bytes came. */
  | { kind: "received"; bytes: number; sha256: string; lengthStated: boolean }
  | { kind: "expired"; status: number }
  /** `pauseMs`: how long the server asks to be left alone. */
  | { kind: "try_again"; reason: string; pauseMs?: number }
  | { kind: "refused"; reason: string };

export interface TransferPorts {
  download: Download;
  clock: Clock;
  signal?: AbortSignal;
  /** Free bytes on the disk of the file. */
  freeBytes(): Promise<number>;
}

/** Statuses of a signed URL that is not valid any more, or not yet. S3 answers 400 when the signer's token expired. */
const expiredStatuses = new Set([400, 401, 403, 404, 410]);

/** The transfer broke off; the disk is fine. */
class BrokenOff extends Error {}

/**
 * Fetches the rest of `partial` from `url`. Only the rest is requested when it is certain to be of the same version
 * (P14): the server must confirm a strong ETag. Otherwise the transfer starts again. Rejects only with errors of the disk.
 */
export async function transfer(
  url: string,
  partial: Partial,
  limits: Limits,
  ports: TransferPorts,
): Promise<Transfer> {
  const watch = new Watch(ports.clock, limits, ports.signal);
  try {
    if (partial.continues(url)) {
      const rest = await askFor(url, partial, { partial, limits, ports, watch });
      if (rest !== "start over") return rest;
    }
    const whole = await askFor(url, null, { partial, limits, ports, watch });
    return whole === "start over" ? { kind: "try_again", reason: "the server answered 206" } : whole;
  } catch (error) {
    if (error instanceof AddressRefused) return { kind: "refused", reason: error.message };
    if (!(error instanceof BrokenOff)) throw error;
    await partial.complete();
    return { kind: "try_again", reason: watch.reason ?? error.message };
  } finally {
    watch.end();
  }
}

interface Means {
  partial: Partial;
  limits: Limits;
  ports: TransferPorts;
  watch: Watch;
}

/** One request: for the whole file, or for the rest of `from`. */
async function askFor(url: string, from: Partial | null, means: Means): Promise<Transfer | "start over"> {
  const { limits, ports, watch, partial } = means;
  const range = from === null ? {} : { range: `bytes=${from.bytes}-`, "if-range": from.etag ?? "" };
  const reply = await ports
    .download(url, { headers: range, signal: watch.signal })
    .catch((error: unknown) => {
      if (error instanceof AddressRefused) throw error;
      throw new BrokenOff(reasonOf(error));
    });
  watch.moved(0);
  const early = judge(reply, from, limits, ports.clock.now());
  if (early !== null) {
    await drop(reply.body).catch(() => undefined);
    return early;
  }
  try {
    // A 200 to a range request is the whole file, perhaps of another version.
    // Tags and checksums of compressed content say nothing of the content without its coding.
    const isCoded = codingsOf(reply.headers).length > 0;
    if (reply.status === 200) await partial.begin(url, isCoded ? {} : reply.headers);
    return await take(reply, means);
  } catch (error) {
    // An unread body would keep its connection open, and with it the process.
    await drop(reply.body).catch(() => undefined);
    throw error;
  }
}

/** The outcome that status and headers decide; null when the body is wanted. */
function judge(
  reply: DownloadReply,
  from: Partial | null,
  limits: Limits,
  now: number,
): Transfer | "start over" | null {
  const { status, headers } = reply;
  if (expiredStatuses.has(status)) return { kind: "expired", status };
  if (from !== null && (status === 416 || (status === 206 && !isRestOf(from, headers)))) return "start over";
  if (status !== 200 && !(status === 206 && from !== null)) {
    const pauseMs = statedPauseMs(headers, now);
    const asked = pauseMs === null ? {} : { pauseMs };
    return { kind: "try_again", reason: `the server answered ${status}`, ...asked };
  }
  const whole = (statedBytes(reply) ?? 0) + (status === 206 ? (from?.bytes ?? 0) : 0);
  return whole > limits.bytesMax ? tooLarge(`${whole} bytes`, limits) : null;
}

/** Whether a 206 is the rest of the same version: its ETag is ours, and its range begins where our bytes end. */
function isRestOf(from: Partial, headers: Readonly<Record<string, string>>): boolean {
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers["content-range"] ?? "") ?? [];
  return (
    strongTag(headers["etag"]) === from.etag &&
    Number(first) === from.bytes &&
    Number(last) + 1 === Number(total) &&
    codingsOf(headers).length === 0
  );
}

/** The stated length of the body. For a range, Content-Range states it, because Content-Length may be missing. */
function statedBytes({ status, headers }: DownloadReply): number | null {
  const [, first, last] = /^bytes (\d+)-(\d+)\//.exec(headers["content-range"] ?? "") ?? [];
  if (status === 206) return Number(last) + 1 - Number(first);
  const text = headers["content-length"];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}

function tooLarge(found: string, { bytesMax }: Limits): Transfer {
  return { kind: "refused", reason: `the output has ${found}; expected at most ${bytesMax}` };
}

async function take(reply: DownloadReply, { partial, limits, ports, watch }: Means): Promise<Transfer> {
  const stated = statedBytes(reply);
  checkSpace(await ports.freeBytes(), stated ?? 0);
  let checkAt = partial.bytes + checkEveryBytes;
  const codings = codingsOf(reply.headers);
  const arrived = new Counted(reply.body);
  for await (const piece of marked(decoded(arrived, codings))) {
    if (partial.bytes + piece.length > limits.bytesMax) return tooLarge("more bytes", limits);
    if (partial.bytes > checkAt) {
      const left = stated === null ? 0 : Math.max(0, stated - arrived.bytes + piece.length);
      checkSpace(await ports.freeBytes(), left);
      checkAt = partial.bytes + checkEveryBytes;
    }
    await partial.take(piece);
    // Counted after the write: a slow disk is not a stalled server.
    watch.moved(piece.length);
  }
  await partial.complete();
  if (stated !== null && stated !== arrived.bytes)
    return { kind: "try_again", reason: `the transfer ended after ${arrived.bytes} of ${stated} bytes` };
  const { bytes } = partial;
  const { sha256, differs } = partial.sums.end();
  // Bytes that were damaged on the way must not be continued.
  partial.etag = null;
  if (differs === null) return { kind: "received", bytes, sha256, lengthStated: stated !== null };
  return {
    kind: "try_again",
    reason: `the ${differs} checksum of the content is not the one that the server stated`,
  };
}

/** Counts the bytes that arrive, before they are decoded. */
class Counted implements AsyncIterable<Uint8Array> {
  bytes = 0;

  constructor(private readonly body: AsyncIterable<Uint8Array>) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for await (const piece of this.body) {
      this.bytes += piece.length;
      yield piece;
    }
  }
}

async function* marked(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw new BrokenOff(reasonOf(error));
  }
}

/** Stops after the first piece, which closes the connection. */
async function drop(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of marked(body)) return;
}

/** A reason never contains the URL, because it is signed. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const text = typeof code === "string" ? `${code}: ${message}` : String(message ?? error);
  return `the transfer broke off (${text.replace(/\s+/g, " ").slice(0, 200)})`;
}

export interface TransferRate {
  /** Milliseconds for the whole transfer. */
  msMax: number;
  /** Milliseconds without a byte. */
  stallMsMax: number;
  /** Least bytes a second, measured over each `stallMsMax`. */
  bytesPerSecondMin: number;
}

/** Aborts a transfer that stalls, is too slow, takes too long, or is no longer wanted. */
export class Watch {
  private readonly abort = new AbortController();
  private readonly over = new AbortController();
  private readonly endMs: number;
  private stalledMs: number;
  /** The current interval in which the speed is measured. */
  private stretch: { endMs: number; bytes: number };
  /** Why it was aborted. */
  reason: string | null = null;
  private readonly unwanted = () => this.give("the download was interrupted");

  constructor(
    private readonly clock: Clock,
    private readonly pace: TransferRate,
    private readonly wanted: AbortSignal | undefined,
  ) {
    const now = clock.monotonic();
    this.endMs = now + pace.msMax;
    this.stalledMs = now + pace.stallMsMax;
    this.stretch = { endMs: this.stalledMs, bytes: 0 };
    wanted?.addEventListener("abort", this.unwanted, { once: true });
    if (wanted?.aborted === true) this.unwanted();
    else void this.watch();
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** Call it when bytes or the answer arrived. */
  moved(bytes: number): void {
    this.stalledMs = this.clock.monotonic() + this.pace.stallMsMax;
    this.stretch.bytes += bytes;
  }

  end(): void {
    // Given a reason, abort does not create an error with a stack.
    this.over.abort("ended");
    this.wanted?.removeEventListener("abort", this.unwanted);
  }

  private async watch(): Promise<void> {
    while (!this.over.signal.aborted) {
      const now = this.clock.monotonic();
      const reason = this.objection(now);
      if (reason !== null) return this.give(reason);
      const next = Math.min(this.endMs, this.stalledMs, this.stretch.endMs);
      await this.clock.sleep(next - now, this.over.signal);
    }
  }

  private objection(now: number): string | null {
    const { msMax, stallMsMax, bytesPerSecondMin } = this.pace;
    const seconds = stallMsMax / 1000;
    if (now >= this.endMs) return `the transfer took longer than ${msMax / 1000} s`;
    if (now >= this.stalledMs) return `no bytes arrived for ${seconds} s`;
    if (now < this.stretch.endMs) return null;
    const { bytes } = this.stretch;
    this.stretch = { endMs: now + stallMsMax, bytes: 0 };
    if (bytes >= bytesPerSecondMin * seconds) return null;
    return `only ${bytes} bytes arrived in ${seconds} s; expected at least ${bytesPerSecondMin} a second`;
  }

  private give(reason: string): void {
    this.reason = reason;
    this.abort.abort();
  }
}
