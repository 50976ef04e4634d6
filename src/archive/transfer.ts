import { createHash } from "node:crypto";
import type { Clock } from "../clock.js";
import type { NewFile } from "../core/disk.js";
import type { Download, DownloadReply } from "../core/send.js";
import { AddressRefused } from "./address.js";

/** One transfer: from a signed URL into an open file, hashed on the way, within limits. */

export interface Limits {
  /** Bytes of one output. */
  bytesMax: number;
  /** Milliseconds for the whole transfer. */
  msMax: number;
  /** Milliseconds without a byte. */
  stallMsMax: number;
}

const mebibyte = 2 ** 20;
const minuteMs = 60_000;

/** Generous for what such services make today, and an end to a server that sends forever. */
export const limitsOf: Readonly<Record<"image" | "audio" | "video", Limits>> = {
  image: { bytesMax: 256 * mebibyte, msMax: 10 * minuteMs, stallMsMax: minuteMs },
  audio: { bytesMax: 1024 * mebibyte, msMax: 30 * minuteMs, stallMsMax: minuteMs },
  video: { bytesMax: 8192 * mebibyte, msMax: 120 * minuteMs, stallMsMax: minuteMs },
};

export type Transfer =
  | { kind: "received"; bytes: number; sha256: string }
  | { kind: "expired"; status: number }
  | { kind: "try_again"; reason: string }
  | { kind: "refused"; reason: string };

export interface TransferPorts {
  download: Download;
  clock: Clock;
  signal?: AbortSignal;
}

/** Statuses of a signed URL that is no longer, or not yet, good. S3 answers 400 when the signer's token expired. */
const expiredStatuses = new Set([400, 401, 403, 404, 410]);

/** The body broke off, as opposed to the disk. */
class BrokenOff extends Error {}

/** Fetches `url` into `file`. Rejects only with errors of the disk. */
export async function transfer(
  url: string,
  file: NewFile,
  limits: Limits,
  ports: TransferPorts,
): Promise<Transfer> {
  const watch = new Watch(ports.clock, limits, ports.signal);
  try {
    const reply = await ports.download(url, { headers: {}, signal: watch.signal }).catch((error: unknown) => {
      if (error instanceof AddressRefused) throw error;
      throw new BrokenOff(reasonOf(error));
    });
    watch.moved();
    const early = judge(reply, limits);
    if (early === null) return await take(reply, file, limits, watch);
    await drop(reply.body);
    return early;
  } catch (error) {
    if (error instanceof AddressRefused) return { kind: "refused", reason: error.message };
    if (error instanceof BrokenOff) return { kind: "try_again", reason: watch.reason ?? error.message };
    throw error;
  } finally {
    watch.end();
  }
}

/** What status and headers alone decide; null when the body is wanted. */
function judge({ status, headers }: DownloadReply, limits: Limits): Transfer | null {
  if (expiredStatuses.has(status)) return { kind: "expired", status };
  if (status !== 200) return { kind: "try_again", reason: `the server answered ${status}` };
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    return { kind: "try_again", reason: `the server sent it ${encoding}-encoded, unasked` };
  const stated = statedLength(headers);
  return stated !== null && stated > limits.bytesMax ? tooLarge(`${stated} bytes`, limits) : null;
}

function statedLength(headers: Readonly<Record<string, string>>): number | null {
  const text = headers["content-length"];
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : null;
}

function tooLarge(found: string, { bytesMax }: Limits): Transfer {
  return { kind: "refused", reason: `the output has ${found}; expected at most ${bytesMax}` };
}

async function take(reply: DownloadReply, file: NewFile, limits: Limits, watch: Watch): Promise<Transfer> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of marked(reply.body)) {
    bytes += piece.length;
    if (bytes > limits.bytesMax) return tooLarge("more bytes", limits);
    hash.update(piece);
    await file.write(piece);
    // Only now: a slow disk is not a stalled server.
    watch.moved();
  }
  const stated = statedLength(reply.headers);
  if (stated !== null && stated !== bytes)
    return { kind: "try_again", reason: `the transfer ended after ${bytes} of ${stated} bytes` };
  return { kind: "received", bytes, sha256: hash.digest("hex") };
}

async function* marked(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw new BrokenOff(reasonOf(error));
  }
}

/** Leaving after the first piece closes the connection; an error page is not worth more. */
async function drop(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of marked(body)) return;
}

/** Aborts a transfer that stands still, lasts too long, or is no longer wanted. */
class Watch {
  private readonly abort = new AbortController();
  private readonly over = new AbortController();
  private readonly endMs: number;
  private stalledMs: number;
  /** Why it was aborted. */
  reason: string | null = null;
  private readonly unwanted = () => this.give("the download was interrupted");

  constructor(
    private readonly clock: Clock,
    private readonly limits: Limits,
    private readonly wanted: AbortSignal | undefined,
  ) {
    this.endMs = clock.monotonic() + limits.msMax;
    this.stalledMs = clock.monotonic() + limits.stallMsMax;
    wanted?.addEventListener("abort", this.unwanted, { once: true });
    if (wanted?.aborted === true) this.unwanted();
    else void this.look();
  }

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** A byte came. */
  moved(): void {
    this.stalledMs = this.clock.monotonic() + this.limits.stallMsMax;
  }

  end(): void {
    this.over.abort();
    this.wanted?.removeEventListener("abort", this.unwanted);
  }

  private async look(): Promise<void> {
    while (!this.over.signal.aborted) {
      const now = this.clock.monotonic();
      if (now >= this.endMs) return this.give(`the transfer took longer than ${this.limits.msMax / 1000} s`);
      if (now >= this.stalledMs) return this.give(`no byte came for ${this.limits.stallMsMax / 1000} s`);
      await this.clock.sleep(Math.min(this.endMs, this.stalledMs) - now, this.over.signal);
    }
  }

  private give(reason: string): void {
    this.reason = reason;
    this.abort.abort();
  }
}

/** The URL is signed, so nothing of it goes into a reason. */
function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const text = typeof code === "string" ? `${code}: ${message}` : String(message ?? error);
  return `the transfer broke off (${text.replace(/\s+/g, " ").slice(0, 200)})`;
}
