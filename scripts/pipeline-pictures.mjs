#!/usr/bin/env node
/**
 * Makes the pictures of docs/pipelines.md from real runs on the sandbox:
 *
 *   node scripts/pipeline-pictures.mjs [NAME...]
 *
 * It needs Chromium. The lines of each section are run in a copy of its folder, and the gallery of the final set is shown.
 * The pictures are written into docs/pipelines/.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import sharp from "sharp";

const root = resolve(fileURLToPath(new URL("..", import.meta.url)));
const main = join(root, "dist", "bin", "bulkgen.js");
const home = mkdtempSync(join(tmpdir(), "bulkgen-pipelines-"));
const env = { ...process.env, HOME: home, XDG_STATE_HOME: home, CI: "", FORCE_COLOR: "" };
const wanted = process.argv.slice(2);
/** Runs at once: they wait for most of their time. */
const atOnce = 4;
/** What a picture shows of the page: four files side by side, two rows. */
const size = { width: 1280, height: 560 };
const shownWidth = 900;

const sections = readFileSync(join(root, "docs", "pipelines.md"), "utf8")
  .split(/^## /m)
  .map((text) => ({
    name: /\(pipelines\/([\w-]+)\.webp\)/.exec(text)?.[1],
    lines: [...text.matchAll(/^\$ bulkgen (.*)$/gm)].map(([, line]) => line),
  }))
  .filter(({ name }) => name !== undefined && (wanted.length === 0 || wanted.includes(name)));

/** Runs a command line in a folder; its output is returned, its exit code is the page's business. */
function bulkgen(folder, line) {
  const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain);
  const child = spawn(process.execPath, [main, ...words], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let text = "";
  child.stdout.on("data", (piece) => {
    text += piece;
  });
  return new Promise((done) => child.once("close", () => done(text)));
}

async function played({ name, lines }) {
  const folder = join(home, name);
  cpSync(join(root, "jobs", "pipelines", name), folder, { recursive: true });
  for (const line of lines) await bulkgen(folder, line);
  return JSON.parse(await bulkgen(folder, "gallery --sandbox --final --json")).page;
}

async function picture(browser, name, file) {
  const page = await browser.newPage({ viewport: size, reducedMotion: "reduce", bypassCSP: true });
  await page.goto(pathToFileURL(file).href);
  await page.addStyleTag({ content: "header { display: none !important; }" });
  await page.waitForTimeout(1500);
  const target = join(root, "docs", "pipelines", `${name}.webp`);
  const { size: bytes } = await sharp(await page.screenshot({ type: "png" }))
    .resize({ width: shownWidth })
    .webp({ quality: 66, effort: 6 })
    .toFile(target);
  process.stdout.write(`docs/pipelines/${name}.webp, ${bytes} bytes\n`);
  await page.close();
}

mkdirSync(join(root, "docs", "pipelines"), { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const left = [...sections];
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift())
      await picture(browser, next.name, await played(next));
  }),
);
await browser.close();
rmSync(home, { recursive: true });
