import { hash } from "node:crypto";
import { crc32, deflateSync } from "node:zlib";
import { hash32 } from "./chance.js";

/**
 * The smallest files that the archive's check accepts, each output another one. Decoding a picture takes a
 * millisecond of the machine and a bitmap none, so most are bitmaps; those are checked by their first bytes alone.
 */
export type Form = "png" | "bmp" | "wav";

export function formOf(taskId: string, category: string): Form {
  if (category === "audio") return "wav";
  return hash32(`form ${taskId}`) % 16 === 0 ? "png" : "bmp";
}

/** The same for the same name, on every machine. */
export function outputBytes(form: Form, name: string): Buffer {
  const mark = hash("sha256", name, "buffer");
  if (form === "png") return png(mark);
  return form === "wav" ? wav(mark) : bmp(mark);
}

function png(mark: Buffer): Buffer {
  const size = Buffer.from([0, 0, 0, 1, 0, 0, 0, 8, 8, 2, 0, 0, 0]);
  const rows = Buffer.concat(
    Array.from({ length: 8 }, (_, row) => Buffer.concat([Buffer.of(0), mark.subarray(3 * row, 3 * row + 3)])),
  );
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", size),
    chunk("IDAT", deflateSync(rows)),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, "latin1");
  data.copy(bytes, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

function wav(mark: Buffer): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + mark.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36);
  head.writeUInt32LE(mark.length, 40);
  return Buffer.concat([head, mark]);
}

function bmp(mark: Buffer): Buffer {
  const head = Buffer.alloc(54);
  head.write("BM", 0);
  head.writeUInt32LE(54 + mark.length, 2);
  return Buffer.concat([head, mark]);
}
