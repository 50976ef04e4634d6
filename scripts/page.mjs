/**
 * Builds the page of the dashboard:
 *
 *   node scripts/page.mjs FOLDER
 *
 * Writes FOLDER/dashboard/index.html and its parts, which are named by their contents. Nothing is inline, because the
 * dashboard's Content-Security-Policy allows no inline script or style.
 */
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

await build({
  configFile: false,
  logLevel: "warn",
  root: fileURLToPath(new URL("../src/dashboard/page/", import.meta.url)),
  base: "./",
  build: {
    outDir: join(resolve(process.argv[2]), "dashboard"),
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
