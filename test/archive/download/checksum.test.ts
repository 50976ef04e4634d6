import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { Checksums } from "../../../src/archive/download/checksum.js";

const pieces = ["one ", "two ", "three"].map((text) => Buffer.from(text));
const whole = Buffer.concat(pieces);
const sum = (algorithm: string, bytes: Uint8Array = whole) =>
  createHash(algorithm).update(bytes).digest("base64");
const crc = (bytes: Uint8Array) => {
  const four = Buffer.alloc(4);
  four.writeUInt32BE(crc32(bytes));
  return four.toString("base64");
};

function end(headers: Record<string, string>) {
  const sums = new Checksums(headers);
  for (const piece of pieces) sums.update(piece);
  return sums.end();
}
const differs = (headers: Record<string, string>) => end(headers).differs;

test("a file is hashed piece by piece", () => {
  expect(end({})).toEqual({ sha256: createHash("sha256").update(whole).digest("hex"), differs: null });
});

describe("P13: a stated checksum is compared", () => {
  const other = Buffer.from("other");
  const forms: [string, string, (bytes: Uint8Array) => string, string][] = [
    ["content-md5", "md5", (bytes) => sum("md5", bytes), "md5"],
    ["x-amz-checksum-sha256", "SHA-256", (bytes) => sum("sha256", bytes), "sha-256"],
    ["x-amz-checksum-sha1", "SHA-1", (bytes) => sum("sha1", bytes), "sha-1"],
    ["x-amz-checksum-crc32", "CRC-32", crc, "crc32"],
    ["repr-digest", "SHA-512", (bytes) => `sha-512=:${sum("sha512", bytes)}:`, "sha-512"],
    ["repr-digest", "the second of two", (bytes) => `x=:AA==:, sha-256=:${sum("sha256", bytes)}:`, "sha-256"],
    ["content-digest", "SHA-256", (bytes) => `sha-256=:${sum("sha256", bytes)}:`, "sha-256"],
    ["digest", "SHA-256 in capitals", (bytes) => `SHA-256=${sum("sha256", bytes)}`, "sha-256"],
    ["digest", "SHA-1 by its old name", (bytes) => `SHA = ${sum("sha1", bytes)}`, "sha-1"],
    ["x-goog-hash", "MD5", (bytes) => `crc32c=AAAAAA==,md5=${sum("md5", bytes)}`, "md5"],
  ];
  test.each(forms)("of %s: %s", (header, _, value, algorithm) => {
    expect(differs({ [header]: value(whole) })).toBeNull();
    expect(differs({ [header]: value(other) })).toBe(algorithm);
  });

  test("each of several", () => {
    const right = { "x-amz-checksum-sha256": sum("sha256") };
    expect(differs({ ...right, "x-goog-hash": `md5=${sum("md5", other)}` })).toBe("md5");
    expect(differs({ "content-md5": sum("md5", other), ...right })).toBe("md5");
  });
});

describe("nothing is proven by a checksum", () => {
  test.each([
    ["content-md5", "no checksum"],
    ["content-md5", "AAAA"],
    ["content-md5", ""],
    ["content-md5", `${sum("md5")}!`],
    ["content-md5", `!${sum("md5")}`],
    ["x-amz-checksum-sha256", "AAAA-3"],
    ["repr-digest", "sha-256=:AAAA:"],
    ["repr-digest", "shape-256=:AAAA:"],
    ["digest", `sha-224=${sum("sha224")}`],
    ["x-other", sum("md5")],
  ])("that is malformed or of another kind: %s: %s", (header, value) => {
    expect(differs({ [header]: value })).toBeNull();
  });

  test("of checksums of parts, but by the others that come with it", () => {
    const parts = Buffer.from("parts");
    const composite = { "x-amz-checksum-type": "composite", "x-amz-checksum-sha256": sum("sha256", parts) };
    expect(differs(composite)).toBeNull();
    expect(differs({ ...composite, "content-md5": sum("md5", parts) })).toBe("md5");
    expect(differs({ ...composite, "x-amz-checksum-type": "FULL_OBJECT" })).toBe("sha-256");
  });
});
