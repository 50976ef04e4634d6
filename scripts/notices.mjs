import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What the licences of the bundled packages ask for: who made them, and the licences themselves. */
export function notices(modules) {
  const folders = new Set(modules.map(packageFolder).filter((found) => found !== null));
  const entries = [...folders].map(notice).sort((a, b) => (a.title < b.title ? -1 : 1));
  const head = "The files in this folder hold code of these packages.\n";
  return [head, ...entries.map(({ title, text }) => `${title}\n${"=".repeat(title.length)}\n\n${text}`)].join(
    "\n",
  );
}

/** The folder of the package that a module belongs to; null for a module of ours or of the bundler. */
function packageFolder(module) {
  const found = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^.\\/][^\\/]*)[\\/]/.exec(module);
  return found === null ? null : found[1];
}

function notice(path) {
  const { name, version, license, homepage } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const files = readdirSync(path).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  if (files.length === 0) throw new Error(`${name} brings no licence text`);
  const texts = files.map((file) => readFileSync(join(path, file), "utf8").trim());
  return {
    title: `${name} ${version} (${license})`,
    text: `${[homepage, ...texts].filter(Boolean).join("\n\n")}\n`,
  };
}
