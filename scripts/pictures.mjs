#!/usr/bin/env node
/**
 * Makes the pictures of the README from a real run on the sandbox:
 *
 *   node scripts/pictures.mjs
 *
 * It needs Chromium. The demo's sheet is run in a folder of its own; the dashboard is shown while the run goes on, and the
 * gallery when it has ended. The pictures are written into docs/.
 */
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import sharp from "sharp";

const root = resolve(fileURLToPath(new URL("..", import.meta.url)));
const main = join(root, "dist", "bin", "bulkgen.js");
const home = mkdtempSync(join(tmpdir(), "bulkgen-pictures-"));
const place = join(home, "tea-house");
const env = { ...process.env, HOME: home, XDG_STATE_HOME: home, NO_COLOR: "1" };
const size = { width: 1280, height: 800 };
/** The picture of the run is taken when it has archived more files than that. */
const filesSeen = 9;

mkdirSync(place);
copyFileSync(join(root, "jobs", "demo.csv"), join(place, "demo.csv"));
const bulkgen = (...words) =>
  spawnSync(process.execPath, [main, ...words], { cwd: place, env, encoding: "utf8" });

/** Writes what the page shows. */
async function picture(page, name) {
  const png = await page.screenshot({ type: "png" });
  await sharp(png)
    .webp({ quality: 82 })
    .toFile(join(root, "docs", `${name}.webp`));
  process.stdout.write(`docs/${name}.webp\n`);
}

/** Runs a command, and resolves with the first line that it prints. */
function served(...words) {
  const child = spawn(process.execPath, [main, ...words], {
    cwd: place,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return new Promise((resolve) =>
    child.stdout.once("data", (line) => resolve({ child, line: String(line) })),
  );
}

const { child, line } = await served("dashboard", "--sandbox", "--json");
const { link } = JSON.parse(line);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: size, reducedMotion: "reduce" });
const running = spawn(process.execPath, [main, "run", "demo.csv", "--sandbox", "--yes"], {
  cwd: place,
  env,
  stdio: "ignore",
});
const ended = new Promise((done) => running.once("close", done));
await page.goto(link);
await page.getByRole("link", { name: "demo" }).first().click();
const newest = page.getByRole("region", { name: "Newest files" });
await newest.getByRole("link").nth(filesSeen).waitFor({ state: "attached", timeout: 60_000 });
await page.waitForFunction(() => [...document.images].every((image) => image.complete));
await picture(page, "dashboard");
await ended;

const { page: gallery } = JSON.parse(bulkgen("gallery", "--sandbox", "--prices", "--json").stdout);
await page.goto(pathToFileURL(gallery).href);
await page.waitForFunction(() => [...document.images].slice(0, 4).every((image) => image.naturalWidth > 0));
await picture(page, "gallery");
await browser.close();
child.kill("SIGTERM");
await new Promise((done) => child.once("close", done));
rmSync(home, { recursive: true });
