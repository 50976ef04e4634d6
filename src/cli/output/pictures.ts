import { readFile, stat } from "node:fs/promises";
import type { Environment } from "../../text/environment.js";
import { pictureProtocol } from "../../text/terminal-kind.js";
import { sixel } from "./sixel.js";

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
 * How this terminal draws small pictures; null where it cannot. The terminal decodes the files itself, which have been
 * checked by then: kitty takes PNG, by its path, and iTerm2 what macOS can show. For sixel they are decoded here.
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
    // Where the cursor is after a sixel differs from terminal to terminal.
    return placed(`\u001b7${sixel(data, info.width, info.height)}\u001b8`);
  } catch {
    return null;
  }
}

/** Makes room for a picture, and goes on below it. */
function placed(picture: string): string {
  return `${"\n".repeat(rows)}\u001b[${rows}A${picture}\u001b[${rows - 1}B\r\n`;
}
