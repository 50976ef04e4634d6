import { hostname } from "node:os";
import { EarlyExit, type ExitName } from "../../core/exit.js";
import { inCredits, noCredits } from "../../core/money.js";
import { withoutPastEnd } from "../../core/next/options.js";
import type { Run, Store } from "../../core/ports/store.js";
import type { Buying } from "../../job/orders/give.js";
import { plannedRest } from "../../job/orders/request.js";
import { continueJob } from "../../job/run/continue-job.js";
import { hasBegunHere } from "../../job/run/run-values.js";
import { checkModels } from "../../job/run/spending-caps.js";
import { unfinishedRun } from "../../job/workspace/find-run.js";
import type { WorkspaceSession } from "../../job/workspace/open.js";
import { spentIn } from "../../job/workspace/spent.js";
import { type Resumed, resumedText } from "../../report/status.js";
import { count } from "../../text/amounts.js";
import { terminalStyle } from "../../text/table.js";
import { changedOptions, type ResumeFlags, refuseUnlimitedOrphans } from "../flags/run.js";
import { isWithin, spending } from "../output/consent.js";
import { followed } from "../output/follow.js";
import { jobOptions, type PreparedRun } from "../output/job-options.js";
import { confirmed } from "../output/question.js";
import { workspaceToChange } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function resume({
  flags,
  args,
  machine,
}: Call<ResumeFlags, { run?: number }>): Promise<ExitName> {
  refuseUnlimitedOrphans(flags);
  const workspace = workspaceToChange(flags, machine);
  const prepared = await jobOptions(flags, machine, workspace);
  const continuation = {
    choose: unfinishedRun(args.run, workspace),
    async change(
      { store, account }: WorkspaceSession,
      found: Run,
      now: number,
      buying: Buying,
    ): Promise<Run> {
      const changes = changedOptions(flags, found.options);
      const capped = Object.keys(flags.maxCreditsPerModel ?? {});
      if (capped.length > 0) checkModels(capped, (await account.models()).models);
      const run = { ...found, options: { ...withoutPastEnd(found.options, now), ...changes } };
      buying.refused = await agreeToRest(store, run, buying.refused, flags, prepared);
      await store.setRun(run.id, { options: run.options });
      return run;
    },
  };
  return followed(prepared, flags, (show) => continueJob(prepared.options, continuation, show));
}

/**
 * Shows what is resumed, and asks on a terminal before anything is bought. Without a terminal, a run that was started
 * on another machine needs `--yes` or `--max-price`, because the person who copied the folder here may not know what it
 * buys. Returns why nothing is bought, if nobody could be asked. Throws EarlyExit.
 */
async function agreeToRest(
  store: Store,
  run: Run,
  refused: string | null,
  flags: ResumeFlags,
  prepared: PreparedRun,
): Promise<string | null> {
  const { display, options, machine } = prepared;
  const { items: left, credits } = await plannedRest(store, run);
  const { beganBy } = run.options;
  const facts: Resumed = {
    run,
    counts: await store.counts(run.id),
    ...(await spentIn(store, run.id)),
  };
  if (!flags.quiet && !flags.json)
    display.say(resumedText(facts, machine.cwd, terminalStyle(machine.stderr, machine.env)));
  if (left === 0 || refused !== null) return refused;
  const isAgreed = isWithin(flags, credits) || flags.yes || credits === noCredits;
  if (run.options.sandbox) return null;
  const isElsewhere =
    beganBy === undefined || beganBy.host !== hostname() || !hasBegunHere(options.workspace);
  if (isAgreed || (!isElsewhere && !machine.stdin.isTTY)) return null;
  if (isElsewhere && !machine.stdin.isTTY)
    return `${begunBy(run)}, and resuming it here spends up to ${inCredits(credits)} on ${count(left, "item")}. Add --yes to agree`;
  display.end();
  const agreed = await confirmed({}, machine, options.interrupt, spending(credits, count(left, "item")));
  if (!agreed) throw new EarlyExit("usage", "not confirmed; nothing was submitted");
  return null;
}

function begunBy({ id, options: { beganBy } }: Run): string {
  if (beganBy === undefined) return `run ${id} does not say who began it`;
  const { user, host } = beganBy;
  return host === hostname()
    ? `run ${id} says that ${user} began it on ${host}, but no run of this folder was begun on this machine`
    : `run ${id} was begun by ${user} on ${host}`;
}
