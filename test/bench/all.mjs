// Every bench, one after the other, with the same flags: `npm run bench [-- --short]`.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

for (const bench of [
  "startup",
  "throughput",
  "resume",
  "memory",
  "waiting",
  "sandbox",
  "manifest",
  "graph",
  "chains",
  "archive",
  "view",
  "dashboard",
  "hostile",
  "truncations",
  "quota",
]) {
  const file = fileURLToPath(new URL(`${bench}.mjs`, import.meta.url));
  console.log(`\n-- ${bench}`);
  const { status } = spawnSync(process.execPath, [file, ...process.argv.slice(2)], { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
