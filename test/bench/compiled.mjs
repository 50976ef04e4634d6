/** Benches in TypeScript: bulkgen is built if it is not, they are compiled with the simulation, and one is run. */
import { spawnSync } from "node:child_process";

export function runCompiled(bench) {
  const run = (command, ...words) => spawnSync(command, words, { stdio: "inherit" }).status ?? 1;
  process.exitCode =
    run(process.execPath, "scripts/ready.mjs", "--build") ||
    run("npx", "tsc", "-p", "test/sim/tsconfig.json") ||
    run(process.execPath, `dist-sim/test/bench/${bench}/main.js`, ...process.argv.slice(2));
}
