import { hash } from "node:crypto";
import type { Download, DownloadOptions, DownloadReply } from "../../src/core/ports/send.js";
import type { DownloadFault } from "../../src/sandbox/faults/fault.js";
import { spoiledFile } from "../../src/sandbox/faults/fault.js";
import { fileReply, written } from "../../src/service/answers/reply.js";
import { shareOf } from "../../src/service/http/http.js";
import type { TaskRecord } from "../../src/service/state/state.js";
import { chance } from "./chance.js";
import type { FaultDesk } from "./fault-desk.js";
import type { Kernel } from "./kernel.js";
import { formOf, outputBytes } from "./output-bytes.js";
import type { SimulatedService } from "./service.js";

/** Where the service keeps its outputs, in place of `Download`. */
export class FileServer {
  private count = 0;

  constructor(
    private readonly kernel: Kernel,
    private readonly service: SimulatedService,
    private readonly desk: FaultDesk,
    private readonly seed: number,
    private readonly pieceMs = 40,
  ) {}

  /** The `Download` of one process; `asleep` marks the waits for virtual time within real work. */
  to(asleep: (wait: () => Promise<void>) => Promise<void>): Download {
    return async (url, options) => {
      const nth = ++this.count;
      const { pathname, searchParams } = new URL(url);
      const fault = this.desk.ofDownload(nth, pathname.split("/")[2] ?? "");
      const lot = chance(this.seed, "download", nth);
      await asleep(() => this.wait(lot.scale(3, 800), options));
      if (fault?.kind === "download-expired") return reply(403, {}, none());
      const found = this.service.world.file(this.kernel.now(), pathname, Object.fromEntries(searchParams));
      if ("refused" in found) {
        const { status, body } = written(found.refused);
        return reply(status, {}, once(Buffer.from(body)));
      }
      const { range, "if-range": ifRange } = options.headers;
      const isRanged = fault?.kind !== "download-ignores-range";
      const sent = fileReply(versionOf(found, fault), isRanged ? range : undefined, ifRange);
      const body = this.body(sent.bytes ?? Buffer.alloc(0), fault, options, asleep, lot.whole(1, 3));
      return reply(sent.status, lowerCase(sent.headers), body);
    };
  }

  private async *body(
    bytes: Uint8Array,
    fault: DownloadFault | null,
    options: DownloadOptions,
    asleep: (wait: () => Promise<void>) => Promise<void>,
    pieces: number,
  ): AsyncGenerator<Uint8Array> {
    const cut = cutOf(bytes, fault);
    const stall = fault?.kind === "download-stalled" ? shareOf(bytes, fault.keep) : null;
    const end = cut ?? bytes.length;
    const size = Math.max(1, Math.ceil(bytes.length / pieces));
    for (let at = 0; at < end; at += size) {
      if (at > 0) await asleep(() => this.wait(this.pieceMs, options));
      if (stall !== null && fault?.kind === "download-stalled" && at + size > stall)
        await asleep(() => this.wait(fault.forMs, options));
      yield bytes.subarray(at, Math.min(at + size, end));
    }
    if (cut !== null) throw new Error("other side closed");
  }

  private wait(ms: number, { signal }: DownloadOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => {
        takeBack();
        reject(new Error("aborted"));
      };
      const takeBack = this.kernel.schedule(this.kernel.now() + ms, () => {
        signal.removeEventListener("abort", abort);
        resolve();
      });
      if (signal.aborted) abort();
      else signal.addEventListener("abort", abort, { once: true });
    });
  }
}

/** How much comes before the connection breaks; null when it does not. */
function cutOf(bytes: Uint8Array, fault: DownloadFault | null): number | null {
  if (fault?.kind === "download-new-etag") return shareOf(bytes, 0.5);
  return fault?.kind === "download-truncated" && !fault.pretends ? shareOf(bytes, fault.keep) : null;
}

/** What lies at an address: the file, a spoiled one, or the half of another version that was replaced meanwhile. */
function versionOf({ task, number }: { task: TaskRecord; number: number }, fault: DownloadFault | null) {
  if (fault?.kind === "download-new-etag") {
    const bytes = outputBytes(formOf(task.id, task.category), `${task.id} ${number} before`);
    return { bytes, contentType: "", etag: '"before"' };
  }
  const bytes = spoiled(madeOf(task, number).bytes, task, fault);
  // What stands in for the file is another thing, and a server that says so keeps to its tags.
  const etag = bytes === errorPage ? '"error page"' : `"${task.id}-${number}"`;
  return { bytes, contentType: "", etag };
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** What the service made: the one content that counts, and its hash, by which files are told from one another. */
interface Made {
  bytes: Buffer;
  sha256: string;
}

/** Made when it is first asked for: a task's outputs are compared with what lies in the archive again and again. */
const madeBy = new WeakMap<TaskRecord, Map<number, Made>>();

export function madeOf(task: TaskRecord, number: number): Made {
  const outputs = madeBy.get(task) ?? new Map<number, Made>();
  madeBy.set(task, outputs);
  const known = outputs.get(number);
  if (known) return known;
  const bytes = outputBytes(formOf(task.id, task.category), `${task.id} ${number}`);
  const made = { bytes, sha256: sha256(bytes) };
  outputs.set(number, made);
  return made;
}

export function sha256(content: Buffer): string {
  return hash("sha256", content);
}

const errorPage = Buffer.from("<html><title>error</title></html>");

/** Only a PNG shows damage inside a file of the stated length. The other forms are replaced by an error page. */
function spoiled(bytes: Buffer, task: TaskRecord, fault: DownloadFault | null): Uint8Array {
  const form = formOf(task.id, task.category);
  const isCorrupt = fault?.kind === "download-corrupt";
  const isShortened = fault?.kind === "download-truncated" && fault.pretends;
  if (form !== "png" && (isCorrupt || isShortened)) return errorPage;
  return spoiledFile({ bytes, contentType: "", etag: "" }, fault).bytes;
}

function reply(
  status: number,
  headers: Record<string, string>,
  body: AsyncIterable<Uint8Array>,
): DownloadReply {
  return { status, headers, body };
}

async function* once(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function* none(): AsyncGenerator<Uint8Array> {}
