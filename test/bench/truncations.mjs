// Compiles bulkgen and the bench of truncated files, and runs it.
import { spawnSync } from "node:child_process";

const run = (command, ...values) => spawnSync(command, values, { stdio: "inherit" }).status ?? 1;
process.exitCode =
  run(process.execPath, "scripts/ready.mjs", "--build") ||
  run("npx", "tsc", "-p", "test/sim/tsconfig.json") ||
  run(process.execPath, "dist-sim/test/bench/truncations/main.js", ...process.argv.slice(2));
