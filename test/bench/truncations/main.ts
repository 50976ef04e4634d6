import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openInspector } from "../../../src/archive/check/inspector.js";
import { systemClock } from "../../../src/system.js";
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
const shortCuts = 30;

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
const folder = mkdtempSync(join(tmpdir(), "bulkgen-truncations-"));
const path = join(folder, "file");
// A reader of media may hang on a cut file; the archive gives it a minute.
const inspector = openInspector({ clock: systemClock, msMax: 2_000 });
for (const [name, category] of formats) await cutFormat(name, category);
await inspector.close();
rmSync(folder, { recursive: true });

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
  writeFileSync(path, bytes);
  const content = await inspector.inspect(path, category, bytes.length);
  if (content.kind === "bad") return "refused";
  return content.check === "decoded" ? "complete" : "unknown";
}
