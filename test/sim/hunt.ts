import { drawn } from "./drawn.js";
import { allMutants, type Mutant } from "./mutants.js";
import { simulate } from "./simulate.js";

export interface Catch {
  mutant: string;
  /** Runs it took, and the seed of the last; null when it got away. */
  runs: number;
  seed: number | null;
  message: string;
}

/** Seeds that are tried before a mutant counts as escaped; runs of a fleet, and with a served models file, are longer. */
const seedsMax = 600;
const fleetSeedsMax = 150;

/** Runs a mutant until it breaks a promise that the real runner keeps in the same scenario. */
async function hunt(mutant: Mutant, first = 1): Promise<Catch> {
  const { isFleet = false, isServed = false } = mutant;
  const most = isFleet || isServed ? fleetSeedsMax : seedsMax;
  let runs = 0;
  for (let seed = first; runs < most; seed++) {
    const whole = drawn(seed, { days: 1, isFleet, isServed });
    const scenario = mutant.stage?.(whole) ?? whole;
    if (mutant.matters?.(scenario) === false) continue;
    runs++;
    const { violation } = await simulate(scenario, { ...mutant, ...mutant.make?.() });
    if (violation === null || (await simulate(scenario)).violation !== null) continue;
    return { mutant: mutant.name, runs, seed, message: violation.message };
  }
  return { mutant: mutant.name, runs, seed: null, message: "" };
}

/** Hunts the mutant of this name from a seed on. */
export async function huntNamed(name: string, first = 1): Promise<Catch> {
  const mutant = allMutants().find((one) => one.name === name);
  if (mutant === undefined) throw new Error(`there is no mutant "${name}"`);
  return hunt(mutant, first);
}

/**
 * The mutants that each check of a change hunts, of one machine, of a fleet and of a served models file, from the seed on that catches them. If a
 * hunt takes long, other code has made another seed the first: name that one.
 */
export const canary = { name: "sends again after a reset", first: 14 };
export const fleetCanary = { name: "believes a worker whose lease has ended", first: 145 };
export const servedCanary = { name: "tells of a job in doubt that it has failed", first: 1 };
