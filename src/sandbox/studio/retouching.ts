import sharp, { type Sharp } from "sharp";
import type { MediaJob } from "./job.js";
import { lettering } from "./lettering.js";
import { pickPalette } from "./painting.js";
import { Seeded } from "./seeded.js";

/** Pictures made from a picture: edits, enlargements and vignettes of the fetched input. */

const sideMax = 4_096;
const editSide = 1_024;

/** The input as sharp reads it, turned upright and no larger than `side`. */
export async function inputPicture(
  job: MediaJob,
  side = editSide,
): Promise<{ data: Buffer; width: number; height: number }> {
  const bytes = job.media["image_url"];
  if (!bytes) throw new Error("image_url: no picture arrived");
  const upright = sharp(bytes, { limitInputPixels: 100_000_000 }).rotate();
  const { data, info } = await upright
    .resize(side, side, { fit: "inside", withoutEnlargement: true })
    .png()
    .toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}

/** An edit: the input in another look and the same size, with the prompt on a strip along its upper edge. */
export async function repainted(job: MediaJob): Promise<Sharp> {
  const { data, width, height } = await inputPicture(job);
  const palette = pickPalette(new Seeded(job.seed));
  // A painted input has its caption below.
  const strip = Math.min(height, Math.max(28, Math.round(height * 0.12)));
  const margin = Math.round(strip * 0.2);
  const edited = await look(data, job.input["look"] ?? "duotone", palette.accent);
  const box = {
    left: margin,
    top: margin,
    width: Math.max(width - margin * 2, 8),
    height: strip - margin * 2,
  };
  const words = await lettering(job.input["prompt"] ?? "", palette.paper, box, strip * 0.5);
  const ground = { width, height: strip, channels: 3 as const, background: palette.ink };
  return sharp(edited).composite([{ input: { create: ground }, left: 0, top: 0 }, words]);
}

function look(data: Buffer, name: string, accent: string): Promise<Buffer> {
  const picture = sharp(data).flatten({ background: "#fff" });
  if (name === "mono") return picture.grayscale().linear(1.15, -12).png().toBuffer();
  if (name === "vivid")
    return picture.modulate({ saturation: 1.7, brightness: 1.05 }).sharpen().png().toBuffer();
  if (name === "sketch") {
    // Edges by a Laplacian on the smoothed greys, turned dark on white.
    const edges = { width: 3, height: 3, kernel: [-1, -1, -1, -1, 8, -1, -1, -1, -1] };
    return picture.grayscale().blur(1.2).convolve(edges).linear(4, 0).negate().png().toBuffer();
  }
  // The greys are written in three channels first: sharp tints nothing but colour.
  return picture
    .grayscale()
    .normalise()
    .toColourspace("srgb")
    .png()
    .toBuffer()
    .then((grey) => sharp(grey).toColourspace("srgb").tint(accent).png().toBuffer());
}

/** An enlargement of the input itself. */
export async function upscaled(job: MediaJob): Promise<Sharp> {
  const { data, width, height } = await inputPicture(job, sideMax);
  const wanted = Number.parseInt(job.input["scale"] ?? "2", 10);
  const factor = Math.min(wanted, sideMax / Math.max(width, height));
  const size = { width: Math.round(width * factor), height: Math.round(height * factor) };
  return sharp(data)
    .resize({ ...size, kernel: "lanczos3" })
    .sharpen({ sigma: 0.8 });
}

/** The input in a soft oval on a plain or blurred background. */
export async function vignetted(job: MediaJob): Promise<Sharp> {
  const { data, width, height } = await inputPicture(job);
  const soft = `<radialGradient id="soft"><stop offset=".78" stop-color="#fff"/><stop offset=".85" stop-color="#fff" stop-opacity=".82"/><stop offset=".95" stop-color="#fff" stop-opacity=".16"/><stop offset="1" stop-color="#fff" stop-opacity="0"/></radialGradient>`;
  const oval = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><defs>${soft}</defs><ellipse cx="${width / 2}" cy="${height / 2}" rx="${width * 0.42}" ry="${height * 0.44}" fill="url(#soft)"/></svg>`;
  const figure = await sharp(data)
    .ensureAlpha()
    .composite([{ input: Buffer.from(oval), blend: "dest-in" }])
    .png()
    .toBuffer();
  const ground = job.input["background"] ?? "white";
  const base =
    ground === "blur"
      ? sharp(
          await sharp(data)
            .flatten({ background: "#fff" })
            .blur(24)
            .modulate({ brightness: 0.8 })
            .png()
            .toBuffer(),
        )
      : sharp({
          create: { width, height, channels: 3, background: ground === "black" ? "#101014" : "#ffffff" },
        });
  return base.composite([{ input: figure }]);
}
