import type { Clock } from "../../clock.js";
import { defaultReconcile } from "../../core/charges/readings.js";
import { noCredits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Run, RunStart, Store } from "../../core/ports/store.js";
import type { RestoredItem } from "../../store/workspace/restore.js";
import type { BookVerdicts } from "../workspace/book-verdicts.js";
import type { FoundItem } from "./rebuild-items.js";
import { restoredItem } from "./restored-item.js";

/** What receipts and archive do not say about an item. */
export interface Unsaid {
  origin: string;
  accountId: string;
  outFolder: string;
  manifestFolder: string;
  sandbox: boolean;
}

export interface RebuildTarget {
  store: Store;
  restore(runId: number, item: RestoredItem): void;
}

export interface RebuildContext {
  clock: Clock;
  unsaid: Unsaid;
  verdicts: Pick<BookVerdicts, "on">;
}

/** Writes the items in their final states: one run for each job, edition, output folder and account. */
export async function refill(
  target: RebuildTarget,
  items: readonly FoundItem[],
  context: RebuildContext,
): Promise<void> {
  const { unsaid } = context;
  const runs = new Map<string, FoundItem[]>();
  for (const found of items) {
    const { job, item } = found;
    const of = JSON.stringify([job, item.edition, placeOf(found, unsaid), accountOf(found, unsaid)]);
    const group = runs.get(of) ?? [];
    runs.set(of, group);
    group.push(found);
  }
  const expected = expectedOutputs(items);
  const owners = new Map<string, string>();
  const owing: number[] = [];
  for (const group of runs.values()) {
    const run = await refillRun(target, group, { ...context, expected, owners });
    if (run.owes) owing.push(run.id);
  }
  // Only when all runs are there: starting a run of an edition would continue an open one.
  for (const id of owing) await target.store.setRun(id, { state: "interrupted" });
}

/** The output folder of an item's latest file; without a file, the folder in its intent. */
function placeOf({ attempts, outputs, intent }: FoundItem, { outFolder }: Unsaid): string {
  const newest = attempts.get(Math.max(...attempts.keys()))?.answer?.conclusion.outcome.taskId;
  const output = outputs.find(({ task }) => task === newest) ?? outputs.at(-1);
  return output?.outFolder ?? intent?.out ?? outFolder;
}

/** The account of an item. All tasks of a run belong to one user, who alone can collect them. */
function accountOf({ intent }: FoundItem, unsaid: Unsaid): Pick<RunStart, "origin" | "accountId"> {
  return { origin: intent?.origin ?? unsaid.origin, accountId: intent?.account ?? unsaid.accountId };
}

async function refillRun(
  { store, restore }: RebuildTarget,
  group: readonly FoundItem[],
  context: RebuildContext & { expected: ReadonlyMap<string, number>; owners: Map<string, string> },
): Promise<Run> {
  const { clock, unsaid, expected, owners, verdicts } = context;
  const [first] = group;
  if (!first) throw new Error("a run of no items");
  const run = await store.startRun((await store.job(first.job)).id, startOf(first, group, unsaid));
  for (const found of group) {
    const outputs = expected.get(groupOf(found)) ?? 1;
    restore(run.id, await restoredItem(found, { now: clock.now(), verdicts, outputs, owners }));
  }
  // A refused item waits for the next run of its manifest: `resume` must not buy anything.
  await store.cancelRun(run.id, new Set());
  await store.setRun(run.id, { state: "finished", endedAt: clock.now() });
  return (await store.run(run.id)) ?? run;
}

/** The most outputs that a task of a model with its params has in the archive. */
function expectedOutputs(items: readonly FoundItem[]): Map<string, number> {
  const most = new Map<string, number>();
  for (const found of items) {
    const numbers = found.outputs.map(({ output }) => output);
    most.set(groupOf(found), Math.max(most.get(groupOf(found)) ?? 1, ...numbers));
  }
  return most;
}

function groupOf({ item: { model, params } }: FoundItem): string {
  return JSON.stringify([model, params]);
}

function startOf(found: FoundItem, group: readonly FoundItem[], unsaid: Unsaid): RunStart {
  const intent = group.find(({ intent }) => intent)?.intent;
  return {
    manifest: intent?.manifest ?? `${unsaid.manifestFolder}/${found.job}.csv`,
    ...accountOf(found, unsaid),
    edition: found.item.edition,
    outFolder: placeOf(found, unsaid),
    options: { ...plainOptions, sandbox: unsaid.sandbox },
  };
}

/** The caps of the old runs are lost, so `resume` only collects and submits nothing. */
const plainOptions: Omit<RunOptions, "sandbox"> = {
  maxCredits: noCredits,
  maxFailures: null,
  retries: 0,
  downloads: 4,
  onInsufficient: "stop",
  onDailyLimit: "stop",
  until: null,
  maxDurationMs: null,
  overdueWaitMs: 0,
  settle: "stop",
  ...defaultReconcile,
  unsettledMax: 5,
  orphanCredits: noCredits,
};
