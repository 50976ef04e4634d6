import { isPaid } from "../../core/item.js";
import { inCredits } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import type { Finding } from "../../plan/plan.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { resumeCommand } from "../../workspace/find-run.js";
import type { Who } from "./planned-keys.js";
import type { AskedPlan, KnownItems, PaymentSource, Question } from "./question.js";

/** The run that the next run of this job and edition would continue, of any user. */
export function unfinishedOf(runs: readonly Run[], jobName: string, edition: string): Run | undefined {
  return runs.findLast(
    (run) =>
      run.jobName === jobName &&
      run.edition === edition &&
      run.state !== "finished" &&
      run.state !== "cancelled",
  );
}

/** Whether a run belongs to this user. The service gives its tasks to no other user. */
export function isOwn(run: Pick<Run, "accountId" | "origin">, { user, origin }: Who): boolean {
  return run.accountId === user && run.origin === origin;
}

/**
 * Reports an unfinished run of another user or service: continuing it could not fetch its tasks, and would pay for its
 * items again. Null if there is none.
 */
export function othersRun(run: Run | undefined, who: Who): Finding | null {
  if (run === undefined || isOwn(run, who)) return null;
  const isMoved = run.accountId === who.user;
  const whose = isMoved ? "of another service" : "another user's";
  const expected = `expected user ${run.accountId} at ${run.origin}, got user ${who.user} at ${who.origin}`;
  const how = isMoved
    ? `with the address of before, or after ${sameServiceCommand(run.origin)} if the service has moved for good`
    : "with a key of that user";
  return {
    kind: "others_run",
    message:
      `Run ${run.id} of ${run.jobName} is unfinished and ${whose}: ${expected}. ` +
      `To collect its tasks, run \`${resumeCommand(run, false)}\` ${how}. ` +
      `To make and pay for the items as user ${who.user}, use --edition NAME or another --workspace, ` +
      `or end that run first with \`bulkgen cancel ${run.id}\` and add --job ${shellWord(run.jobName)}; its tasks can still be collected.`,
  };
}

/** The command that says that a service has moved. */
export function sameServiceCommand(origin: string): string {
  return `\`bulkgen account --same-service ${shellWord(origin)}\``;
}

/**
 * Items that were made in this workspace for another user, or by the same user at another address, for whichever job. A
 * user id is of one service, so the same user at another address is the same account.
 */
export async function madeForOthers(
  { edition }: AskedPlan,
  { store, runs, who, agreed, keys }: Question,
): Promise<PaymentSource<Run>> {
  // A run that was rebuilt from the archive alone names nobody.
  const others = runs.filter((run) => run.accountId !== "" && run.edition === edition && !isOwn(run, who));
  const made = new Map<string, Run>();
  for (const run of new Map(others.map((run) => [run.jobName, run])).values())
    for await (const page of store?.history(run.jobName) ?? [])
      for (const item of page) {
        const planned = isPaid(item) ? keys.find(item.key) : undefined;
        if (planned !== undefined && planned.who !== who) made.set(planned.key, run);
      }
  return {
    has: ({ key }) => made.get(key),
    finding({ found, credits }: KnownItems<Run>, { job, items }) {
      const [first] = found;
      if (first === undefined) return null;
      const run = first.by;
      const again = `what was made there ${agreed ? "is" : "would be"} made and paid for again: ${found.length} of ${count(items.length, "item")}, for ${inCredits(credits)}`;
      const byOther = `Run ${run.id} of ${run.jobName} was made as user ${run.accountId} at ${run.origin}, and this key is of user ${who.user} at ${who.origin}: ${again}. `;
      const byOwn = `Run ${run.id} of ${run.jobName} was made by the same user at ${run.origin}, and the address is ${who.origin} now: ${again}. `;
      const ways =
        run.accountId === who.user
          ? `${byOwn}Set BULKGEN_BASE_URL to the address of before, or, if the service has moved for good, run ${sameServiceCommand(run.origin)}`
          : `${byOther}Set a key and an address of that user`;
      if (agreed)
        return { refused: false, finding: { kind: "others_run", message: `${ways} to avoid that.` } };
      const message = `${ways}; or add --job ${shellWord(job)} to pay again.`;
      const choice = { found: `${ways}, or make and pay for them again`, continues: null, again: job };
      return { refused: true, finding: { kind: "others_run", message, choice } };
    },
  };
}
