import { inspect } from "../../../src/archive/check/content.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import type { Disk } from "../../../src/core/ports/disk.js";
import { media } from "../../archive/media.js";

/**
 * One file of each format, cut after each of its bytes, checked as if the server had not stated a length (a transfer
 * that is shorter than stated is refused before this check). A cut file must be refused, or its check must not be
 * `decoded`, which alone says that the file is complete. Exit code 1 when a cut file passes as complete, or when a whole
 * one is refused.
 *
 *   node test/bench/truncations.mjs [--short]
 */

/** Cuts of one file in the short form. */
const shortCuts = 150;

const formats: readonly [keyof typeof media, category: string][] = [
  ["png", "image"],
  ["jpeg", "image"],
  ["webp", "image"],
  ["webpLossy", "image"],
  ["gif", "image"],
  ["avif", "image"],
  ["mp4", "video"],
  ["mp4IndexFirst", "video"],
  ["mp4Fragmented", "video"],
  ["webm", "video"],
  ["wav", "audio"],
  ["ogg", "audio"],
  ["mp3Noted", "audio"],
  ["mp3", "audio"],
];

const isShort = process.argv.includes("--short");
for (const [name, category] of formats) await cutFormat(name, category);

async function cutFormat(name: keyof typeof media, category: string): Promise<void> {
  const whole = await media[name]();
  const step = isShort ? Math.max(1, Math.ceil(whole.length / shortCuts)) : 1;
  const found = { refused: 0, unknown: 0, complete: 0 };
  for (let length = whole.length - 1; length >= 0; length -= step) {
    found[await outcomeOf(whole.subarray(0, length), category)]++;
  }
  const isRefused = (await outcomeOf(whole, category)) === "refused";
  const { refused, unknown, complete } = found;
  console.log(
    `${name.padEnd(14)} ${String(whole.length).padStart(6)} bytes, cuts: ${refused} refused, ${unknown} length unknown, ${complete} taken as complete`,
  );
  if (isRefused) console.log(`${name} is refused whole`);
  if (isRefused || complete > 0) process.exitCode = 1;
}

async function outcomeOf(bytes: Buffer, category: string): Promise<"refused" | "unknown" | "complete"> {
  const content = await inspect(holding(bytes), "file", category);
  if (content.kind === "bad") return "refused";
  return content.check === "decoded" ? "complete" : "unknown";
}

/** A disk with one file. */
function holding(bytes: Buffer): Disk {
  return {
    ...nodeDisk,
    size: async () => bytes.length,
    async *read(_, range = { start: 0, end: bytes.length }) {
      yield bytes.subarray(range.start, range.end);
    },
  };
}
