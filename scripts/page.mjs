/**
 * Builds the pages that a server serves:
 *
 *   node scripts/page.mjs FOLDER
 *
 * Writes index.html of each page and its parts, which are named by their contents. Nothing is inline, because the
 * Content-Security-Policy of each page allows no inline script or style.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { notices } from "./notices.mjs";

/** Each page by its folder in src/page, with its folder in the build and the address of its parts. */
const pages = [
  { name: "dashboard", folder: "dashboard", base: "./" },
  { name: "reference", folder: "page/reference", base: "/docs/" },
  { name: "service", folder: "page/service", base: "/dashboard/" },
];

for (const { name, folder, base } of pages) {
  const target = join(resolve(process.argv[2]), folder);
  const { output } = await build({
    configFile: false,
    logLevel: "warn",
    root: fileURLToPath(new URL(`../src/page/${name}/`, import.meta.url)),
    base,
    build: {
      outDir: target,
      emptyOutDir: true,
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      // The viewer of the reference is one file of 1.7 MB, which a browser reads from its own machine.
      chunkSizeWarningLimit: 2_000,
      // How long a part of the build took says something of the machine, and nothing of the page.
      rolldownOptions: { checks: { pluginTimings: false } },
    },
  });
  const modules = output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
  writeFileSync(join(target, "NOTICES.txt"), notices(modules));
}
