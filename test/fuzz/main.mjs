/**
 * Odd input for everything that reads what others wrote.
 *
 *   npm run fuzz                                    all tests with the tag fuzz, in full
 *   npm run fuzz -- --short                         the same with a tenth of the cases, or of their size
 *   npm run fuzz -- --minutes 5 [--only csv,yaml]   each parser (test/fuzz/parsers/) for so many minutes of processor time
 *   npm run fuzz -- --minutes 5 --only csv --seed 7 the same cases again
 *
 * A case that breaks a rule is made small and kept in test/fuzz/regressions/, which every `npm test` tries again. So is a
 * case that does not end, and one that ends the process, as they are: they are watched from here.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    short: { type: "boolean" },
    minutes: { type: "string" },
    only: { type: "string" },
    seed: { type: "string" },
  },
});
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Longer than any case takes on a busy machine. */
const endlessMs = 90_000;

const folder = mkdtempSync(join(tmpdir(), "bulkgen-fuzz-cases-"));
const { minutes, only } = values;
const seed = values.seed ?? (minutes === undefined ? undefined : String(Math.floor(Math.random() * 2 ** 31)));
const asked = {
  FUZZ_SHORT: values.short ? "1" : undefined,
  FUZZ_CASES: folder,
  FUZZ_MINUTES: minutes,
  FUZZ_ONLY: only,
  SEED: seed,
};
const vitest = ["run", "-c", "test/fuzz/vitest.config.ts", "--tags-filter", "fuzz"];
if (minutes !== undefined || only !== undefined) vitest.push("test/fuzz/parsers.test.ts");

const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", ...vitest], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, ...Object.fromEntries(Object.entries(asked).filter(([, value]) => value)) },
  // A group of its own: vitest runs the tests in a process that would outlive it.
  detached: true,
});
let stopped = false;
for (const signal of ["SIGINT", "SIGTERM"])
  process.on(signal, () => {
    stopped = true;
    process.kill(-child.pid, signal);
  });

/** Keeps the case in progress of this parser. */
function keep(name, why) {
  const bytes = readFileSync(join(folder, name));
  const kept = join(root, "test", "fuzz", "regressions", name);
  mkdirSync(kept, { recursive: true });
  const file = join(kept, createHash("sha256").update(bytes).digest("hex").slice(0, 12));
  writeFileSync(file, bytes);
  console.error(`${name}: ${why}; it is kept as ${file}`);
}

const watch = setInterval(() => {
  const endless = readdirSync(folder).find(
    (name) => Date.now() - statSync(join(folder, name)).mtimeMs > endlessMs,
  );
  if (endless === undefined) return;
  keep(endless, "a case does not end");
  process.kill(-child.pid, "SIGKILL");
}, 5_000);
child.on("close", (code) => {
  clearInterval(watch);
  // A case is noted until it has ended: this one ended the process, or was ended with it.
  if (!stopped) for (const name of readdirSync(folder)) keep(name, "the process ended during a case");
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = stopped ? 1 : (code ?? 1);
});
