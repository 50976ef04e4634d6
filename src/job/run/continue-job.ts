import { jobFolder } from "../../archive/disk/names.js";
import { EarlyExit } from "../../core/exit.js";
import { ownModelsOrigin } from "../../core/identity.js";
import { uncollectedStates } from "../../core/item.js";
import { inCredits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Run } from "../../core/ports/store.js";
import { publishPlace } from "../../publish/publisher.js";
import type { Store } from "../../store/workspace/workspace.js";
import { sandboxFlag, shellWord } from "../../text/shell.js";
import { terminalText } from "../../text/terminal.js";
import { mustHaveRuns, refuseOutdated } from "../../workspace/history.js";
import { openWorkspaceSession, prepareOutFolder, type WorkspaceSession } from "../../workspace/open.js";
import { checkCopies } from "../../workspace/outputs-place.js";
import { withStore } from "../../workspace/state.js";
import type { Continuation } from "../orders/give.js";
import { plannedRest } from "../orders/request.js";
import { type RestPaid, restPaidAlready } from "../paid/already.js";
import { foreignUse } from "../paid/foreign-use.js";
import { isOwn, sameServiceCommand } from "../paid/owner.js";
import { execute } from "./execute.js";
import { mustHaveWorkers } from "./outputs.js";
import { publishTrouble } from "./publish-check.js";
import { type JobOptions, leaveUnstarted, type Outcome } from "./run-job.js";
import { refuseUnagreed, unagreedPublish } from "./run-values.js";

/**
 * Continues a run with its own options. Throws EarlyExit if there is none, or if the key belongs to another user.
 * `use` gets the outcome while the workspace is still open.
 */
export async function continueJob<Result>(
  options: JobOptions,
  continuation: Continuation,
  use: (outcome: Outcome) => Promise<Result>,
): Promise<Result> {
  const meant = await lookUp(options, continuation);
  refuseUnagreed(meant, options.workspace);
  prepareOutFolder(jobFolder(meant));
  // An order that is refused later would be carried out already.
  mustHaveWorkers(options);
  await checkCopies(meant.options, options.environment);
  const opened = await openWorkspaceSession({
    ...options,
    connect: () => options.connect(meant.manifest),
    limits: meant.options,
    onDailyLimit: continuation.onDailyLimit ?? meant.options.onDailyLimit,
    signal: options.interrupt,
  });
  try {
    const found = await chosenAgain(opened.store, continuation, meant);
    refuseUnagreed(found, options.workspace);
    const reading = await opened.account.identify();
    checkOwner(found, reading.me.user.id, opened.connection.origin);
    if (!options.fetchOnly) await refuseMadeElsewhere(opened, found);
    const buying = { refused: await refusedToBuy(options, opened, found) };
    const changed = (await continuation.change?.(opened, found, options.clock.now(), buying)) ?? found;
    const buys = !options.fetchOnly && (await plannedRest(opened.store, changed)).items > 0;
    const notAgreed = buys ? buying.refused : null;
    if (notAgreed !== null && !(await owesAnything(opened.store, changed)))
      throw new EarlyExit("usage", `${notAgreed}. Nothing was submitted.`);
    if (buys && notAgreed === null) await opened.account.spendLog.knowForeign(changed.options);
    const unstarted = (await opened.store.run(changed.id)) ?? changed;
    const startedAt = options.clock.now();
    // A cancelled run continues only to collect submitted items, unless a person ordered more.
    const state = changed.state === "cancelled" ? "cancelled" : "running";
    await opened.store.setRun(changed.id, { state, exit: null, endedAt: null });
    // The forecast was for the whole run.
    const { forecast: _, ...own } = withDaily(changed.options, options);
    const run = { ...changed, state, options: own, requests: changed.requests + 1 } as const;
    const before = (await opened.store.counts(run.id)).archived;
    const execution = await execute({
      ...options,
      ...reading,
      opened,
      run,
      notAgreed,
      inOrder: false,
      leftOut: 0,
    }).catch((error: unknown) => leaveUnstarted(error, opened.store, unstarted));
    return await use({ execution, skipped: null, before, startedAt, opened });
  } finally {
    await opened.close();
  }
}

/** A run continues with its own options, but with the current daily cap, which is the account's. */
function withDaily(own: RunOptions, { dailyCredits }: Pick<JobOptions, "dailyCredits">): RunOptions {
  return dailyCredits === undefined ? own : { ...own, dailyCredits };
}

