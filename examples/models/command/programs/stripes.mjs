// Draws a PNG with stripes whose colours come from a text: node stripes.mjs FILE 1080x1080 -- TEXT
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";

const [file, size, , text] = process.argv.slice(2);
const [width, height] = size.split("x").map(Number);
const colours = createHash("sha256").update(text).digest();

const rows = Buffer.alloc(height * (1 + width * 3));
for (let y = 0; y < height; y++) {
  for (let x = 0; x < width; x++) {
    const stripe = Math.floor(((x + y) / (width + height)) * 10);
    colours.copy(rows, y * (1 + width * 3) + 1 + x * 3, stripe * 3, stripe * 3 + 3);
  }
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

const head = Buffer.alloc(13);
head.writeUInt32BE(width, 0);
head.writeUInt32BE(height, 4);
// 8 bits each of red, green and blue.
head.set([8, 2, 0, 0, 0], 8);
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const parts = [
  signature,
  chunk("IHDR", head),
  chunk("IDAT", deflateSync(rows)),
  chunk("IEND", Buffer.alloc(0)),
];
writeFileSync(file, Buffer.concat(parts));
