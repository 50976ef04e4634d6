// Every bench, one after the other, with the same flags: `npm run bench [-- --short]`. `--only times` leaves out those that
// count what happens in virtual time, in files or within a process, and `--only counts` the others. Only times need a quiet
// machine.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const times = [
  "startup",
  "throughput",
  "resume",
  "reading",
  "memory",
  "sandbox",
  "manifest",
  "graph",
  "archive",
  "view",
  "dashboard",
];
const counts = ["waiting", "chains", "hostile", "truncations", "quota"];

const flags = process.argv.slice(2);
const at = flags.indexOf("--only");
const [, only] = at < 0 ? [] : flags.splice(at, 2);
for (const bench of [...(only === "counts" ? [] : times), ...(only === "times" ? [] : counts)]) {
  const file = fileURLToPath(new URL(`${bench}.mjs`, import.meta.url));
  console.log(`\n-- ${bench}`);
  const { status } = spawnSync(process.execPath, [file, ...flags], { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
