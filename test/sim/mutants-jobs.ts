import type { Claim } from "../../src/core/ports/accounts.js";
import { jobOf } from "./jobs.js";
import type { Mutant } from "./mutants.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where a workspace has several jobs. */
export const jobMutants: readonly Mutant[] = [
  {
    name: "takes the answer to another job's equal row for its own",
    matters: (scenario) => hasJobs(scenario) && scenario.faults.some(({ at }) => at === "effect"),
    receipts: ({ answerTo }) => ({
      answerTo: async (run, item, attempt) => {
        const other = run.jobName === "demo" ? "demo-1" : "demo";
        const own = await answerTo(run, item, attempt);
        return own ?? answerTo({ ...run, jobName: other }, item, attempt);
      },
    }),
  },
  {
    name: "forgets what another job of its workspace has to collect",
    matters: hasJobs,
    accounts: ({ quota, owes, reserve }) => ({
      quota: (account, claimant) => quota(account, ofWorkspace(claimant)),
      owes: (account, claim) => owes(account, claimed(claim)),
      reserve: (caller, endpoint, claim) => reserve(caller, endpoint, claimed(claim)),
    }),
  },
];

function hasJobs({ items }: Scenario): boolean {
  return items.some(({ id }) => jobOf(id) > 0);
}

function ofWorkspace(claimant = ""): string {
  return claimant.replace(/ run \d+$/, "");
}

function claimed<Of extends Claim | undefined>(claim: Of) {
  return claim && { ...claim, claimant: ofWorkspace(claim.claimant) };
}
