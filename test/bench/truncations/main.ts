import { inspect } from "../../../src/archive/check/content.js";
import { nodeDisk } from "../../../src/archive/disk/node-disk.js";
import type { Disk } from "../../../src/core/ports/disk.js";
import { media } from "../../archive/media.js";

/**
 * One file of each format, cut after every one of its bytes: none of what is left may pass the check of the archive,
 * where the server did not state its length (a transfer that is shorter than stated is refused anyway). An
 * MP3 that does not note its length is shown beside them, because between two of its frames nothing can tell. Exit code
 * 1 when a cut file passed, or a whole one did not.
 *
 *   node test/bench/truncations.mjs [--short]
 */

/** Cuts of one file in the short form. */
const shortCuts = 150;

const formats: readonly [keyof typeof media, category: string, "every" | "some"][] = [
  ["png", "image", "every"],
  ["jpeg", "image", "every"],
  ["webp", "image", "every"],
  ["webpLossy", "image", "every"],
  ["gif", "image", "every"],
  ["avif", "image", "every"],
  ["mp4", "video", "every"],
  ["mp4IndexFirst", "video", "every"],
  ["mp4Fragmented", "video", "every"],
  ["webm", "video", "every"],
  ["wav", "audio", "every"],
  ["ogg", "audio", "every"],
  ["mp3Noted", "audio", "every"],
  ["mp3", "audio", "some"],
];

const isShort = process.argv.includes("--short");
for (const [name, category, refused] of formats) await cutFormat(name, category, refused);

async function cutFormat(
  name: keyof typeof media,
  category: string,
  refused: "every" | "some",
): Promise<void> {
  const whole = await media[name]();
  const step = isShort ? Math.max(1, Math.ceil(whole.length / shortCuts)) : 1;
  let [cuts, passed] = [0, 0];
  for (let length = whole.length - 1; length >= 0; length -= step) {
    cuts++;
    if (await isAccepted(whole.subarray(0, length), category)) passed++;
  }
  const intact = await isAccepted(whole, category);
  const excepted = refused === "every" ? "" : "  (notes no length: excepted)";
  console.log(
    `${name.padEnd(14)} ${String(whole.length).padStart(6)} bytes, ${String(cuts).padStart(6)} cuts, ${passed} accepted${excepted}`,
  );
  if (!intact) console.log(`${name} is refused whole`);
  if (!intact || (refused === "every" && passed > 0)) process.exitCode = 1;
}

async function isAccepted(bytes: Buffer, category: string): Promise<boolean> {
  const content = await inspect(holding(bytes), "file", category);
  return content.kind === "media" && content.openEnded !== true;
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
