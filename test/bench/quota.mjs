// Compiles the bench of requests and runs it: the program's own decisions in virtual time, against usual polling.
import { spawnSync } from "node:child_process";

const run = (command, ...values) => spawnSync(command, values, { stdio: "inherit" }).status ?? 1;
process.exitCode =
  run("npx", "tsc", "-p", "test/sim/tsconfig.json") ||
  run(process.execPath, "dist-sim/test/bench/quota/main.js", ...process.argv.slice(2));
