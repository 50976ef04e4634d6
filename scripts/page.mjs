/**
 * Builds the pages that a browser shows:
 *
 *   node scripts/page.mjs FOLDER
 *
 * FOLDER/page/dashboard is the page of the dashboard and its parts, which are named by their contents; so are the pages of the
 * service, reference and service. Nothing is inline, because their Content-Security-Policy allows no inline script or style.
 * FOLDER/page/gallery is one script and one style, which each gallery holds inline.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { notices } from "./notices.mjs";

const folder = join(resolve(process.argv[2]), "page");
const modules = [
  ...(await page("dashboard")),
  ...(await page("gallery", {
    cssCodeSplit: false,
    rolldownOptions: {
      input: "main.tsx",
      output: { format: "iife", entryFileNames: "gallery.js", assetFileNames: "gallery.css" },
    },
  })),
  ...(await page("reference", { base: "/docs/" })),
  ...(await page("service", { base: "/dashboard/" })),
];
writeFileSync(join(folder, "NOTICES.txt"), notices(modules));

/** Builds src/page/NAME, and answers with the paths of the modules whose code is in it. */
async function page(name, { base = "./", rolldownOptions, ...options } = {}) {
  const { output } = await build({
    configFile: false,
    logLevel: "warn",
    root: fileURLToPath(new URL(`../src/page/${name}/`, import.meta.url)),
    base,
    build: {
      outDir: join(folder, name),
      emptyOutDir: true,
      target: "es2022",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      // The viewer of the reference is one file of 1.5 MB, which a browser reads from its own machine.
      chunkSizeWarningLimit: 2_000,
      // How long a part of the build took says something of the machine, and nothing of the page.
      rolldownOptions: { checks: { pluginTimings: false }, ...rolldownOptions },
      ...options,
    },
  });
  return output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
}
