/**
 * Builds the page of the dashboard:
 *
 *   node scripts/page.mjs FOLDER
 *
 * Writes FOLDER/dashboard/index.html and its parts, which are named by their contents. Nothing is inline, because the
 * dashboard's Content-Security-Policy allows no inline script or style.
 */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { notices } from "./notices.mjs";

const folder = join(resolve(process.argv[2]), "dashboard");
const { output } = await build({
  configFile: false,
  logLevel: "warn",
  root: fileURLToPath(new URL("../src/page/dashboard/", import.meta.url)),
  base: "./",
  build: {
    outDir: folder,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // How long a part of the build took says something of the machine, and nothing of the page.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
});
const modules = output.flatMap((part) => (part.type === "chunk" ? part.moduleIds : []));
writeFileSync(join(folder, "NOTICES.txt"), notices(modules));
