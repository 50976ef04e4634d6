import sharp, { type Sharp } from "sharp";
import type { MediaJob } from "./job.js";
import { lettering } from "./lettering.js";
import { Seeded } from "./seeded.js";

/** Five colours that go together, from dark to light, and the one that stands out. */
export interface Palette {
  ink: string;
  deep: string;
  middle: string;
  soft: string;
  paper: string;
  accent: string;
}

const palettes: readonly Palette[] = [
  palette("#1d1a2f", "#3a2e5c", "#8a4f7d", "#e39c8b", "#fbeee0", "#f25f4c"),
  palette("#0b2027", "#1b4b5a", "#40798c", "#9fc6b5", "#f6f1d1", "#f4a259"),
  palette("#14213d", "#27406b", "#5b7db1", "#b7cdea", "#f4f6fb", "#fca311"),
  palette("#2b1d0e", "#6b3e26", "#b5653a", "#e8b878", "#fdf3e1", "#2a9d8f"),
  palette("#102a23", "#1f5b46", "#5a9a6e", "#b9d8a6", "#f5f8e8", "#ee6c4d"),
  palette("#2d0f22", "#6a1b4d", "#b4436c", "#f2a9a0", "#fff0ea", "#f7c548"),
  palette("#16161d", "#3b3b4f", "#7c7c93", "#c4c4d2", "#f5f4f0", "#e4572e"),
  palette("#051923", "#003554", "#0582ca", "#8fd3f4", "#eef9ff", "#ffd166"),
  palette("#241623", "#53354a", "#903749", "#e8a87c", "#fdf1e3", "#41b3a3"),
  palette("#0f1a20", "#2d4654", "#708d81", "#d6ccc2", "#f5ebe0", "#bf0603"),
];

function palette(
  ink: string,
  deep: string,
  middle: string,
  soft: string,
  paper: string,
  accent: string,
): Palette {
  return { ink, deep, middle, soft, paper, accent };
}

export function pickPalette(seeded: Seeded): Palette {
  return seeded.pick(palettes);
}

/** What a scene is drawn on. */
interface Canvas {
  width: number;
  height: number;
  palette: Palette;
  seeded: Seeded;
}

/** Ridges of hills before a low sun. */
function dusk(canvas: Canvas): string {
  const { width, height, palette, seeded } = canvas;
  const sunX = seeded.between(0.2, 0.8) * width;
  const sunY = seeded.between(0.26, 0.42) * height;
  const radius = Math.min(width, height) * seeded.between(0.09, 0.16);
  const sky = `<defs><linearGradient id="sky" x2="0" y2="1"><stop offset="0" stop-color="${palette.deep}"/><stop offset=".45" stop-color="${palette.middle}"/><stop offset=".8" stop-color="${palette.soft}"/></linearGradient>
    <radialGradient id="glow"><stop offset="0" stop-color="${palette.paper}" stop-opacity=".7"/><stop offset=".5" stop-color="${palette.paper}" stop-opacity=".16"/><stop offset="1" stop-color="${palette.paper}" stop-opacity="0"/></radialGradient></defs>
    <rect width="${width}" height="${height}" fill="url(#sky)"/><circle cx="${sunX}" cy="${sunY}" r="${radius * 3}" fill="url(#glow)"/><circle cx="${sunX}" cy="${sunY}" r="${radius}" fill="${palette.accent}"/>`;
  const stars = Array.from({ length: 40 }, () => {
    const x = seeded.next() * width;
    const y = seeded.next() * height * 0.3;
    return `<circle cx="${x}" cy="${y}" r="${seeded.between(0.6, 2)}" fill="${palette.paper}" opacity="${seeded.between(0.2, 0.8)}"/>`;
  }).join("");
  const layers = [palette.soft, palette.middle, palette.deep, palette.deep, palette.ink];
  const ridges = layers.map((colour, index) => {
    const base = height * (0.46 + index * 0.1);
    const opacity = [0.7, 0.75, 0.6, 1, 1][index];
    return `<path d="${ridge(canvas, base, Math.min(height, width) * 0.07)}" fill="${colour}" opacity="${opacity}"/>`;
  });
  return sky + stars + ridges.join("");
}

