import { hostname } from "node:os";
import { defined } from "../../core/defined.js";
import { EarlyExit, type ExitName, weightiest } from "../../core/exit.js";
import { inCredits, noCredits, showCredits, sumOf, toNumber } from "../../core/money.js";
import { withoutPastEnd } from "../../core/next/options.js";
import type { Run } from "../../core/ports/store.js";
import type { Buying } from "../../job/orders/give.js";
import { type PlannedRest, plannedRest } from "../../job/orders/request.js";
import { isOwn } from "../../job/paid/owner.js";
import type { Who } from "../../job/paid/planned-keys.js";
import type { RunSummary } from "../../job/run/closing.js";
import { continueJob } from "../../job/run/continue-job.js";
import { hasBegunHere } from "../../job/run/run-values.js";
import { checkModels } from "../../job/run/spending-caps.js";
import type { Machine } from "../../machine.js";
import { changedOptions, type ResumeFlags, refuseUnlimitedOrphans } from "../../options/run.js";
import { changedManifestText } from "../../report/next-step.js";
import { type Resumed, resumedText, starterText } from "../../report/status.js";
import { type ResumedRun, resumedJson, resumedRunsText } from "../../report/summary.js";
import { scheduledIn } from "../../schedule/scheduled-run.js";
import type { Store } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { type Cell, table } from "../../text/table.js";
import { terminalLines, terminalText } from "../../text/terminal.js";
import { type TerminalStyle, terminalStyle } from "../../text/terminal-style.js";
import { hasChanged } from "../../workspace/changed-manifest.js";
import { type FindRun, isUnfinished, nothingToResume, unfinishedRun } from "../../workspace/find-run.js";
import { mustHaveRuns } from "../../workspace/history.js";
import type { WorkspaceSession } from "../../workspace/open.js";
import { spentIn } from "../../workspace/spent.js";
import { withStore } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";
import { isWithin, spending } from "../output/consent.js";
import { followed } from "../output/follow.js";
import { jobOptions, type PreparedRun } from "../output/job-options.js";
import { openLog } from "../output/log.js";
import { print } from "../output/print.js";
import { confirmed } from "../output/question.js";
import { withAccount } from "../settings/connect.js";
import { fromHere, workspaceToChange } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function resume({
  flags,
  args,
  machine,
}: Call<ResumeFlags, { run?: number }>): Promise<ExitName> {
  refuseUnlimitedOrphans(flags);
  const workspace = workspaceToChange(flags, machine);
  if (!flags.all) return resumeOne(args.run, { flags, machine, workspace });
  if (args.run !== undefined)
    throw new EarlyExit("usage", `expected the number of a run or --all, got both. Nothing was sent.`);
  return resumeAll({ flags, machine, workspace });
}

interface Resuming {
  flags: ResumeFlags;
  machine: Machine;
  workspace: Workspace;
}

