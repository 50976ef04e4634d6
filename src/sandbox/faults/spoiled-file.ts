import type { FileAnswer } from "../answers/file-reply.js";
import type { DownloadFault } from "./fault.js";

/** What a download's fault makes of the file itself, before any of it is sent. */
export function spoiledFile(file: FileAnswer, fault: DownloadFault | null): FileAnswer {
  switch (fault?.kind) {
    case "download-corrupt":
      return { ...file, bytes: corrupted(file.bytes, fault.at) };
    case "download-new-etag":
      return { ...file, etag: `"${file.etag.replaceAll('"', "")}-again"` };
    case "download-truncated":
      return fault.pretends
        ? { ...file, bytes: file.bytes.subarray(0, keptOf(file.bytes, fault.keep)) }
        : file;
    default:
      return file;
  }
}

/** How many bytes a share of a body is; never all of it. */
export function keptOf(bytes: Uint8Array, share: number): number {
  return Math.min(Math.floor(bytes.byteLength * share), Math.max(0, bytes.byteLength - 1));
}

/** A copy with sixteen bytes turned over. */
function corrupted(bytes: Uint8Array, at: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  const first = Math.min(keptOf(bytes, at), Math.max(0, bytes.byteLength - 16));
  for (let index = first; index < Math.min(first + 16, copy.length); index++)
    copy[index] = ~(copy[index] ?? 0);
  return copy;
}
