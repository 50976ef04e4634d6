import { allMutants, type Mutant } from "./mutants.js";
import { simulate } from "./simulate.js";
import { scenarioOf } from "./workload.js";

export interface Catch {
  mutant: string;
  /** Runs it took, and the seed of the last; null when it got away. */
  runs: number;
  seed: number | null;
  message: string;
}

/** Seeds that are tried before a mutant counts as escaped. */
const seedsMax = 600;

/** Runs a mutant until it breaks a promise that the real runner keeps in the same scenario. */
export async function hunt(mutant: Mutant, first = 1, most = seedsMax): Promise<Catch> {
  for (let seed = first; seed < first + most; seed++) {
    const { violation } = await simulate(scenarioOf(seed), mutant.make());
    if (violation === null) continue;
    const sound = await simulate(scenarioOf(seed));
    if (sound.violation !== null) continue;
    return { mutant: mutant.name, runs: seed - first + 1, seed, message: violation.message };
  }
  return { mutant: mutant.name, runs: most, seed: null, message: "" };
}

/** Every mutant, or the one that each check of a change hunts. */
export async function huntAll(which: "all" | "canary"): Promise<{ lines: string[]; escaped: number }> {
  const mutants = which === "all" ? allMutants() : allMutants().filter(({ name }) => name === canary);
  const caught: Catch[] = [];
  for (const mutant of mutants) caught.push(await hunt(mutant));
  const escaped = caught.filter(({ seed }) => seed === null).length;
  const lines = caught.map(({ mutant, seed, message }) =>
    seed === null
      ? `ESCAPED  ${mutant}`
      : `seed ${String(seed).padStart(3)}  ${mutant.padEnd(52)} ${message.slice(0, 120)}`,
  );
  return { lines: [...lines, `${caught.length - escaped} of ${caught.length} mutants caught`], escaped };
}

export const canary = "sends again after a reset";
