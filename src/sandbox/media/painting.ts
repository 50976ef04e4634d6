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

/** A scene: the inside of an SVG, and a readable position for its prompt. */
interface Scene {
  svg: string;
  ink: string;
}

/** Geometric tiles, as on a poster of the twenties. */
function poster(canvas: Canvas): Scene {
  const { width, height, palette, seeded } = canvas;
  const tile = Math.min(width, height) / seeded.whole(3, 5);
  const columns = Math.ceil(width / tile);
  const rows = Math.ceil((height * 0.68) / tile);
  const colours = [palette.deep, palette.middle, palette.soft, palette.accent, palette.paper];
  const tiles: string[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      tiles.push(motif(column * tile, row * tile, tile, seeded, colours));
    }
  }
  const foot = `<rect y="${rows * tile}" width="${width}" height="${height}" fill="${palette.ink}"/>`;
  const cover = `<rect y="${height * 0.68}" width="${width}" height="${height * 0.32}" fill="${palette.ink}"/>`;
  const line = `<rect y="${height * 0.68}" width="${width}" height="${tile * 0.05}" fill="${palette.accent}"/>`;
  return { svg: tiles.join("") + foot + cover + line, ink: palette.paper };
}

function motif(x: number, y: number, size: number, seeded: Seeded, colours: readonly string[]): string {
  const back = seeded.pick(colours);
  const front = seeded.pick(colours.filter((colour) => colour !== back));
  const half = size / 2;
  const turn = seeded.whole(0, 3) * 90;
  const shapes = [
    `<path d="M0 0H${size}A${size} ${size} 0 0 1 0 ${size}Z" fill="${front}"/>`,
    `<circle cx="${half}" cy="${half}" r="${size * 0.34}" fill="${front}"/>`,
    `<path d="M0 0H${size}A${half} ${half} 0 0 1 0 0Z" fill="${front}"/>`,
    `<path d="M0 0H${size}L0 ${size}Z" fill="${front}"/>`,
    [0.1, 0.38, 0.66]
      .map((at) => `<rect y="${size * at}" width="${size}" height="${size * 0.14}" fill="${front}"/>`)
      .join(""),
    `<circle cx="${half}" cy="${half}" r="${size * 0.42}" fill="${front}"/><circle cx="${half}" cy="${half}" r="${size * 0.2}" fill="${back}"/>`,
  ];
  const shape = seeded.pick(shapes);
  return `<g transform="translate(${x} ${y})"><rect width="${size + 1}" height="${size + 1}" fill="${back}"/><g transform="rotate(${turn} ${half} ${half})">${shape}</g></g>`;
}

/** Ridges of hills before a low sun. */
function dusk(canvas: Canvas): Scene {
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
  return { svg: sky + stars + ridges.join(""), ink: palette.paper };
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
function paper(canvas: Canvas): Scene {
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
  return {
    svg: `<rect width="${width}" height="${height}" fill="${palette.paper}"/>${moon}${layers.join("")}`,
    ink: palette.paper,
  };
}

/** Construction lines on blue paper. */
function blueprint(canvas: Canvas): Scene {
  const { width, height, seeded } = canvas;
  const unit = Math.min(width, height) / 24;
  const grid: string[] = [];
  for (let x = 0; x < width; x += unit) grid.push(`M${x} 0V${height}`);
  for (let y = 0; y < height; y += unit) grid.push(`M0 ${y}H${width}`);
  const figures = Array.from({ length: seeded.whole(4, 6) }, () => {
    const x = seeded.between(0.15, 0.85) * width;
    const y = seeded.between(0.12, 0.58) * height;
    const radius = unit * seeded.whole(2, 6);
    const sides = seeded.pick([3, 4, 6, 8]);
    const corners = Array.from({ length: sides }, (_, corner) => {
      const angle = (corner / sides) * Math.PI * 2 + x;
      return `${x + Math.cos(angle) * radius} ${y + Math.sin(angle) * radius}`;
    });
    return `<circle cx="${x}" cy="${y}" r="${radius}"/><circle cx="${x}" cy="${y}" r="${radius * 1.5}" stroke-dasharray="2 7"/><path d="M${corners.join("L")}ZM${x - radius * 2} ${y}H${x + radius * 2}M${x} ${y - radius * 2}V${y + radius * 2}"/>`;
  });
  const svg = `<rect width="${width}" height="${height}" fill="#123a6b"/><path d="${grid.join("")}" stroke="#fff" stroke-opacity=".1"/>
    <g fill="none" stroke="#e8f1ff" stroke-opacity=".85" stroke-width="${unit / 12}">${figures.join("")}</g>
    <rect x="${unit}" y="${unit}" width="${width - unit * 2}" height="${height - unit * 2}" fill="none" stroke="#e8f1ff" stroke-width="${unit / 8}"/>
    <rect y="${height * 0.7}" x="${unit}" width="${width - unit * 2}" height="${height * 0.3 - unit}" fill="#0d2d55" stroke="#e8f1ff" stroke-width="${unit / 8}"/>`;
  return { svg, ink: "#e8f1ff" };
}

export const scenes = { poster, dusk, paper, blueprint } as const;

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
