// Compiles the bench of chains and runs it: the whole program in virtual time, over the sandbox's world.
import { spawnSync } from "node:child_process";

const run = (command, ...values) => spawnSync(command, values, { stdio: "inherit" }).status ?? 1;
process.exitCode =
  run("npx", "tsc", "-p", "test/sim/tsconfig.json") ||
  run(process.execPath, "dist-sim/test/bench/chains/main.js", ...process.argv.slice(2));
