// Every bench, one after the other, with the same flags: `npm run bench [-- --short]`. `--only times` leaves out those that
// count what happens in virtual time, in files or within a process, and `--only counts` the others. Only times need a quiet
// machine.
import { spawnSync } from "node:child_process";

const times = [
  "startup",
  "throughput",
  "resume",
  "reading",
  "memory",
  "sandbox",
  "manifest",
  "graph",
  "files",
  "archive",
  "gallery",
  "handover",
  "view",
  "dashboard",
  "banners",
  "served",
];
const counts = ["waiting", "chains", "night", "hostile", "truncations", "quota"];
/** Written in TypeScript, and compiled once for all of them. */
const compiled = ["chains", "night", "truncations", "quota"];

const flags = process.argv.slice(2);
const at = flags.indexOf("--only");
const [, only] = at < 0 ? [] : flags.splice(at, 2);
const node = (...args) => spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1;
if (only !== "times")
  process.exitCode = node("node_modules/typescript/bin/tsc", "-p", "test/sim/tsconfig.json");
for (const bench of [...(only === "counts" ? [] : times), ...(only === "times" ? [] : counts)]) {
  const file = compiled.includes(bench) ? `dist-sim/test/bench/${bench}/main.js` : `test/bench/${bench}.mjs`;
  console.log(`\n-- ${bench}`);
  if (node(file, ...flags) !== 0) process.exitCode = 1;
}
