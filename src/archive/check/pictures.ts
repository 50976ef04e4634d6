/** The types that sharp decodes. */
export const decodable = new Set([
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/gif",
  "image/tiff",
  "image/avif",
]);
const animated = new Set(["image/webp", "image/gif"]);

/** Decoders of these only warn about damage. */
const warning = new Set(["image/jpeg", "image/gif"]);
/** Other warnings are about odd but whole files: colour profiles, unusual headers. */
const tellsOfDamage = /corrupt jpeg data|premature end|invalid frame data|huffman/i;

const decodedBytesMax = 512 * 2 ** 20;
/** Decoders of these need the whole picture in memory, and so do those of interlaced or progressive ones. */
const wholeFormats = new Set(["webp", "heif"]);
/** Beyond this sharp refuses to decode at all. */
const pixelsMax = 268_402_689;
/** A larger picture is shrunk while it is decoded, in strips: that takes more time, but hardly any memory. */
const smallBytesMax = 32 * 2 ** 20;
/** A pixel usually has at most four bytes. */
const smallPixelsMax = smallBytesMax / 4;

/** How much memory it takes to decode a picture whole: little, much, or more than a file may take. */
export type DecodedSize = "small" | "large" | "too large";

/** What the header of a picture says; null if it cannot be read. */
async function headerOf(bytes: Buffer) {
  const { default: sharp } = await import("sharp");
  return sharp(bytes, { limitInputPixels: false })
    .metadata()
    .catch(() => null);
}

/** The size of a picture as it is shown, in pixels, according to its header; nothing if it cannot be read. */
export async function shownSize(bytes: Buffer): Promise<{ width?: number; height?: number }> {
  const facts = await headerOf(bytes);
  return facts === null ? {} : { width: facts.autoOrient.width, height: facts.autoOrient.height };
}

/** How large a picture is when it is decoded, according to its header. */
export async function decodedSize(bytes: Buffer): Promise<DecodedSize> {
  const facts = await headerOf(bytes);
  if (facts === null) return "large";
  const { width, height, channels, depth, isProgressive, format, pages = 1 } = facts;
  const pixels = width * height;
  const sampleBytes = depth === "uchar" || depth === "char" ? 1 : depth.endsWith("short") ? 2 : 4;
  const decodedBytes = pixels * channels * sampleBytes;
  const whole = isProgressive || wholeFormats.has(format);
  if (pixels > pixelsMax || (whole && decodedBytes > decodedBytesMax)) return "too large";
  return decodedBytes * pages <= smallBytesMax ? "small" : "large";
}

/** What is wrong with a picture, in words; null when every pixel could be decoded. */
export async function pictureFault(bytes: Buffer, mime: string, size: DecodedSize): Promise<string | null> {
  if (!hasEndMark(bytes, mime)) return "is truncated: it has no end mark";
  const decode = size === "small" ? {} : { shrinks: true };
  const error = await decodeError(bytes, mime, strictest(mime), decode);
  if (error === null) return null;
  if (tellsOfDamage.test(error) || !warning.has(mime)) return `cannot be decoded: ${error}`;
  const worse = await decodeError(bytes, mime, "error", decode);
  return worse === null ? null : `cannot be decoded: ${worse}`;
}

/**
 * Whether a picture is intact and all its frames together have at most `smallPixelsMax`; one decoding answers both. False
 * only means that it needs a closer check.
 */
export async function isSmallAndWhole(bytes: Buffer, mime: string): Promise<boolean> {
  if (!hasEndMark(bytes, mime)) return false;
  const error = await decodeError(bytes, mime, strictest(mime), { pixelsMax: smallPixelsMax });
  return error === null;
}

function strictest(mime: string): "warning" | "error" {
  return warning.has(mime) ? "warning" : "error";
}

/** The decoders of these do not need the end mark. All others fail when a byte is missing. */
function hasEndMark(bytes: Buffer, mime: string): boolean {
  if (mime === "image/png") return bytes.includes("IEND\xae\x42\x60\x82", 0, "latin1");
  // Cameras may append a preview or zeros.
  if (mime === "image/jpeg") return bytes.subarray(-65_536).includes("\xff\xd9", 0, "latin1");
  // Some programs pad a GIF with zeros.
  if (mime === "image/gif") return bytes[bytes.findLastIndex((byte) => byte !== 0)] === 0x3b;
  return true;
}

/**
 * Decodes every pixel. The level "error" still catches every cut, but accepts odd colour profiles, which stricter levels
 * refuse.
 */
async function decodeError(
  bytes: Buffer,
  mime: string,
  failOn: "warning" | "error",
  { shrinks = false, pixelsMax }: { shrinks?: boolean; pixelsMax?: number },
): Promise<string | null> {
  const { default: sharp } = await import("sharp");
  const limit = pixelsMax === undefined ? {} : { limitInputPixels: pixelsMax };
  const picture = sharp(bytes, { failOn, sequentialRead: true, animated: animated.has(mime), ...limit });
  if (shrinks) picture.resize(8, 8, { fit: "fill", kernel: "linear", fastShrinkOnLoad: false });
  try {
    await picture.raw().toBuffer();
    return null;
  } catch (error) {
    return oneLine(error);
  }
}

/** What a decoder said, for the reason of a refusal. */
export function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").trim().slice(0, 200);
}
