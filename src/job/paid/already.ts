import { type Credits, sumOf } from "../../core/money.js";
import type { Item, Run } from "../../core/ports/store.js";
import type { Finding } from "../../plan/plan.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { OpenAccount } from "../../workspace/account.js";
import { inArchive } from "./archived.js";
import { paidElsewhere, paidMeanwhile, priceOf, unendedHere } from "./elsewhere.js";
import type { EditionChoice } from "./job-of.js";
import { madeForOtherJobs } from "./other-jobs.js";
import { madeForOthers, othersRun } from "./owner.js";
import type { AskedPlan, KnownItems, PaymentSource, Question } from "./question.js";

interface PaidFindings {
  /** They refuse the run. */
  blockers: Finding[];
  warnings: Finding[];
}

/** Whether items of a plan were paid for already, of which the history knows nothing. */
export async function paidAlready(
  plan: AskedPlan,
  question: Question,
  { edition, sandbox }: { edition: EditionChoice; sandbox: boolean },
): Promise<PaidFindings> {
  const findings: PaidFindings = { blockers: [], warnings: [] };
  const others = othersRun(question.unfinished, question.who);
  if (others !== null) findings.blockers.push(others);
  if (edition === "fresh" || plan.due === 0) return findings;
  const { guessed } = question;
  if (guessed !== null) findings.blockers.push(guessed);
  const sources: PaymentSource<never>[] = [
    ...(others === null ? [await madeForOthers(plan, question)] : []),
    // The job was looked for among the others.
    ...(guessed === null ? [await madeForOtherJobs(plan, question)] : []),
    // Rehearsals cost nothing.
    ...(sandbox
      ? []
      : [await inArchive(plan, question), await unendedHere(question), await paidElsewhere(question)]),
  ] as PaymentSource<never>[];
  const tallies = sources.map(() => ({ found: [] as KnownItems<unknown>["found"] }));
  for (const item of plan.items) {
    if (!item.due || item.state === "archived") continue;
    // An item that several know is reported once, by the one that knows the best next step.
    for (const [at, source] of sources.entries()) {
      const known = source.has(item);
      const by = known instanceof Promise ? await known : known;
      if (by === undefined) continue;
      tallies[at]?.found.push({ item, by });
      break;
    }
  }
  for (const [at, source] of sources.entries()) {
    const found = tallies[at]?.found ?? [];
    if (found.length === 0) continue;
    const tally = { found, credits: sumOf(found.map(({ item }) => item.price)) };
    const said = source.finding(tally as KnownItems<never>, plan);
    if (said !== null) findings[said.refused ? "blockers" : "warnings"].push(said.finding);
  }
  return findings;
}

/** What a run that reads no sheet would pay for again: rows that were made meanwhile for another job or elsewhere. */
export interface RestPaid {
  items: number;
  credits: Credits;
  /** The first of them. */
  rowId: string;
  /** Such as `paid for meanwhile in the workspace /w`. */
  how: { job: string } | { root: string };
}

/** Whether items of a run were paid for since it began. Null if none was, and for a rehearsal. */
export async function restPaidAlready(
  account: Pick<OpenAccount, "spendLog" | "accounts" | "accountId">,
  store: Pick<Store, "items" | "priceGroups" | "has" | "madeElsewhere" | "attemptOfEntry">,
  run: Run,
): Promise<RestPaid | null> {
  const made = await store.madeElsewhere(run.id);
  if (made !== null) {
    const { items, credits, rowId, jobName } = made;
    return { items, credits, rowId, how: { job: jobName } };
  }
  if (run.options.sandbox) return null;
  const paid = await paidMeanwhile(account, store, run);
  const [first] = paid?.items ?? [];
  if (paid === null || first === undefined) return null;
  const { items, root } = paid;
  return { items: items.length, credits: priceOf(items), rowId: (first as Item).rowId, how: { root } };
}
