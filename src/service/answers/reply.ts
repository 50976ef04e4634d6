import type { WorldResponse } from "./answers.js";

/** An answer as it goes over the wire. */
export interface ServiceReply {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** How the world's answer is written. */
export function written({ status, headers, body, form }: WorldResponse): ServiceReply {
  if (form === "empty") return { status, headers, body: "" };
  const [type, text] =
    form === "text"
      ? ["text/plain; charset=utf-8", String(body)]
      : ["application/json", JSON.stringify(body)];
  return { status, headers: { "Content-Type": type, ...headers }, body: text };
}

/** One output file, ready to be sent. */
export interface FileAnswer {
  bytes: Uint8Array;
  contentType: string;
  /** Strong: equal bytes have equal tags. */
  etag: string;
}

/** A file, or the requested range of it. */
export interface FileReply {
  status: number;
  headers: Record<string, string>;
  /** Null if there is no body. */
  bytes: Uint8Array | null;
}

const byteRange = /^bytes=(\d+)-(\d*)$/;

/** The file, or the one range of it that was asked for, as long as it is still the same file (If-Range). */
export function fileReply(
  file: FileAnswer,
  range: string | undefined,
  ifRange: string | undefined,
): FileReply {
  const headers = {
    "Content-Type": file.contentType,
    ETag: file.etag,
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, max-age=60",
  };
  const size = file.bytes.byteLength;
  const wanted = ifRange === undefined || ifRange === file.etag ? byteRange.exec(range ?? "") : null;
  if (!wanted) {
    return { status: 200, headers: { ...headers, "Content-Length": String(size) }, bytes: file.bytes };
  }
  const first = Number(wanted[1]);
  const last = Math.min(wanted[2] ? Number(wanted[2]) : size - 1, size - 1);
  if (first > last) {
    return { status: 416, headers: { ...headers, "Content-Range": `bytes */${size}` }, bytes: null };
  }
  const part = file.bytes.subarray(first, last + 1);
  return {
    status: 206,
    headers: {
      ...headers,
      "Content-Length": String(part.byteLength),
      "Content-Range": `bytes ${first}-${last}/${size}`,
    },
    bytes: part,
  };
}
