import { createHash, type Hash } from "node:crypto";
import { crc32 } from "node:zlib";

/**
 * Checksums that a server states for a whole file, in the headers of object stores and of RFC 9530. Every file is hashed
 * with SHA-256; the stated checksums are computed during the transfer and compared at its end.
 */
type Algorithm = "sha-256" | "sha-512" | "sha-1" | "md5" | "crc32";

interface Stated {
  algorithm: Algorithm;
  /** Its length is that of the algorithm. */
  digest: Buffer;
}

const digestBytes: Readonly<Record<Algorithm, number>> = {
  "sha-256": 32,
  "sha-512": 64,
  "sha-1": 20,
  md5: 16,
  crc32: 4,
};

/** Headers with one checksum; `lists` are headers with several named ones. */
const single: Readonly<Record<string, Algorithm>> = {
  "content-md5": "md5",
  "x-amz-checksum-sha256": "sha-256",
  "x-amz-checksum-sha1": "sha-1",
  "x-amz-checksum-crc32": "crc32",
};
const lists = ["repr-digest", "content-digest", "digest", "x-goog-hash"];

function statedIn(headers: Readonly<Record<string, string>>): Stated[] {
  // For a file that was uploaded in parts it may be a checksum of checksums.
  const composite = headers["x-amz-checksum-type"]?.toUpperCase() === "COMPOSITE";
  const found: (Stated | null)[] = Object.entries(single).map(([header, algorithm]) =>
    composite && header.startsWith("x-amz-") ? null : stated(algorithm, headers[header]),
  );
  for (const header of lists) {
    for (const [, name = "", value] of (headers[header] ?? "").matchAll(/([\w-]+)\s*=\s*:?([\w+/]+=*):?/g)) {
      const algorithm = name.toLowerCase().replace(/^sha$/, "sha-1");
      found.push(algorithm in digestBytes ? stated(algorithm as Algorithm, value) : null);
    }
  }
  return found.filter((each) => each !== null);
}

/** Null for a malformed checksum: it proves nothing. */
function stated(algorithm: Algorithm, base64: string | undefined): Stated | null {
  if (base64 === undefined || !/^[\w+/]+=*$/.test(base64)) return null;
  const digest = Buffer.from(base64, "base64");
  return digest.length === digestBytes[algorithm] ? { algorithm, digest } : null;
}

/** The checksums of one file during its transfer. */
export class Checksums {
  private readonly sha256 = createHash("sha256");
  private readonly others: { stated: Stated; sum: Hash | Crc }[];

  constructor(headers: Readonly<Record<string, string>>) {
    this.others = statedIn(headers).map((each) => ({
      stated: each,
      sum: each.algorithm === "crc32" ? new Crc() : createHash(each.algorithm.replace("-", "")),
    }));
  }

  update(piece: Uint8Array): void {
    this.sha256.update(piece);
    for (const { sum } of this.others) sum.update(piece);
  }

  /** Call it once. `differs` names the first checksum that is not the stated one. */
  end(): { sha256: string; differs: Algorithm | null } {
    const wrong = this.others.find(({ stated: { digest }, sum }) => !digest.equals(sum.digest()));
    return { sha256: this.sha256.digest("hex"), differs: wrong?.stated.algorithm ?? null };
  }
}

class Crc {
  private value = 0;

  update(piece: Uint8Array): void {
    this.value = crc32(piece, this.value);
  }

  digest(): Buffer {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(this.value);
    return bytes;
  }
}
