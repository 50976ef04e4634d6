/**
 * Odd input for everything that reads what others wrote.
 *
 *   npm run fuzz                                    all tests with the tag fuzz, in full
 *   npm run fuzz -- --short                         the same with a tenth of the cases, or of their size
 *   npm run fuzz -- --minutes 5 [--only csv,yaml]   each parser (test/fuzz/parsers/) for so many minutes of processor time
 *   npm run fuzz -- --minutes 5 --only csv --seed 7 the same cases again
 *
 * A case that breaks a rule is made small and kept in test/fuzz/regressions/, which every `npm test` tries again. So is a
 * case that does not end, as it is; nothing in its own process could stop it, so that it is watched from here.
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
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.kill(-child.pid, signal));

const watch = setInterval(() => {
  const endless = readdirSync(folder).find(
    (name) => Date.now() - statSync(join(folder, name)).mtimeMs > endlessMs,
  );
  if (endless === undefined) return;
  const bytes = readFileSync(join(folder, endless));
  const kept = join(root, "test", "fuzz", "regressions", endless);
  mkdirSync(kept, { recursive: true });
  const file = join(kept, createHash("sha256").update(bytes).digest("hex").slice(0, 12));
  writeFileSync(file, bytes);
  console.error(`${endless}: a case does not end; it is kept as ${file}`);
  process.kill(-child.pid, "SIGKILL");
}, 5_000);
child.on("close", (code) => {
  clearInterval(watch);
  rmSync(folder, { recursive: true, force: true });
  process.exitCode = code ?? 1;
});
