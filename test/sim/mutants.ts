import { fleetMutants } from "./fleet/mutants.js";
import { approvalMutants } from "./mutants-approval.js";
import { archiveMutants } from "./mutants-archive.js";
import { cancelMutants } from "./mutants-cancel.js";
import { chainMutants } from "./mutants-chains.js";
import { clockMutants } from "./mutants-clock.js";
import { jobMutants } from "./mutants-jobs.js";
import { moneyMutants } from "./mutants-money.js";
import { priceMutants } from "./mutants-prices.js";
import { publishingMutants } from "./mutants-publishing.js";
import { quotaMutants } from "./mutants-quota.js";
import { settlingMutants } from "./mutants-settling.js";
import type { Substitution } from "./runner.js";
import type { Scenario } from "./scenario.js";
import { servedMutants } from "./served/mutants.js";

/** A deliberately broken runner: the real one with something else in the place of some methods of its ports. */
export interface Mutant extends Substitution {
  /** What is wrong with it, as a sentence about it. */
  name: string;
  /** It is of the runs in which several hosts share a workspace. */
  isFleet?: true;
  /** It is of the runs whose service is that of a models file. */
  isServed?: true;
  /** Where it can show; anywhere, if not said. */
  matters?(scenario: Scenario): boolean;
  /** Changes each scenario into one in which it can show, if few seeds have one by themselves. */
  stage?(scenario: Scenario): Scenario;
  /** What it is besides, if that remembers something from process to process: a new one for each simulation. */
  make?(): Substitution;
}

/** What cannot catch these, cannot be believed when it finds nothing. */
export function allMutants(): readonly Mutant[] {
  return [
    ...moneyMutants,
    ...priceMutants,
    ...cancelMutants,
    ...settlingMutants,
    ...quotaMutants,
    ...archiveMutants,
    ...jobMutants,
    ...clockMutants,
    ...chainMutants,
    ...approvalMutants,
    ...publishingMutants,
    ...fleetMutants(),
    ...servedMutants,
  ];
}
