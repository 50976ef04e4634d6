/** Rewrites the generated sections of README.md and docs/: `npm run docs`. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { pages, sections, withSections } from "./readme-sections.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
process.chdir(root);
const made = await sections();
for (const page of pages()) {
  const before = readFileSync(page, "utf8");
  const after = withSections(before, made, page);
  if (after !== before) writeFileSync(page, after);
  console.log(after === before ? `${page} is up to date` : `${page}: generated sections rewritten`);
}
