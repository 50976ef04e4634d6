#!/usr/bin/env node
/**
 * Makes the pictures of the README from a real run on the sandbox:
 *
 *   node scripts/pictures.mjs
 *
 * It needs Chromium and tmux. The demo's sheet is run in a folder of its own; the terminal and the dashboard are shown while
 * the run goes on, and the gallery when it has ended. The pictures are written into docs/.
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
const env = { ...process.env, HOME: home, XDG_STATE_HOME: home, CI: "", FORCE_COLOR: "" };
const size = { width: 1280, height: 800 };
/** The picture of the run is taken when it has archived more files than that. */
const filesSeen = 9;

mkdirSync(place);
copyFileSync(join(root, "jobs", "demo.csv"), join(place, "demo.csv"));
const bulkgen = (...words) =>
  spawnSync(process.execPath, [main, ...words], { cwd: place, env, encoding: "utf8" });

/** Writes what the page shows, or a part of it. */
async function picture(shown, name) {
  const png = await shown.screenshot({ type: "png" });
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

/** What tmux prints; a terminal of its own, which ends with its last session. */
function tmux(...words) {
  return spawnSync("tmux", ["-L", "bulkgen-pictures", ...words], { cwd: place, env, encoding: "utf8" })
    .stdout;
}

/** A terminal's screen as a page: text with the colours and weights that it was written in. */
function terminalPage(text) {
  const colours = ["#262a33", "#e06c75", "#98c379", "#e5c07b", "#7ea6ff", "#c678dd", "#56b6c2", "#dcdfe4"];
  const escaped = (piece) => piece.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  let style = {};
  const pieces = `0m${text.trimEnd()}`.split("\u001b[").map((piece) => {
    const [, codes, shown] = /^([\d;]*)m(.*)$/s.exec(piece) ?? [];
    for (const code of (codes ?? "").split(";").map(Number)) {
      if (code === 0) style = {};
      else if (code === 1) style["font-weight"] = "700";
      else if (code === 2) style.opacity = "0.6";
      else if (code === 22) style = { color: style.color ?? "inherit" };
      else if (code === 39) style.color = "inherit";
      else if (code >= 30 && code <= 37) style.color = colours[code - 30];
      else if (code === 90) style.color = "#8b93a1";
    }
    const css = Object.entries(style).map(([name, value]) => `${name}: ${value}`);
    return `<span style="${css.join("; ")}">${escaped(shown ?? "")}</span>`;
  });
  return `<!doctype html><style>body { margin: 0; } pre { display: inline-block; margin: 0; padding: 22px 26px;
    background: #14161b; color: #dcdfe4; font: 15px/1.45 "DejaVu Sans Mono", monospace; }</style><pre>${pieces.join("")}</pre>`;
}

const { child, line } = await served("dashboard", "--sandbox", "--json");
const { link } = JSON.parse(line);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: size, reducedMotion: "reduce" });
tmux(
  "new-session",
  "-d",
  "-x",
  "96",
  "-y",
  "24",
  "-s",
  "run",
  `${process.execPath} ${main} run demo.csv --sandbox --yes`,
);
await page.goto(link);
await page.getByRole("link", { name: "demo" }).first().click();
const newest = page.getByRole("region", { name: "Newest files" });
await newest.getByRole("link").nth(filesSeen).waitFor({ state: "attached", timeout: 60_000 });
await page.waitForFunction(() => [...document.images].every((image) => image.complete));
const screen = tmux("capture-pane", "-e", "-p", "-t", "run");
await picture(page, "dashboard");
await page.goto("about:blank");
await page.setContent(terminalPage(screen));
await picture(page.locator("pre"), "terminal");
while (tmux("list-sessions") !== "") await page.waitForTimeout(500);

const { page: gallery } = JSON.parse(bulkgen("gallery", "--sandbox", "--prices", "--json").stdout);
await page.goto(pathToFileURL(gallery).href);
await page.waitForFunction(() => [...document.images].slice(0, 4).every((image) => image.naturalWidth > 0));
for (const key of ["ArrowRight", "p", "ArrowRight", "x", "ArrowRight", "r", "ArrowLeft", "ArrowLeft"])
  await page.keyboard.press(key);
await page.evaluate(() => window.scrollTo(0, 0));
await page.evaluate(() => Promise.all(document.getAnimations().map(({ finished }) => finished)));
await picture(page, "gallery");
await browser.close();
child.kill("SIGTERM");
await new Promise((done) => child.once("close", done));
rmSync(home, { recursive: true });
