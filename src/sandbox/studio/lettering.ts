import { html } from "hono/html";
import sharp, { type OverlayOptions } from "sharp";
import { packageFile } from "../../package-file.js";

/** Prompts set in type. The font is shipped, because a machine without fonts would draw boxes. */
const fontfile = packageFile("src/sandbox/assets/inter-semibold.ttf");

const lettersMax = 220;

/** A box in pixels. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A text drawn on nothing, wrapped and sized to fit the box, as a layer for sharp's composite. */
export async function lettering(
  text: string,
  colour: string,
  box: Box,
  largest: number,
): Promise<OverlayOptions> {
  const shown = shorten(text);
  const fitting = Math.sqrt((box.width * box.height) / Math.max(shown.length, 1) / 0.95);
  const size = Math.max(9, Math.round(Math.min(largest, fitting)));
  const drawn = sharp({
    text: {
      text: String(await html`<span foreground="${colour}">${shown}</span>`),
      font: `Inter SemiBold ${size}`,
      fontfile,
      width: box.width,
      dpi: 72,
      rgba: true,
      wrap: "word-char",
      spacing: Math.round(size * 0.12),
    },
  });
  const { data, info } = await drawn.png().toBuffer({ resolveWithObject: true });
  if (info.height <= box.height && info.width <= box.width)
    return { input: data, left: box.left, top: box.top };
  const smaller = await sharp(data).resize(box.width, box.height, { fit: "inside" }).png().toBuffer();
  return { input: smaller, left: box.left, top: box.top };
}

/** Characters that are not in the shipped font, such as Chinese, Arabic or emoji: they would be drawn as boxes. */
const notInFont =
  /[^\u0020-\u052f\u1e00-\u1fff\u2010-\u2027\u2030-\u205f\u20a0-\u20bf\u2190-\u2199\u2212\u2248\u2260\u2264\u2265]+/gu;

/** One short line of what the font can draw, without control characters, which Pango refuses. */
export function shorten(text: string): string {
  const drawn =
    text
      .replace(/[\p{C}\s]+/gu, " ")
      .replace(notInFont, "…")
      .replace(/…(\s*…)+/gu, "…")
      .trim() || "…";
  const line =
    /[\p{L}\p{N}]/u.test(drawn) || drawn === text.trim() ? drawn : "(text that this font cannot show)";
  const letters = [...line];
  return letters.length <= lettersMax
    ? line
    : `${letters
        .slice(0, lettersMax - 1)
        .join("")
        .trimEnd()}…`;
}
