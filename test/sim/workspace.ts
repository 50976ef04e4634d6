import { join } from "node:path";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { priceGroup } from "../../src/core/identity.js";
import { type Credits, credits, toNumber } from "../../src/core/money.js";
import type { NewItem, Parent, Run, RunStart } from "../../src/core/ports/store.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import { plannedHash } from "./bucket.js";
import type { Take } from "./chains.js";
import { isOfRun, itemOf, jobOf, rowOf } from "./jobs.js";
import { categoryOf, priceOf } from "./models.js";
import { fileField } from "./publish-rules.js";
import type { Scenario } from "./scenario.js";
import { userId } from "./service.js";

/** A workspace of the simulated machine: what of it survives every process. */
export interface Workspace {
  number: number;
  store: Store;
  outFolder: string;
  receiptsFile: string;
  jobs: Job[];
  /** Of the scenario's items, in the order in which they are enrolled: one job after the other. */
  ids: readonly string[];
}

export interface Job {
  /** From 0. */
  number: number;
  name: string;
  manifest: string;
  /** Of its files. */
  folder: string;
  /** At the prices that the person has agreed to. */
  items: NewItem[];
  /** The changed sheet, until it is planned. */
  changed: NewItem[] | null;
  /** Those prices in credits, by the scenario's item. */
  prices: ReadonlyMap<string, number>;
  run: Run | null;
  /** Runs that nothing more is submitted for, and since when (ms of the one true time). */
  cancelled: Map<number, number>;
}

export const origin = "https://service.example";

export function workspaceOf(number: number, store: Store, scenario: Scenario): Workspace {
  const outFolder = `/workspace-${number}/outputs`;
  const own = scenario.items.filter(({ workspace }) => workspace === number);
  const count = 1 + Math.max(0, ...own.map(({ id }) => jobOf(id)));
  const numbers = Array.from({ length: count }, (_, job) => job);
  return {
    number,
    store,
    outFolder,
    receiptsFile: `/workspace-${number}/.bulkgen/receipts.jsonl`,
    jobs: numbers.map((job) => jobAt(job, number, outFolder, scenario)),
    ids: numbers.flatMap((job) => own.filter(({ id }) => jobOf(id) === job).map(({ id }) => id)),
  };
}

function jobAt(number: number, workspace: number, outFolder: string, scenario: Scenario): Job {
  const name = number === 0 ? "demo" : `demo-${number}`;
  const own = scenario.items.flatMap((item, index) =>
    isOfRun(item, workspace, number) ? [{ ...item, index }] : [],
  );
  const first = own.filter(({ replaces }) => replaces === undefined);
  const items = first.map((item) => newItem(item, item.index));
  const news = new Map(own.map((item) => [item.replaces, item]));
  const isChanged = first.length < own.length;
  const changed = first.map((item) => newItem(news.get(item.id) ?? item, item.index));
  return {
    number,
    name,
    manifest: `/workspace-${workspace}/${name}.csv`,
    folder: join(outFolder, name),
    items,
    changed: isChanged ? changed : null,
    prices: pricesOf(number, items),
    run: null,
    cancelled: new Map(),
  };
}

/** From now on the changed sheet is planned; false where there is none, or the first one was not yet enrolled. */
export function changeSheet(job: Job): boolean {
  if (job.changed === null || job.run === null) return false;
  job.items = job.changed;
  job.changed = null;
  return true;
}

/** Whether nothing more is submitted for a job's newest run. */
export function isCancelled({ run, cancelled }: Job): boolean {
  return run !== null && cancelled.has(run.id);
}

/** The item that a workspace's database has under that number: it numbers them as they are enrolled. */
export function itemNumbered({ ids }: Workspace, number: number): string {
  return ids[number - 1] ?? "";
}

function newItem(item: Scenario["items"][number], index: number): NewItem {
  const { takes = [], file } = item;
  const row = rowOf(item.id);
  return {
    key: `k1:${row}`,
    edition: "",
    occurrence: 1,
    variant: 1,
    position: index + 1,
    priority: item.priority,
    rowNumber: index + 2,
    rowId: row,
    name: item.name,
    model: item.model,
    category: categoryOf(item.model),
    prompt: row,
    params: {},
    inputs: {
      ...Object.fromEntries(takes.map(({ field, of, output }) => [field, `@${rowOf(of)}[${output}]`])),
      ...(file === undefined ? {} : { [fileField]: file }),
    },
    ...(file === undefined ? {} : { files: { [fileField]: plannedHash(file) } }),
    ...(takes.length === 0 ? {} : { parents: takes.map(parentOf) }),
    ...(item.approve ? { approve: true as const } : {}),
    cells: [],
    price: credits(priceOf(item.model)),
  };
}

function parentOf({ field, of, output }: Take): Parent {
  return { field, key: `k1:${rowOf(of)}`, output };
}

/** The items as a plan of now has them: at what their like was charged, or else at the listed price. */
export function plannedAnew({ items }: Job, charges: ReadonlyMap<string, Credits>): NewItem[] {
  return items.map((item) => ({
    ...item,
    price: charges.get(priceGroup(item)) ?? credits(priceOf(item.model)),
  }));
}

/**
 * The person has seen a plan and agrees to its prices. A plan shows items in flight as paid for already, so those keep
 * the price that was agreed to before their request was sent, also when their task fails and is retried.
 */
export function agreeTo(job: Job, planned: readonly NewItem[], underWay: ReadonlySet<string>): void {
  job.items = planned.map((item, at) => (underWay.has(item.key) ? (job.items[at] as NewItem) : item));
  job.prices = new Map([...job.prices, ...pricesOf(job.number, job.items)]);
}

function pricesOf(job: number, items: readonly NewItem[]): Map<string, number> {
  return new Map(items.map(({ rowId, price }) => [itemOf(job, rowId), toNumber(price)]));
}

export function runStartOf({ outFolder }: Workspace, { manifest }: Job, scenario: Scenario): RunStart {
  const { modelCap, dailyCredits, keepCredits, orphanCredits, overdueWaitMs } = scenario;
  return {
    manifest,
    origin,
    accountId: userId,
    edition: "",
    outFolder,
    options: {
      maxCredits: scenario.maxCredits === null ? null : credits(scenario.maxCredits),
      ...(modelCap ? { modelCaps: { [modelCap.model]: credits(modelCap.most) } } : {}),
      ...(dailyCredits === undefined ? {} : { dailyCredits: credits(dailyCredits) }),
      ...(keepCredits === undefined ? {} : { keepCredits: credits(keepCredits) }),
      ...(scenario.canary ? { canary: true as const } : {}),
      maxFailures: null,
      retries: scenario.retries,
      downloads: scenario.downloads,
      onInsufficient: scenario.onInsufficient,
      onDailyLimit: scenario.onDailyLimit,
      until: null,
      maxDurationMs: null,
      overdueWaitMs: overdueWaitMs ?? 0,
      settle: scenario.settle,
      ...defaultReconcile,
      unsettledMax: 5,
      orphanCredits: credits(orphanCredits ?? 0),
      sandbox: false,
    },
  };
}
