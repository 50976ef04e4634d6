import type { Palette } from "./palette.js";
import type { Seeded } from "./seeded.js";

/** What a scene is drawn on. */
interface Canvas {
  width: number;
  height: number;
  palette: Palette;
  seeded: Seeded;
}

/** A scene: the inside of an SVG, and where its prompt reads well. */
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
