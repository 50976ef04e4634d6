#!/usr/bin/env node
/**
 * Starts the command from its parts, with the code that V8 made of them when they were built (keep-code.mjs): to compile
 * them anew is a third of what a short command costs. V8 refuses code that another version of it made, or that is of a
 * file of another length, and then compiles the file. The build copies this file to dist/bin/bulkgen.js.
 */
import { readFileSync } from "node:fs";
import Module from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import v8 from "node:v8";
import vm from "node:vm";

// undici reads answers with WebAssembly, which V8 in Node 20 optimises after a few of them. That takes 60 ms of processor
// time, a tenth of a short run; with this it waits for a few hundred, as newer Nodes do. V8 uses kept code only under the
// flags that it was made with, so this comes before any part is loaded. There, V8 also lets garbage grow to four times of
// what is in use before it collects any: 100 MB in a long run that uses 24.
if (process.versions.node.startsWith("20.")) {
  v8.setFlagsFromString("--wasm-tiering-budget=100000000");
  v8.setFlagsFromString("--heap-growing-percent=60");
}

const require = Module.createRequire(import.meta.url);
const parts = fileURLToPath(new URL("parts", import.meta.url));

require.extensions[".cjs"] = (module, path) => {
  if (dirname(path) !== parts) return require.extensions[".js"](module, path);
  const script = new vm.Script(Module.wrap(readFileSync(path, "utf8")), {
    // The code holds this name, and is made before the build is at its place.
    filename: `dist/bin/parts/${path.slice(parts.length + 1)}`,
    cachedData: codeOf(path),
  });
  script.runInThisContext()(module.exports, (name) => module.require(name), module, path, parts);
};

/** The parts that the build did not load have none. */
function codeOf(path) {
  try {
    return readFileSync(`${path}.code`);
  } catch {
    return undefined;
  }
}

await require(join(parts, "main.cjs")).ended;
