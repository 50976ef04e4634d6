import { pipeline, Readable, type Transform } from "node:stream";
import zlib from "node:zlib";

/**
 * Content codings of HTTP. bulkgen asks for none, and some servers and proxies compress all the same. Decoding is a stream in
 * small pieces, so whoever reads it bounds what a compressed bomb becomes.
 */

/** The codings of a `Content-Encoding` header, in the order in which they were applied; `identity` is none. */
export function codingsOf(headers: Readonly<Record<string, string>>): string[] {
  const named = (headers["content-encoding"] ?? "").toLowerCase().split(",");
  return named.map((name) => name.trim()).filter((name) => name !== "" && name !== "identity");
}

/**
 * The content without its codings. What claims a coding that it does not have, or one that is unknown, is passed on as it
 * is: whoever gets it checks it. Throws when the content is damaged.
 */
export async function* decoded(
  body: AsyncIterable<Uint8Array>,
  codings: readonly string[],
): AsyncGenerator<Uint8Array> {
  const [last, ...earlier] = codings.toReversed();
  if (last === undefined) return yield* body;
  const { first, all } = await beginningOf(body);
  const decoder = decoderOf(last, first);
  yield* decoded(decoder === null ? all : through(all, decoder), earlier.toReversed());
}

function through(body: AsyncIterable<Uint8Array>, decoder: Transform): AsyncIterable<Uint8Array> {
  // The reader of the decoder gets the error.
  pipeline(Readable.from(body, { objectMode: false }), decoder, () => undefined);
  return decoder as AsyncIterable<Uint8Array>;
}

/** Bytes that tell whether content has the coding that it claims. */
const signBytes = 2;

/** The first bytes of a body, and the whole body. */
async function beginningOf(
  body: AsyncIterable<Uint8Array>,
): Promise<{ first: Buffer; all: AsyncGenerator<Uint8Array> }> {
  const pieces = body[Symbol.asyncIterator]();
  let first = Buffer.alloc(0);
  let isOver = false;
  while (first.length < signBytes && !isOver) {
    const next = await pieces.next();
    isOver = next.done === true;
    if (!next.done) first = Buffer.concat([first, next.value]);
  }
  async function* all(): AsyncGenerator<Uint8Array> {
    try {
      if (first.length > 0) yield first;
      while (!isOver) {
        const next = await pieces.next();
        if (next.done) return;
        yield next.value;
      }
    } finally {
      await pieces.return?.();
    }
  }
  return { first, all: all() };
}

function decoderOf(coding: string, first: Buffer): Transform | null {
  const [one = 0, two = 0] = first;
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return one === 0x1f && two === 0x8b ? zlib.createGunzip() : null;
    case "deflate":
      // Some servers send it without the header that it should have.
      return (one & 0x0f) === 8 && (one * 256 + two) % 31 === 0
        ? zlib.createInflate()
        : zlib.createInflateRaw();
    case "br":
      return zlib.createBrotliDecompress();
    case "zstd":
      return zstd?.() ?? null;
    default:
      return null;
  }
}

/** Node has it from version 22.15 on. */
const zstd = (zlib as { createZstdDecompress?: () => Transform }).createZstdDecompress;