async function lookUp({ workspace, clock }: JobOptions, { choose }: Continuation): Promise<Run> {
  mustHaveRuns(workspace);
  return withStore(workspace, clock, async (store) => {
    await refuseOutdated(workspace, store);
    return choose(store);
  });
}

/**
 * Another process may have had the workspace since: it may have finished or cancelled the run, or changed what it may
 * spend.
 */
async function chosenAgain(store: Store, { choose }: Continuation, meant: Run): Promise<Run> {
  const run = await choose(store);
  if (run.id === meant.id) return run;
  throw new EarlyExit(
    "usage",
    `run ${run.id} took the place of run ${meant.id} while this command waited for the workspace. Nothing was sent. Give the command again to continue run ${run.id}.`,
  );
}

/**
 * Rows may have been moved to another sheet, or to another workspace, and made there, which a run that reads no sheet
 * does not see.
 */
async function refuseMadeElsewhere(
  { store, account }: Pick<WorkspaceSession, "store" | "account">,
  run: Run,
): Promise<void> {
  const paid = await restPaidAlready(account, store, run);
  if (paid !== null) throw madeMeanwhile(run, paid);
}

function madeMeanwhile(run: Run, { items, credits, rowId, how }: RestPaid): EarlyExit {
  const made =
    "job" in how
      ? `made meanwhile for job ${how.job}`
      : `paid for meanwhile in the workspace ${terminalText(how.root)}`;
  const what = `${terminalText(rowId)}${items === 1 ? " was" : ` and ${items - 1} more were`} ${made}, and run ${run.id} would pay for ${items === 1 ? "it" : "them"} again, for ${inCredits(credits)}`;
  const rehearsal = sandboxFlag(run.options);
  return new EarlyExit(
    "usage",
    `${what}. Nothing was sent. \`bulkgen run ${shellWord(run.manifest)}${rehearsal}\` continues the run with the rows that its sheet has now, ` +
      `\`bulkgen cancel ${run.id}${rehearsal}\` ends it; what is paid for is collected either way.`,
  );
}

/**
 * Why nothing is bought for a run before a person has done something about it; null if nothing speaks against it. What is
 * paid for is collected all the same.
 */
async function refusedToBuy(
  { fetchOnly = false, agreeToForeignUse, publish, workspace, environment }: JobOptions,
  { account, store }: Pick<WorkspaceSession, "account" | "store">,
  run: Run,
): Promise<string | null> {
  const { options, origin } = run;
  if (fetchOnly || options.sandbox) return null;
  const isGiven = publish.given.to != null || publish.given.command != null;
  const unagreed = isGiven ? null : unagreedPublish(run, workspace);
  if (unagreed !== null) return unagreed;
  const place = publishPlace(
    { ...publish, configured: {} },
    { to: options.publish, expiresMs: options.publishMs },
  );
  return (
    (await publishTrouble(place, environment)) ??
    (await foreignUse(account, { store, origin }, options, agreeToForeignUse))
  );
}

/** Whether a run has something to collect, or to settle. */
async function owesAnything(store: Store, { id }: Run): Promise<boolean> {
  const counts = await store.counts(id);
  return uncollectedStates.some((state) => counts[state] > 0);
}

function checkOwner(run: Run, user: string, origin: string): void {
  if (isOwn(run, { user, origin })) return;
  if (run.accountId === "") {
    throw new EarlyExit(
      "usage",
      `run ${run.id} was rebuilt from an archive, which does not say whose run it was. Nothing was sent for it. Run its manifest again instead.`,
    );
  }
  if (run.origin === ownModelsOrigin && origin !== ownModelsOrigin)
    throw new EarlyExit(
      "usage",
      `run ${run.id} was made with the models of a file, and this is the service at ${origin}. Nothing was sent for it. Add --models FILE, or set models in bulkgen.config.yaml.`,
    );
  const moved =
    run.accountId === user
      ? `. If the service has moved for good, run ${sameServiceCommand(run.origin)}`
      : "";
  throw new EarlyExit(
    "usage",
    `run ${run.id} belongs to another account or service: expected user ${run.accountId} at ${run.origin}, ` +
      `got user ${user} at ${origin}. Nothing was sent for it. ` +
      `Set a key of user ${run.accountId} and the address ${run.origin}${moved}.`,
  );
}
