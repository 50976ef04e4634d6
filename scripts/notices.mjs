import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** What the licences of the bundled packages ask for: who made them, and the licences themselves. */
export function notices(modules) {
  const files = new Map();
  for (const module of modules) {
    const folder = packageFolder(module);
    if (folder !== null) files.set(folder, [...(files.get(folder) ?? []), module]);
  }
  const entries = [...files]
    .map(([folder, used]) => notice(folder, used))
    .sort((a, b) => (a.title < b.title ? -1 : 1));
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

/** A file that is itself a bundle of other packages has their notices beside it. */
function notice(path, used) {
  const { name, version, license, homepage } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const files = readdirSync(path).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  if (files.length === 0) throw new Error(`${name} brings no licence text`);
  const bundled = used.map((file) => `${file}.LICENSE.txt`).filter((file) => existsSync(file));
  const texts = [...files.map((file) => join(path, file)), ...bundled].map((file) =>
    readFileSync(file, "utf8").trim(),
  );
  return {
    title: `${name} ${version} (${license})`,
    text: `${[homepage, ...texts].filter(Boolean).join("\n\n")}\n`,
  };
}
