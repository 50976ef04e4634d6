import type { Seeded } from "./seeded.js";

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
