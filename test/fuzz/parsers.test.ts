import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { amount } from "./amount.js";
import { casesOf, type Outcome } from "./cases.js";
import { answerParsers } from "./parsers/answers.js";
import { dashboardParser } from "./parsers/dashboard.js";
import { fileParsers } from "./parsers/files.js";
import { manifestParsers } from "./parsers/manifests.js";
import { rebuildParser } from "./parsers/rebuild.js";

/**
 * Everything that reads what others wrote, with input of any kind: it is taken or refused in the way that is promised.
 * `npm run fuzz -- --minutes 5` tries each for so long.
 */
const only = process.env["FUZZ_ONLY"]?.split(",");
const minutes = process.env["FUZZ_MINUTES"];
const parsers = Object.entries({
  ...manifestParsers,
  ...answerParsers,
  ...fileParsers,
  rebuild: rebuildParser,
  dashboard: dashboardParser,
});
const wanted = parsers.filter(([name]) => only?.includes(name) ?? true);
const regressions = join("test", "fuzz", "regressions");

describe.each(wanted)("%s", (name, parser) => {
  const folder = join(regressions, name);

  test("keeps to its rules where it once broke them", { tags: ["fuzz"] }, async () => {
    for (const file of existsSync(folder) ? readdirSync(folder) : [])
      await parser.read(readFileSync(join(folder, file)));
  });

  test("takes or refuses whatever it is given", { tags: ["fuzz"], timeout: 86_400_000 }, async () => {
    const tried = { taken: 0, refused: 0 };
    const property = fc.asyncProperty(await casesOf(parser), async (bytes) => {
      noteCase(name, bytes);
      tried[await parser.read(bytes)]++;
    });
    const found =
      minutes === undefined
        ? await fc.check(property, { numRuns: amount(20, parser.cases ?? 2_500) })
        : await checkFor(Number(minutes), property);
    noteCase(name, null);
    if (minutes !== undefined) process.stdout.write(`${lineOf(name, tried, found.seed)}\n`);
    if (found.failed) throw new Error(kept(folder, found.counterexample), { cause: found.errorInstance });
    // A fuzz that never gets past the door proves nothing.
    if (minutes !== undefined) expect(tried.taken).toBeGreaterThan(0);
  });
});

test("there is a parser of each name that is asked for", { tags: ["fuzz"] }, () => {
  const known = parsers.map(([name]) => name);
  expect(known).toEqual(expect.arrayContaining(only ?? []));
  expect(
    existsSync(regressions) ? readdirSync(regressions).filter((name) => !known.includes(name)) : [],
  ).toEqual([]);
});

const sliceMs = 10_000;

/** Checks for so many minutes of this process's own processor time: beside other work it takes longer, and tries as much. */
async function checkFor<Case>(
  minutes: number,
  property: fc.IAsyncProperty<[Case]>,
): Promise<fc.RunDetails<[Case]>> {
  const began = process.cpuUsage();
  const spentMs = () => {
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1_000;
  };
  // Each slice has a seed of its own, with which it begins when it is asked for.
  for (let seed = fc.readConfigureGlobal()?.seed ?? 0; ; seed = (seed + 1) % 2 ** 31) {
    const leftMs = Math.max(1, minutes * 60_000 - spentMs());
    const interruptAfterTimeLimit = Math.min(sliceMs, leftMs);
    const found = await fc.check(property, { seed, numRuns: 2 ** 31 - 1, interruptAfterTimeLimit });
    // A slice in which no case ended counts as failed, without a case.
    const failed = found.failed && found.counterexample !== null;
    if (failed || spentMs() >= minutes * 60_000) return { ...found, failed } as typeof found;
  }
}

/** The case in progress, for `main.mjs`, which keeps one that does not end. */
function noteCase(name: string, bytes: Buffer | null): void {
  const folder = process.env["FUZZ_CASES"];
  if (folder === undefined) return;
  if (bytes === null) rmSync(join(folder, name), { force: true });
  else writeFileSync(join(folder, name), bytes);
}

function lineOf(name: string, { taken, refused }: Record<Outcome, number>, seed: number): string {
  return `${name}: ${taken + refused} cases, ${taken} taken and ${refused} refused; --seed ${seed}`;
}

/** Keeps a case that breaks a rule, and says where. */
function kept(folder: string, found: [Buffer] | null): string {
  if (found === null) return "no case could be made";
  const file = join(folder, createHash("sha256").update(found[0]).digest("hex").slice(0, 12));
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, found[0]);
  return `a case breaks a rule; it is kept as ${file}`;
}
