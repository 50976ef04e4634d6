/** Writes the generated sections of README.md anew: `npm run docs`. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { sections, withSections } from "./readme-sections.mjs";

const path = fileURLToPath(new URL("../README.md", import.meta.url));
const before = readFileSync(path, "utf8");
const after = withSections(before, await sections());
if (after !== before) writeFileSync(path, after);
console.log(after === before ? "README.md is up to date" : "README.md: generated sections rewritten");
