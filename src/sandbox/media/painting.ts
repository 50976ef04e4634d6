import sharp, { type Sharp } from "sharp";
import type { MediaJob } from "./job.js";
import { lettering } from "./lettering.js";
import { pickPalette } from "./palette.js";
import { scenes } from "./scenes.js";
import { Seeded } from "./seeded.js";

/** Width and height in whole, even pixels for a ratio such as "16:9". */
export function sides(ratio: string | undefined, longSide: number): { width: number; height: number } {
  const [across, down] = (ratio ?? "1:1").split(":").map(Number);
  const shape = across && down ? across / down : 1;
  const even = (length: number) => Math.max(2, Math.round(length / 2) * 2);
  return shape >= 1
    ? { width: even(longSide), height: even(longSide / shape) }
    : { width: even(longSide * shape), height: even(longSide) };
}

/** A picture of a prompt: a scene of seeded shapes and colours, and on it, unless told otherwise, the prompt. */
export async function painting(job: MediaJob, longSide = longSideOf(job), lettered = true): Promise<Sharp> {
  const { width, height } = sides(job.input["aspect_ratio"], longSide);
  const seeded = new Seeded(job.seed);
  const palette = pickPalette(seeded);
  const style = job.input["style"] ?? seeded.pick(Object.keys(scenes));
  const draw = scenes[style as keyof typeof scenes] ?? scenes.poster;
  const scene = draw({ width, height, palette, seeded });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${scene.svg}</svg>`;
  const picture = sharp(Buffer.from(svg));
  if (!lettered) return picture;
  const margin = Math.round(Math.min(width, height) * 0.065);
  const top = Math.round(height * 0.735);
  const box = { left: margin, top, width: width - margin * 2, height: height - top - margin };
  const words = await lettering(job.input["prompt"] ?? "", scene.ink, box, Math.min(width, height) * 0.075);
  return picture.composite([words]);
}

function longSideOf(job: MediaJob): number {
  if (job.model.endsWith("-mini")) return 640;
  return job.input["size"] === "large" ? 1_536 : 1_024;
}

/** The picture as the bytes of a file of this kind. */
export async function pictureFile(picture: Sharp, extension: string): Promise<Uint8Array> {
  if (extension === "jpg") return picture.flatten({ background: "#fff" }).jpeg({ quality: 88 }).toBuffer();
  if (extension === "webp") return picture.webp({ quality: 86 }).toBuffer();
  return picture.png({ compressionLevel: 6 }).toBuffer();
}
