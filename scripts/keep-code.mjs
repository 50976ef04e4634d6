/**
 * Loaded before the built command (`node --import …/keep-code.mjs FOLDER/bin/bulkgen.js …`): keeps the code that V8 made of
 * each part until the command ended, for start.mjs. V8 compiles a function when it is first called, so what is called at a start is in it.
 */
import { writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import vm from "node:vm";

const parts = join(dirname(process.argv[1]), "parts");
const scripts = new Map();

vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    scripts.set(join(parts, `${basename(options.filename)}.code`), this);
  }
};

process.on("exit", () => {
  for (const [path, script] of scripts) writeFileSync(path, script.createCachedData());
});
