import { readFile, stat } from "node:fs/promises";
import type { Environment } from "../../text/environment.js";
import { pictureProtocol } from "../../text/terminal-kind.js";

/** Rows of the terminal that a picture takes. */
const rows = 5;
/** iTerm2 is sent the file itself; a larger one (bytes) is not shown. */
const bytesMax = 2_000_000;
/** The size of a sixel picture in pixels: so high that it fits into the rows of a small font. */
const sixelHeight = 70;
const sixelWidth = 280;

/** Draws the picture of a file; null for a file that the terminal cannot show. */
export type DrawPicture = (path: string) => Promise<string | null>;

/**
 * How this terminal draws small pictures; null if it cannot. kitty and iTerm2 decode the files themselves, after bulkgen
 * has checked them: kitty takes PNG, by its path, and iTerm2 what macOS can show. For sixel they are decoded here.
 */
export function picturesOf(environment: Environment): DrawPicture | null {
  const protocol = pictureProtocol(environment);
  if (protocol === null) return null;
  return { kitty, iterm2, sixel: asSixel }[protocol];
}

async function kitty(path: string): Promise<string | null> {
  if (!/\.png$/i.test(path)) return null;
  const name = Buffer.from(path).toString("base64");
  return placed(`\u001b_Ga=T,t=f,f=100,r=${rows},C=1,q=2;${name}\u001b\\`);
}

async function iterm2(path: string): Promise<string | null> {
  if (!/\.(png|jpe?g|webp|gif)$/i.test(path)) return null;
  try {
    const { size } = await stat(path);
    if (size > bytesMax) return null;
    const content = (await readFile(path)).toString("base64");
    return placed(
      `\u001b]1337;File=inline=1;size=${size};height=${rows};preserveAspectRatio=1;doNotMoveCursor=1:${content}\u0007`,
    );
  } catch {
    // It was moved since.
    return null;
  }
}

async function asSixel(path: string): Promise<string | null> {
  if (!/\.(png|jpe?g|webp|gif)$/i.test(path)) return null;
  const { default: sharp } = await import("sharp");
  try {
    const { data, info } = await sharp(path)
      .resize(sixelWidth, sixelHeight, { fit: "inside" })
      .flatten({ background: "#fff" })
      .toColourspace("srgb")
      .raw()
      .timeout({ seconds: 5 })
      .toBuffer({ resolveWithObject: true });
    if (info.channels !== 3) return null;
    // The position of the cursor after a sixel differs between terminals.
    return placed(`\u001b7${sixel(data, info.width, info.height)}\u001b8`);
  } catch {
    return null;
  }
}

/** Makes room for a picture, and goes on below it. */
function placed(picture: string): string {
  return `${"\n".repeat(rows)}\u001b[${rows}A${picture}\u001b[${rows - 1}B\r\n`;
}

/**
 * A small picture as a sixel string, for terminals that know no newer way. A sixel is a column of six pixels of one colour;
 * each band of six rows is written once for each colour in it. The colours are six levels of red, green and blue, and an
 * ordered pattern stands for those in between.
 */
export function sixel(rgb: Uint8Array, width: number, height: number): string {
  const levels = quantized(rgb, width, height);
  const used = [...new Set(levels)].toSorted((a, b) => a - b);
  const registers = used.map((colour) => {
    const parts = [Math.floor(colour / 36), Math.floor(colour / 6) % 6, colour % 6].map(
      (level) => level * 20,
    );
    return `#${colour};2;${parts.join(";")}`;
  });
  const bands: string[] = [];
  for (let top = 0; top < height; top += 6) bands.push(bandOf(levels, width, height, top));
  return `\u001bP0;1;q"1;1;${width};${height}${registers.join("")}${bands.join("-")}\u001b\\`;
}

/** Thresholds of a 4 × 4 pattern, as parts of a level. */
const pattern = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5].map((place) => (place + 0.5) / 16);

/** The colour of each pixel, from 0 to 215. */
function quantized(rgb: Uint8Array, width: number, height: number): Uint8Array {
  const levels = new Uint8Array(width * height);
  for (let at = 0; at < levels.length; at++) {
    const threshold = pattern[((Math.floor(at / width) & 3) << 2) | ((at % width) & 3)] ?? 0;
    const level = (channel: number) =>
      Math.min(5, Math.floor(((rgb[at * 3 + channel] ?? 0) / 255) * 5 + threshold));
    levels[at] = level(0) * 36 + level(1) * 6 + level(2);
  }
  return levels;
}

function bandOf(levels: Uint8Array, width: number, height: number, top: number): string {
  const rows = Math.min(6, height - top);
  const columns = new Map<number, Uint8Array>();
  for (let row = 0; row < rows; row++)
    for (let x = 0; x < width; x++) {
      const colour = levels[(top + row) * width + x] ?? 0;
      const bits = columns.get(colour) ?? new Uint8Array(width);
      columns.set(colour, bits);
      bits[x] = (bits[x] ?? 0) | (1 << row);
    }
  return [...columns].map(([colour, bits]) => `#${colour}${runLengths(bits)}`).join("$");
}

function runLengths(bits: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bits.length; ) {
    let end = at + 1;
    while (end < bits.length && bits[end] === bits[at]) end++;
    const character = String.fromCharCode(63 + (bits[at] ?? 0));
    text += end - at > 3 ? `!${end - at}${character}` : character.repeat(end - at);
    at = end;
  }
  return text;
}
