import type { Problem } from "../../core/problem.js";
import type { Bytes } from "./bytes.js";
import { asMeant, type Encoding, FirstLook, type Found, SecondLook } from "./encoding.js";

/** Looks through the bytes of a manifest, and says how they are read or the one reason why they cannot be. */
export async function examined(file: string, bytes: Bytes): Promise<Found> {
  const first = new FirstLook(file);
  for await (const piece of bytes.pieces()) first.see(piece);
  const found = first.finding();
  if (!("suspect" in found)) return found;
  const second = new SecondLook(file, found.suspect);
  for await (const piece of bytes.pieces()) second.see(piece);
  return second.finding();
}

/** The text in pieces, without a byte order mark. */
export async function* textPieces(bytes: Bytes, encoding: Encoding): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  for await (const piece of bytes.pieces()) yield asMeant(decoder.decode(piece, { stream: true }), encoding);
  yield asMeant(decoder.decode(), encoding);
}

/** The same as UTF-8; a mark may stand at its beginning. */
export async function* utf8Pieces(bytes: Bytes, encoding: Encoding): AsyncGenerator<Uint8Array> {
  if (encoding === "utf-8") yield* bytes.pieces();
  else for await (const text of textPieces(bytes, encoding)) yield Buffer.from(text);
}

/** A text that is read at once, such as a prompt's file. */
export function decodedText(
  file: string,
  bytes: Uint8Array,
): { text: string; notes: string[] } | { problem: Problem } {
  const first = new FirstLook(file);
  first.see(bytes);
  let found = first.finding();
  if ("suspect" in found) {
    const second = new SecondLook(file, found.suspect);
    second.see(bytes);
    found = second.finding();
  }
  if ("problem" in found) return found;
  return { text: asMeant(new TextDecoder(found.encoding).decode(bytes), found.encoding), notes: found.notes };
}
