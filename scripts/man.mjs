/**
 * Writes the manual pages:
 *
 *   node scripts/man.mjs FOLDER
 *
 * FOLDER is a build: its compiled definitions are read, and FOLDER/man gets the pages.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2]);
const from = (file) => import(pathToFileURL(join(folder, "cli", file)).href);
const { commandList } = await from("command-list.js");
const { manPages } = await from("man.js");
const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
mkdirSync(join(folder, "man"));
for (const [file, text] of manPages(commandList, version)) writeFileSync(join(folder, "man", file), text);
