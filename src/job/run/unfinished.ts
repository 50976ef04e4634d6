import type { Run } from "../../core/ports/store.js";
import type { Finding } from "../../plan/plan.js";
import { resumeCommand } from "../workspace/find-run.js";

/** The run that the next one of this job and edition would go on with, whoever it belongs to. */
export function unfinishedOf(runs: readonly Run[], jobName: string, edition: string): Run | undefined {
  return runs.findLast(
    (run) =>
      run.jobName === jobName &&
      run.edition === edition &&
      run.state !== "finished" &&
      run.state !== "cancelled",
  );
}

/** Who is at work: an account is a user at a service. */
interface Who {
  user: string;
  origin: string;
}

/** Whether a run belongs to this user. The service gives its tasks to nobody else. */
export function isOwn(run: Pick<Run, "accountId" | "origin">, { user, origin }: Who): boolean {
  return run.accountId === user && run.origin === origin;
}

/**
 * A run that somebody else has left unfinished: who took it over would ask for its tasks in vain, and pay for its items
 * once more. Null where none is in the way.
 */
export function othersRun(run: Run | undefined, who: Who): Finding | null {
  if (run === undefined || isOwn(run, who)) return null;
  const whose = run.accountId === who.user ? "of another service" : "another user's";
  const expected = `expected user ${run.accountId} at ${run.origin}, got user ${who.user} at ${who.origin}`;
  return {
    kind: "others_run",
    message:
      `Run ${run.id} of ${run.jobName} is unfinished and ${whose}: ${expected}. ` +
      `A key of that user collects what it has at the service: \`${resumeCommand(run, false)}\`. ` +
      `To make and pay the items for user ${who.user}, --edition NAME or a --workspace of its own leaves that run alone; ` +
      `or end it first with \`bulkgen cancel ${run.id}\`, and its tasks can still be collected.`,
  };
}
