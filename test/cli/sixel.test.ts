import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { expect, test } from "vitest";
import { picturesOf, sixel } from "../../src/cli/output/pictures.js";

/** The pixels that a terminal shows of a sixel string. */
function shown(text: string): { width: number; height: number; pixels: string[] } {
  const drawn = text.slice(text.indexOf('"') + 1, text.lastIndexOf("\u001b\\"));
  const [, attributes = "", body = ""] = /^([\d;]+)(.*)$/s.exec(drawn) ?? [];
  const [, , width = 0, height = 0] = attributes.split(";").map(Number);
  const colours = new Map<string, string>();
  const pixels = Array.from({ length: width * height }, () => "none");
  let [x, top, colour] = [0, 0, "none"];
  for (const [token, number, definition, times, mark] of body.matchAll(
    /#(\d+)(;2;[\d;]+)?|!(\d+)(.)|[$-]|[?-~]/g,
  )) {
    if (number !== undefined) {
      if (definition !== undefined) colours.set(number, definition.slice(3));
      else colour = colours.get(number) ?? "undefined";
    } else if (token === "$") x = 0;
    else if (token === "-") [x, top] = [0, top + 6];
    else {
      const bits = (mark ?? token).charCodeAt(0) - 63;
      for (let left = Number(times ?? 1); left > 0; left--, x++)
        for (let row = 0; row < 6; row++) if (bits & (1 << row)) pixels[(top + row) * width + x] = colour;
    }
  }
  return { width, height, pixels };
}

test("a sixel picture has every pixel once, in its own colour", () => {
  const [width, height] = [9, 8];
  const rgb = new Uint8Array(width * height * 3);
  for (let at = 0; at < width * height; at++) rgb.set(at % width < 5 ? [255, 0, 51] : [0, 204, 255], at * 3);
  const { pixels, ...size } = shown(sixel(rgb, width, height));
  expect(size).toEqual({ width, height });
  expect(pixels).toEqual(
    Array.from({ length: width * height }, (_, at) => (at % width < 5 ? "100;0;20" : "0;80;100")),
  );
});

test("colours between the levels are mixed of their neighbours", () => {
  const grey = new Uint8Array(16 * 16 * 3).fill(128);
  const { pixels } = shown(sixel(grey, 16, 16));
  const mean = pixels.reduce((sum, colour) => sum + Number(colour.split(";")[0]), 0) / pixels.length;
  expect([...new Set(pixels)].toSorted()).toEqual(["40;40;40", "60;60;60"]);
  expect(mean).toBeCloseTo(50, 0);
});

test("terminals with sixels get a small picture, and nothing of a file that is gone or is none", async () => {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-sixel-"));
  try {
    const file = join(folder, "cup.png");
    await sharp({ create: { width: 600, height: 300, channels: 4, background: "#336699ff" } }).toFile(file);
    writeFileSync(join(folder, "broken.png"), "no picture");
    for (const env of [
      { TERM: "foot" },
      { TERM: "mlterm" },
      { TERM: "xterm-256color", KONSOLE_VERSION: "230401" },
    ]) {
      const draw = picturesOf(env);
      expect(shown((await draw?.(file)) ?? "")).toMatchObject({ width: 140, height: 70 });
      expect(await draw?.(join(folder, "gone.png"))).toBeNull();
      expect(await draw?.(join(folder, "broken.png"))).toBeNull();
      expect(await draw?.(join(folder, "voice.wav"))).toBeNull();
    }
    expect(picturesOf({ TERM: "xterm-256color", KONSOLE_VERSION: "210801" })).toBeNull();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