async function resumeOne(
  which: number | undefined,
  { flags, machine, workspace }: Resuming,
  tell?: (facts: RunSummary) => void,
): Promise<ExitName> {
  const prepared = await jobOptions(flags, machine, workspace);
  const continuation = {
    choose: ownRun(unfinishedRun(which, workspace), machine),
    ...defined({ onDailyLimit: flags.onDailyLimit }),
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
  return followed(prepared, flags, (show) => continueJob(prepared.options, continuation, show), tell);
}

/**
 * A daemon knows the run that it continues by the number. In another state, or once the state was replaced, that is the
 * number of another run.
 */
function ownRun(choose: FindRun, { env }: Machine): FindRun {
  const { schedule, due } = scheduledIn(env);
  if (schedule === null || due === null) return choose;
  return async (store) => {
    const run = await choose(store);
    const { beganBy } = run.options;
    if (beganBy?.schedule === schedule && beganBy.due === due) return run;
    throw new EarlyExit(
      "usage",
      `run ${run.id} of this workspace was not begun by the schedule ${schedule} for ${due}, so it is not continued for it. Nothing was sent.`,
    );
  };
}

/**
 * Continues the unfinished runs, the oldest first, after one question about all of them. What stops one run does not stop the
 * others, unless it would stop them too.
 */
async function resumeAll({ flags, machine, workspace }: Resuming): Promise<ExitName> {
  const runs = await unfinishedRuns({ flags, machine, workspace });
  const agreed = await agreeToAll(runs, flags, machine);
  const ends: ResumedRun[] = [];
  for (const { run, rest, counts, spent } of runs) {
    if (ends.some(({ exit }) => stopsAll.includes(exit))) break;
    // What was agreed to is what was shown.
    const own = agreed ? { ...flags, maxPrice: toNumber(rest.credits) } : flags;
    const end = await endOf(run, { flags: own, machine, workspace });
    ends.push({ counts, spent, ...end.facts, ...end });
  }
  const exit = weightiest(ends.map((end) => end.exit));
  const left = runs.slice(ends.length).map(({ run }) => run);
  const stream = flags.events ? machine.stderr : machine.stdout;
  if (!flags.quiet || flags.json || exit !== "done")
    print(flags, { ...machine, stdout: stream }, "resume-all", resumedJson(exit, ends, left), (style) =>
      resumedRunsText(ends, left, style),
    );
  return exit;
}

/** Ends of a run after which no other one is begun. */
const stopsAll: readonly ExitName[] = ["interrupted", "locked", "key", "unreachable", "crash"];

/** How a run ended, or why it was not continued. */
async function endOf(run: Run, resuming: Resuming): Promise<Omit<ResumedRun, "counts" | "spent">> {
  const summaries: RunSummary[] = [];
  try {
    const exit = await resumeOne(run.id, resuming, (summary) => summaries.push(summary));
    return { run, exit, facts: summaries[0] ?? null, message: null };
  } catch (error) {
    if (!(error instanceof EarlyExit)) throw error;
    const message = fromHere(
      error.message,
      resuming.workspace,
      resuming.flags.sandbox ?? false,
      resuming.machine,
    );
    if (error.exit !== "done")
      resuming.machine.stderr.write(`bulkgen: run ${run.id}: ${terminalLines(message)}\n`);
    return { run, exit: error.exit, facts: summaries[0] ?? null, message };
  }
}

interface RunToResume extends Pick<ResumedRun, "run" | "counts" | "spent"> {
  rest: PlannedRest;
  /** It was begun with a key of another user or at another service, so this key cannot continue it. */
  isOthers: boolean;
}

/** Throws EarlyExit if there is none. */
async function unfinishedRuns({ flags, machine, workspace }: Resuming): Promise<RunToResume[]> {
  mustHaveRuns(workspace);
  const who = flags.sandbox ? null : await whoseKey(flags, machine);
  return withStore(workspace, machine.clock, async (store) => {
    const found: RunToResume[] = [];
    for (const run of await store.runs())
      if (isUnfinished(run))
        found.push({
          run,
          rest: await plannedRest(store, run),
          counts: await store.counts(run.id),
          spent: (await spentIn(store, run.id)).spent,
          isOthers: who !== null && !isOwn(run, who),
        });
    if (found.length > 0) return found;
    // It says whether something waits for a person.
    await unfinishedRun(undefined, workspace)(store);
    throw nothingToResume();
  });
}

/** The user of the key, as far as it is known here without a request; null if not, and each run asks the service itself. */
async function whoseKey(flags: ResumeFlags, machine: Machine): Promise<Who | null> {
  try {
    const log = await openLog(flags, machine);
    return await withAccount({ flags, machine, log }, async ({ accounts, origin, fingerprint }) => {
      const { userId } = await accounts.accountOf(origin, fingerprint);
      return userId === null ? null : { user: userId, origin };
    });
  } catch (error) {
    // The first run says what is wrong.
    if (error instanceof EarlyExit) return null;
    throw error;
  }
}

/**
 * Asks on a terminal, as for one run. True if the price of each is agreed to; without a terminal, each run decides for
 * itself. Throws EarlyExit.
 */
async function agreeToAll(
  all: readonly RunToResume[],
  flags: ResumeFlags,
  machine: Machine,
): Promise<boolean> {
  const runs = all.filter(({ isOthers }) => !isOthers);
  const price = sumOf(runs.map(({ rest }) => rest.credits));
  const items = runs.reduce((sum, { rest }) => sum + rest.items, 0);
  const what = `${count(items, "item")} of ${count(runs.length, "run")}`;
  const list = `${toResumeText(all, terminalStyle(machine.stderr, machine.env))}\n`;
  const isShown = !flags.quiet && !flags.json;
  if (isShown)
    machine.stderr.write(
      `resuming ${count(all.length, "run")}: ${what} left to make, ${inCredits(price)}\n${list}`,
    );
  if (isWithin(flags, price)) return true;
  const isFree = items === 0 || runs.every(({ run }) => run.options.sandbox);
  if (flags.yes || isFree || !machine.stdin.isTTY) return false;
  if (!isShown) machine.stderr.write(list);
  for (const { run } of runs)
    if (await hasChanged(run))
      machine.stderr.write(`${terminalText(changedManifestText(run, machine.cwd))}\n`);
  if (await confirmed({}, machine, machine.interrupt(), spending(price, what))) return true;
  throw new EarlyExit("usage", "not confirmed; nothing was submitted");
}

/** What the answer is about, run by run. */
function toResumeText(runs: readonly RunToResume[], style: TerminalStyle): string {
  const columns = [
    { title: "run", align: "right" as const },
    { title: "job", flexible: true },
    { title: "items", align: "right" as const },
    { title: "credits", align: "right" as const },
    { title: "begun by", flexible: true },
  ];
  const rows = runs.map(({ run, rest, isOthers }): Cell[] => {
    const { beganBy } = run.options;
    const by = beganBy === undefined ? "not known" : `${starterText(beganBy)} on ${beganBy.host}`;
    return [
      run.id,
      terminalText(run.jobName),
      ...(isOthers ? ["", ""] : [rest.items, showCredits(rest.credits)]),
      isOthers
        ? { text: "another user or service: this key cannot continue it", tone: "warning" }
        : terminalText(by),
    ];
  });
  return table(columns, rows, style);
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
  const facts: Resumed = {
    run,
    counts: await store.counts(run.id),
    ...(await spentIn(store, run.id)),
  };
  if (!flags.quiet && !flags.json) {
    display.say(resumedText(facts, machine.cwd, terminalStyle(machine.stderr, machine.env)));
    if (left > 0 && (await hasChanged(run))) display.say(terminalText(changedManifestText(run, machine.cwd)));
  }
  if (left === 0 || refused !== null) return refused;
  const isAgreed = isWithin(flags, credits) || flags.yes || credits === noCredits;
  if (run.options.sandbox) return null;
  const isElsewhere = isBegunElsewhere(run, options.workspace);
  if (isAgreed || (!isElsewhere && !machine.stdin.isTTY)) return null;
  if (isElsewhere && !machine.stdin.isTTY)
    return `${begunBy(run)}, and resuming it here spends up to ${inCredits(credits)} on ${count(left, "item")}. Add --yes to agree`;
  display.end();
  const agreed = await confirmed({}, machine, options.interrupt, spending(credits, count(left, "item")));
  if (!agreed) throw new EarlyExit("usage", "not confirmed; nothing was submitted");
  return null;
}

function isBegunElsewhere({ options: { beganBy } }: Run, workspace: Workspace): boolean {
  return beganBy === undefined || beganBy.host !== hostname() || !hasBegunHere(workspace);
}

function begunBy({ id, options: { beganBy } }: Run): string {
  if (beganBy === undefined) return `run ${id} does not say who began it`;
  const { user, host } = beganBy;
  return host === hostname()
    ? `run ${id} says that ${user} began it on ${host}, but no run of this folder was begun on this machine`
    : `run ${id} was begun by ${user} on ${host}`;
}
