import type { Run } from "../../core/ports/store.js";
import type { Finding } from "../../plan/plan.js";
import { shellWord } from "../../text/shell.js";
import { resumeCommand } from "../workspace/find-run.js";

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

/** An account: a user at a service. */
interface Who {
  user: string;
  origin: string;
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
  const whose = run.accountId === who.user ? "of another service" : "another user's";
  const expected = `expected user ${run.accountId} at ${run.origin}, got user ${who.user} at ${who.origin}`;
  return {
    kind: "others_run",
    message:
      `Run ${run.id} of ${run.jobName} is unfinished and ${whose}: ${expected}. ` +
      `To collect its tasks, run \`${resumeCommand(run, false)}\` with a key of that user. ` +
      `To make and pay for the items as user ${who.user}, use --edition NAME or another --workspace, ` +
      `or end that run first with \`bulkgen cancel ${run.id}\`; its tasks can still be collected.`,
  };
}

/** Reports that a finished run of another user or service does not count, in case the key or the address is wrong. */
export function madeForOthers(newest: Run | undefined, who: Who): Finding | null {
  // A run that was rebuilt from the archive alone names nobody.
  if (newest === undefined || newest.accountId === "" || isOwn(newest, who)) return null;
  const message =
    `Run ${newest.id} of ${newest.jobName} was made as user ${newest.accountId} at ${newest.origin}, and this key is of user ${who.user} at ${who.origin}: ` +
    "what was made there is made and paid for again here. If that is not meant, set a key and an address of that user.";
  return { kind: "others_run", message };
}

/**
 * A user id is of one service, so the same user at another origin is the same account under another address. Keys of
 * items have the address, and everything would be paid for again. Null if there is no such run.
 */
export function otherAddress(newest: Run | undefined, { user, origin }: Who): Finding | null {
  if (newest === undefined || newest.accountId !== user || newest.origin === origin) return null;
  const { id, jobName } = newest;
  const message =
    `Run ${id} of ${jobName} was made by the same user at ${newest.origin}, and the address is ${origin} now: ` +
    `what was made there would be made and paid for again. Set BULKGEN_BASE_URL to the address of before, or add --job ${shellWord(jobName)} to pay again.`;
  return { kind: "others_run", message };
}
