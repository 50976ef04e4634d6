import { hostname } from "node:os";
import { type ChargeEvidence, foreignCredits } from "../../core/charges/readings.js";
import { EarlyExit, type ExitName } from "../../core/exit.js";
import { inCredits } from "../../core/money.js";
import { withoutPastEnd } from "../../core/next/options.js";
import type { Run, Store } from "../../core/ports/store.js";
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
import { localTime } from "../../text/times.js";
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
    async change({ store, account }: WorkspaceSession, found: Run, now: number): Promise<Run> {
      const changes = changedOptions(flags, found.options);
      const capped = Object.keys(flags.maxCreditsPerModel ?? {});
      if (capped.length > 0) checkModels(capped, (await account.models()).models);
      const run = { ...found, options: { ...withoutPastEnd(found.options, now), ...changes } };
      const evidence = await account.spendLog.evidence(run.options);
      await agreeToRest(store, run, evidence, flags, prepared);
      await store.setRun(run.id, { options: run.options });
      return run;
    },
  };
  return followed(prepared, flags, (show) => continueJob(prepared.options, continuation, show));
}

/**
 * Shows what is resumed, and asks on a terminal before anything is bought. Without a terminal, a run that was started
 * on another machine needs `--yes` or `--max-price`, because the person who copied the folder here may not know what it
 * buys. Throws EarlyExit.
 */
async function agreeToRest(
  store: Store,
  run: Run,
  evidence: ChargeEvidence | null,
  flags: ResumeFlags,
  prepared: PreparedRun,
): Promise<void> {
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
  if (left === 0) return;
  const isAgreed = isWithin(flags, credits) || flags.yes;
  if (run.options.sandbox) return;
  if (evidence !== null && !flags.acceptForeignUse) await agreeToForeignUse(evidence, prepared);
  const isElsewhere =
    beganBy === undefined || beganBy.host !== hostname() || !hasBegunHere(options.workspace);
  if (isAgreed || (!isElsewhere && !machine.stdin.isTTY)) return;
  if (isElsewhere && !machine.stdin.isTTY)
    throw new EarlyExit(
      "usage",
      `${begunBy(run)}, and resuming it here spends up to ${inCredits(credits)} on ${count(left, "item")}. Add --yes to agree. Nothing was submitted.`,
    );
  display.end();
  const agreed = await confirmed({}, machine, options.interrupt, spending(credits, count(left, "item")));
  if (!agreed) throw new EarlyExit("usage", "not confirmed; nothing was submitted");
}

function begunBy({ id, options: { beganBy } }: Run): string {
  if (beganBy === undefined) return `run ${id} does not say who began it`;
  const { user, host } = beganBy;
  return host === hostname()
    ? `run ${id} says that ${user} began it on ${host}, but no run of this folder was begun on this machine`
    : `run ${id} was begun by ${user} on ${host}`;
}

/**
 * Two machines know nothing of each other's runs. If the key was charged for requests that nobody here sent, a copy of
 * this run may have bought the rest already. Throws EarlyExit.
 */
async function agreeToForeignUse(evidence: ChargeEvidence, { options, machine }: PreparedRun): Promise<void> {
  const foreign = foreignCredits(evidence);
  if (foreign === 0) return;
  const what = `since ${localTime(evidence.baseline.at)}, ${inCredits(foreign)} were charged to this key for requests that this machine did not send. If a copy of this run was resumed elsewhere, its items would be paid twice.`;
  if (!machine.stdin.isTTY)
    throw new EarlyExit("usage", `${what} Add --accept-foreign-use to continue. Nothing was submitted.`);
  machine.stderr.write(`bulkgen: ${what}\n`);
  const question = { would: "", question: "Continue all the same?", done: "submitted" };
  if (await confirmed({}, machine, options.interrupt, question)) return;
  throw new EarlyExit("usage", "not confirmed; nothing was submitted");
}
