import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import type { Done, ProviderJob } from "../../src/providers/provider.js";
import { templateKind } from "../../src/providers/template/kind.js";
import { freshFolder, openKind, type PlaceParts, unhurried } from "./job.js";

/** A folder with these files. */
export function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = freshFolder();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

export function opened(folder: string, parts: PlaceParts = {}) {
  const { PATH = "", HOME = "", CHROMIUM } = process.env;
  const env = { PATH, HOME, ...(CHROMIUM === undefined ? {} : { CHROMIUM }) };
  return openKind(templateKind, { folder, env, ...parts });
}

export async function bytesOf(provider: ReturnType<typeof opened>, job: ProviderJob): Promise<Buffer> {
  const done = (await provider.submit(job, unhurried)) as Done;
  const [output] = done.outputs as { bytes: Uint8Array }[];
  return Buffer.from(output?.bytes ?? []);
}

export async function pixelAt(bytes: Buffer, left: number, top: number): Promise<number[]> {
  const cut = await sharp(bytes).extract({ left, top, width: 1, height: 1 }).raw().toBuffer();
  return [...cut.subarray(0, 3)];
}

export async function factsOf(bytes: Buffer): Promise<string> {
  const { format, width, height } = await sharp(bytes).metadata();
  return `${format} ${width}x${height}`;
}

export const lime = [0, 255, 0];
export const red = [255, 0, 0];
export const page = (body: string, css = "") =>
  `<!doctype html><meta charset="utf-8"><style>body{margin:0}${css}</style>${body}`;
export const full = "position:fixed;inset:0";

/** Values that would paint something red if they were more than text. */
export const hostilePrompts = [
  `<div style="${full};background:red"></div>`,
  `"><div style="${full};background:red"></div>`,
  `' onload='x' style='${full};background:red`,
  `<script>document.body.style.background='red'</script>`,
  `</style><style>body{background:red!important}</style>`,
  `<img src=x onerror="document.body.style.background='red'">`,
  "{{ prompt }} {% raw %}",
  "two\nlines & ünïcödé 🪁 עברית \u0001",
];

/** Whether any pixel of a picture is red. */
export async function hasRed(bytes: Buffer): Promise<boolean> {
  const pixels = await sharp(bytes).removeAlpha().raw().toBuffer();
  return pixels.some((_, at) => at % 3 === 0 && pixels.subarray(at, at + 3).equals(Buffer.from(red)));
}
