import { jobFolder } from "../../archive/disk/job-folder.js";
import type { Clock } from "../../clock.js";
import type { ItemState } from "../../core/item.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { resumeCommand } from "../../report/amounts.js";
import type { RunLine, StatusFacts, Trouble } from "../../report/status.js";
import { openSteps } from "../../store/workspace/steps.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { evidenceOf, reasonOf, spentIn } from "./evidence.js";
import { refuseOutdated } from "./history.js";
import { type Holder, holderOf } from "./holder.js";
import type { Workspace } from "./workspace.js";

const troubled: readonly ItemState[] = ["failed", "held", "unknown", "overdue"];
const open = ["running", "paused", "interrupted"];

/** There is something to go on with; in a cancelled run, what was paid for. */
function isUnfinished({ state, owes }: Run): boolean {
  return open.includes(state) || (state === "cancelled" && owes);
}

/** Where a run stands, read from the workspace alone. Null when there is no such run. Throws EarlyExit where its record is lost. */
export async function statusOf(
  workspace: Workspace,
  which: number | "newest",
  clock: Clock,
): Promise<StatusFacts | null> {
  const store = openWorkspace(workspace, clock);
  try {
    const run = await store.run(which);
    if (!run) {
      await refuseOutdated(workspace, store);
      return null;
    }
    const items = await store.items(run.id, troubled);
    return {
      ...lineOf(run, await store.runs(), holderOf(workspace.lockFile)),
      counts: await store.counts(run.id),
      ...(await spentIn(store, run.id)),
      requests: run.requests,
      folder: jobFolder(run),
      forecast: run.options.forecast ?? null,
      trouble: await troubleOf(store, items),
    };
  } finally {
    store.close();
  }
}

/** The items in trouble. What failed cost nothing and has an answer, so nothing has to be found at the service. */
async function troubleOf(store: Store, items: readonly Item[]): Promise<Trouble[]> {
  const trouble: Trouble[] = [];
  for (const item of items) {
    const { rowNumber, rowId, state, nextAt } = item;
    const evidence = state === "failed" ? null : await evidenceOf(store, item.id);
    const due = state === "overdue" ? nextAt : null;
    trouble.push({ rowNumber, rowId, state, reason: reasonOf(item), evidence, nextAt: due });
  }
  return trouble;
}

/** Every run of the workspace, oldest first, with what became of items in it. */
export async function historyOf(workspace: Workspace, clock: Clock): Promise<RunLine[]> {
  const store = openWorkspace(workspace, clock);
  const steps = openSteps(workspace.stateFile);
  try {
    const outcomes = steps.outcomes();
    const runs: RunLine[] = [];
    const all = await store.runs();
    if (all.length === 0) await refuseOutdated(workspace, store);
    const holder = holderOf(workspace.lockFile);
    for (const run of all) {
      const { lost: _lost, ...spent } = await spentIn(store, run.id);
      const { archived = 0, failed = 0, held = 0 } = outcomes.get(run.id) ?? {};
      runs.push({
        ...lineOf(run, all, holder),
        archived,
        failed,
        held,
        ...spent,
        requests: run.requests,
      });
    }
    return runs;
  } finally {
    steps.close();
    store.close();
  }
}

/** What a run's place among the others tells. A process carries on one run; what older ones left keeps its state. */
function lineOf(run: Run, runs: readonly Run[], held: Holder | null) {
  const { id, jobName, state, startedAt, endedAt, exit } = run;
  const alive = held?.run === id;
  const holder = alive || runs.at(-1)?.id === id ? held : null;
  const newest = runs.findLast(isUnfinished)?.id === id;
  return {
    ...{ run: id, job: jobName, state, startedAt, endedAt, exit, alive, holder },
    resume: isUnfinished(run) && !alive ? resumeCommand(run, newest) : null,
  };
}