/** A closed outline from a wavy line down to the lower edge. */
function ridge({ width, height, seeded }: Canvas, base: number, swing: number): string {
  const waves = [1, 2.3, 5.1].map((frequency) => ({
    frequency: frequency * seeded.between(0.8, 1.4),
    phase: seeded.between(0, Math.PI * 2),
    size: (swing / frequency) * seeded.between(0.7, 1.3),
  }));
  const points: string[] = [];
  for (let step = 0; step <= 96; step++) {
    const at = step / 96;
    const lift = waves.reduce(
      (sum, wave) => sum + Math.sin(at * wave.frequency * Math.PI * 2 + wave.phase) * wave.size,
      0,
    );
    points.push(`${(at * width).toFixed(1)} ${(base + lift).toFixed(1)}`);
  }
  return `M0 ${height}L${points.join("L")}L${width} ${height}Z`;
}

/**
 * Sheets of cut paper, each throwing a shadow on the one behind. A shadow is a few strokes on each other, the widest
 * reaching furthest: a Gaussian blur looks much the same and makes the whole picture fifteen times as slow.
 */
function paper(canvas: Canvas): string {
  const { width, height, palette, seeded } = canvas;
  const sheets = [palette.soft, palette.accent, palette.middle, palette.deep, palette.ink];
  const layers = sheets.map((colour, index) => {
    const outline = ridge(canvas, height * (0.16 + index * 0.13), Math.min(height * 0.16, width * 0.13));
    const strokes = [0.042, 0.032, 0.023, 0.014, 0.006].map(
      (reach) => `<path d="${outline}" stroke-width="${height * reach}"/>`,
    );
    const shadow = `<g fill="none" stroke="#000" stroke-opacity=".06" stroke-linejoin="round" transform="translate(0 ${-height * 0.006})">${strokes.join("")}</g>`;
    return `${shadow}<path d="${outline}" fill="${colour}"/>`;
  });
  const moon = `<circle cx="${seeded.between(0.15, 0.85) * width}" cy="${height * 0.14}" r="${Math.min(width, height) * 0.07}" fill="${palette.accent}"/>`;
  return `<rect width="${width}" height="${height}" fill="${palette.paper}"/>${moon}${layers.join("")}`;
}

/** The inside of an SVG for each style. */
const scenes: Readonly<Record<string, (canvas: Canvas) => string>> = { dusk, paper };

/** Width and height in whole, even pixels for a ratio such as "16:9". */
export function sides(ratio: string | undefined, longSide: number): { width: number; height: number } {
  const [across, down] = (ratio ?? "1:1").split(":").map(Number);
  const shape = across && down ? across / down : 1;
  const even = (length: number) => Math.max(2, Math.round(length / 2) * 2);
  return shape >= 1
    ? { width: even(longSide), height: even(longSide / shape) }
    : { width: even(longSide * shape), height: even(longSide) };
}

/** A picture of a prompt: a scene of seeded shapes and colours, with the prompt on it by default. */
export async function painting(job: MediaJob, longSide = longSideOf(job), lettered = true): Promise<Sharp> {
  const { width, height } = sides(job.input["aspect_ratio"], longSide);
  const seeded = new Seeded(job.seed);
  const palette = pickPalette(seeded);
  const style = job.input["style"] ?? seeded.pick(Object.keys(scenes));
  const scene = (scenes[style] ?? paper)({ width, height, palette, seeded });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${scene}</svg>`;
  const picture = sharp(Buffer.from(svg));
  if (!lettered) return picture;
  const margin = Math.round(Math.min(width, height) * 0.065);
  const top = Math.round(height * 0.735);
  const box = { left: margin, top, width: width - margin * 2, height: height - top - margin };
  const words = await lettering(
    job.input["prompt"] ?? "",
    palette.paper,
    box,
    Math.min(width, height) * 0.075,
  );
  return picture.composite([words]);
}

function longSideOf(job: MediaJob): number {
  if (job.longSide !== undefined) return job.longSide;
  return job.input["size"] === "large" ? 1_536 : 1_024;
}

/** The picture as the bytes of a file of this kind. */
export async function pictureFile(picture: Sharp, extension: string): Promise<Uint8Array> {
  if (extension === "jpg") return picture.flatten({ background: "#fff" }).jpeg({ quality: 88 }).toBuffer();
  if (extension === "webp") return picture.webp({ quality: 86 }).toBuffer();
  return picture.png({ compressionLevel: 6 }).toBuffer();
}
