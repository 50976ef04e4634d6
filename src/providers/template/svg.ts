import { clientText } from "../client-text.js";
import { JobRefused } from "../provider.js";
import type { OutputFormat, Size } from "./size.js";

/** How long a picture may take (s). */
const secondsMax = 60;

/** Draws an SVG without a browser. What it refers to outside of itself is not loaded. Throws `JobRefused`. */
export async function drawnSvg(text: string, size: Size | null, format: OutputFormat): Promise<Uint8Array> {
  if (format === "pdf")
    throw new JobRefused(
      "parameter",
      "an SVG template makes png, jpeg or webp; PDF needs an HTML template",
      false,
    );
  const { default: sharp } = await import("sharp");
  try {
    const picture = sharp(Buffer.from(text)).timeout({ seconds: secondsMax });
    const background = format === "jpeg" ? "white" : { r: 0, g: 0, b: 0, alpha: 0 };
    if (size !== null) picture.resize(size.width, size.height, { fit: "contain", background });
    if (format === "jpeg") return await picture.flatten({ background }).jpeg({ quality: 92 }).toBuffer();
    return await (format === "webp" ? picture.webp({ quality: 92 }) : picture.png()).toBuffer();
  } catch (error) {
    throw new JobRefused(
      "provider",
      clientText(`the SVG cannot be drawn: ${(error as Error).message}`),
      false,
    );
  }
}
