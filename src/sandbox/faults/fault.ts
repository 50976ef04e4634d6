import { z } from "zod";
import type { FileAnswer } from "../../service/answers/reply.js";
import { type FileSending, shareOf } from "../../service/http/http.js";

/**
 * Everything that can be made to go wrong. A fault says what happens, never how it is done: a socket and a
 * simulation each do it in their own way.
 */
const ms = z.int().min(0).max(86_400_000);
const share = z.number().min(0).max(1);

/** Faults of the way there and back. */
const wayFaults = [
  /** The connection breaks before the service sees the request. */
  z.strictObject({ kind: z.literal("lost-request") }),
  /** The service does what was asked, and the connection breaks before its answer arrives. */
  z.strictObject({ kind: z.literal("lost-reply") }),
  /** The connection breaks at once, and the service sees the request this much later. */
  z.strictObject({ kind: z.literal("late-arrival"), delayMs: ms.default(30_000) }),
  z.strictObject({ kind: z.literal("slow-answer"), delayMs: ms.default(5_000) }),
  /** A proxy answers instead of the service; `seen` says whether the service saw the request. */
  z.strictObject({
    kind: z.literal("http-error"),
    status: z.int().min(500).max(599).default(502),
    body: z.enum(["html", "empty"]).default("html"),
    seen: z.boolean().default(false),
  }),
  /** The answer's body ends in the middle, and its length agrees with that. */
  z.strictObject({ kind: z.literal("truncated-json") }),
  /** The answer's body is whole and no JSON. */
  z.strictObject({ kind: z.literal("malformed-json") }),
  /** The connection breaks in the middle of the answer. */
  z.strictObject({ kind: z.literal("cut-reply") }),
  z.strictObject({ kind: z.literal("slow-bytes"), bytesPerSecond: z.int().min(1).default(100) }),
] as const;

/** Faults of the service itself. */
const insideFaults = [
  z.strictObject({ kind: z.literal("spurious-429") }),
  z.strictObject({ kind: z.literal("internal-error") }),
  z.strictObject({ kind: z.literal("generation-error") }),
  z.strictObject({
    kind: z.literal("task-fails"),
    error: z.string().min(1).default("The provider could not complete the generation."),
  }),
  z.strictObject({ kind: z.literal("task-never-finishes") }),
  z.strictObject({ kind: z.literal("task-vanishes"), afterMs: ms.default(0) }),
] as const;

const downloadFaults = [
  /** Only this share of the file comes. Either the connection breaks then, or the length pretends that it is all. */
  z.strictObject({
    kind: z.literal("download-truncated"),
    keep: share.default(0.5),
    pretends: z.boolean().default(false),
  }),
  /** After this share nothing comes for this long. */
  z.strictObject({
    kind: z.literal("download-stalled"),
    keep: share.default(0.5),
    forMs: ms.default(600_000),
  }),
  /** Some bytes are changed, from this share of the file on; length and ETag stay. */
  z.strictObject({ kind: z.literal("download-corrupt"), at: share.default(0) }),
  /** The file has another ETag at an unchanged address. */
  z.strictObject({ kind: z.literal("download-new-etag") }),
  z.strictObject({ kind: z.literal("download-ignores-range") }),
  /** The URL is refused as expired before its time. */
  z.strictObject({ kind: z.literal("download-expired") }),
  /** The file is this many redirects away, or at another address. */
  z.strictObject({
    kind: z.literal("download-redirect"),
    hops: z.int().min(1).max(100).default(1),
    to: z.url().optional(),
  }),
] as const;

const anyFault = z.discriminatedUnion("kind", [...wayFaults, ...insideFaults, ...downloadFaults]);

/** A fault with its details, or its bare kind. */
export const fault = z.preprocess((value) => (typeof value === "string" ? { kind: value } : value), anyFault);

export type Fault = z.output<typeof anyFault>;
export type FaultSettings = z.input<typeof anyFault>;
export type DownloadFault = Extract<Fault, { kind: `download-${string}` }>;
export type RequestFault = Exclude<Fault, DownloadFault>;

/** What a download's fault makes of the file itself, before any of it is sent. */
export function spoiledFile(file: FileAnswer, fault: DownloadFault | null): FileAnswer {
  switch (fault?.kind) {
    case "download-corrupt":
      return { ...file, bytes: corrupted(file.bytes, fault.at) };
    case "download-new-etag":
      return { ...file, etag: `"${file.etag.replaceAll('"', "")}-again"` };
    case "download-truncated":
      return fault.pretends
        ? { ...file, bytes: file.bytes.subarray(0, shareOf(file.bytes, fault.keep)) }
        : file;
    default:
      return file;
  }
}

/** How a file is sent under a download's fault. */
export function sendingUnder(fault: DownloadFault | null): FileSending {
  switch (fault?.kind) {
    case "download-ignores-range":
      return { ignoresRange: true };
    case "download-truncated":
      return fault.pretends ? {} : { breaksAt: fault.keep };
    case "download-stalled":
      return { stalls: { at: fault.keep, ms: fault.forMs } };
    default:
      return {};
  }
}

/** A copy with sixteen bytes turned over. */
function corrupted(bytes: Uint8Array, at: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  const first = Math.min(shareOf(bytes, at), Math.max(0, bytes.byteLength - 16));
  for (let index = first; index < Math.min(first + 16, copy.length); index++)
    copy[index] = ~(copy[index] ?? 0);
  return copy;
}
