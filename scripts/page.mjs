/**
 * Builds the pages that a browser shows:
 *
 *   node scripts/page.mjs FOLDER
 *
 * Each page is a folder of src/page, and is built into FOLDER/page. Of a page that a server serves these are index.html and
 * its parts, which are named by their contents. Nothing is inline, because the Content-Security-Policy of such a page
 * allows no inline script or style. The gallery is one script and one style, which each gallery holds inline.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { notices } from "./notices.mjs";

const inline = {
  cssCodeSplit: false,
  rolldownOptions: {
    input: "main.tsx",
    output: { format: "iife", entryFileNames: "gallery.js", assetFileNames: "gallery.css" },
  },
};

/** Each page with the address of its parts, and how it is built otherwise than the rest. */
const pages = [
  { name: "dashboard", base: "./", own: {} },
  { name: "gallery", base: "./", own: inline },
  { name: "reference", base: "/docs/", own: {} },
  { name: "service", base: "/dashboard/", own: {} },
  { name: "serve", base: "/dashboard/", own: {} },
];

for (const { name, base, own } of pages) {
  const target = join(resolve(process.argv[2]), "page", name);
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
      ...own,
      // The viewer of the reference is one file of 1.5 MB, which a browser reads from its own machine.
      chunkSizeWarningLimit: 2_000,
      // How long a part of the build took says something of the machine, and nothing of the page.
      rolldownOptions: { checks: { pluginTimings: false }, ...own.rolldownOptions },
    },
  });
  const modules = output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
  writeFileSync(join(target, "NOTICES.txt"), notices(modules));
}
