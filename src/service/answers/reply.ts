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

/** One output file on disk, ready to be sent. */
export interface StoredFile {
  path: string;
  size: number;
  contentType: string;
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
  { bytes, ...file }: FileAnswer,
  range: string | undefined,
  ifRange: string | undefined,
): FileReply {
  const { status, headers, part } = filePart({ ...file, size: bytes.byteLength }, range, ifRange);
  return {
    status,
    headers,
    bytes: part && (status === 200 ? bytes : bytes.subarray(part.first, part.last + 1)),
  };
}

/** Which bytes of a file are sent; no part if the range is outside of it. */
export function filePart(
  { contentType, etag, size }: Omit<StoredFile, "path">,
  range: string | undefined,
  ifRange: string | undefined,
): Pick<FileReply, "status" | "headers"> & { part: { first: number; last: number } | null } {
  const headers = {
    "Content-Type": contentType,
    ETag: etag,
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, max-age=60",
  };
  const wanted = ifRange === undefined || ifRange === etag ? byteRange.exec(range ?? "") : null;
  if (!wanted) {
    const part = { first: 0, last: size - 1 };
    return { status: 200, headers: { ...headers, "Content-Length": String(size) }, part };
  }
  const first = Number(wanted[1]);
  const last = Math.min(wanted[2] ? Number(wanted[2]) : size - 1, size - 1);
  if (first > last) {
    return { status: 416, headers: { ...headers, "Content-Range": `bytes */${size}` }, part: null };
  }
  return {
    status: 206,
    headers: {
      ...headers,
      "Content-Length": String(last - first + 1),
      "Content-Range": `bytes ${first}-${last}/${size}`,
    },
    part: { first, last },
  };
}
