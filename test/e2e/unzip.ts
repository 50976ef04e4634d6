import { readFileSync } from "node:fs";
import { crc32, inflateRawSync } from "node:zlib";

/**
 * The files of a zip archive (and a workbook is one), by name: read from its directory at the end, as readers do. Throws if
 * one has another checksum.
 */
export function unzip(archive: string | Buffer): Map<string, Buffer> {
  const zip = typeof archive === "string" ? readFileSync(archive) : archive;
  const end = zip.lastIndexOf(Buffer.from("PK\x05\x06", "latin1"));
  const files = new Map<string, Buffer>();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const nameLength = zip.readUInt16LE(at + 28);
    const name = zip.toString("utf8", at + 46, at + 46 + nameLength);
    const size = zip.readUInt32LE(at + 20);
    const local = zip.readUInt32LE(at + 42);
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const content = zip.subarray(start, start + size);
    const file = zip.readUInt16LE(at + 10) === 0 ? content : inflateRawSync(content);
    if (crc32(file) !== zip.readUInt32LE(at + 16)) throw new Error(`${name} has another checksum`);
    files.set(name, file);
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  return files;
}
