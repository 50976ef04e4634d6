import { jpegScanFault } from "./jpeg-scan.js";

/** Pictures, looked at to the last pixel. */

/** What sharp reads. */
export const decodable = new Set([
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/gif",
  "image/tiff",
  "image/avif",
]);
const animated = new Set(["image/webp", "image/gif"]);

/** Of these the decoder forgives damage that only its warnings tell of. */
const warning = new Set(["image/jpeg", "image/gif"]);
/** Other warnings are of odd but whole files: colour profiles, ways of writing a header. */
const tellsOfDamage = /corrupt jpeg data|premature end|invalid frame data|huffman/i;

/** What is wrong with a picture, in words; null when every pixel of it could be decoded. */
export async function pictureFault(bytes: Buffer, mime: string): Promise<string | null> {
  const scan = mime === "image/jpeg" ? jpegScanFault(bytes) : null;
  if (scan !== null) return `is damaged: ${scan}`;
  const error = await decodeError(bytes, mime, warning.has(mime) ? "warning" : "error");
  if (error === null) return null;
  if (tellsOfDamage.test(error) || !warning.has(mime)) return `cannot be decoded: ${error}`;
  const worse = await decodeError(bytes, mime, "error");
  return worse === null ? null : `cannot be decoded: ${worse}`;
}

/**
 * Decodes every pixel, shrinking on the way so that a large picture needs little memory. The level "error" still
 * catches every cut, but forgives the odd colour profiles that stricter ones refuse.
 */
async function decodeError(bytes: Buffer, mime: string, failOn: "warning" | "error"): Promise<string | null> {
  const { default: sharp } = await import("sharp");
  try {
    await sharp(bytes, { failOn, sequentialRead: true, animated: animated.has(mime) })
      .resize(8, 8, { fit: "fill", kernel: "linear", fastShrinkOnLoad: false })
      .raw()
      .toBuffer();
    return null;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return text.replace(/\s+/g, " ").trim().slice(0, 200);
  }
}
