import { type Credits, credits, toNumber } from "../../src/core/money.js";
import { priceGroup } from "../../src/core/price.js";
import { defaultReconcile } from "../../src/core/readings.js";
import type { NewItem, Run, RunStart, Store } from "../../src/core/store.js";
import { categoryOf, priceOf } from "./models.js";
import type { Scenario } from "./scenario.js";
import { userId } from "./service.js";

/** A workspace of the simulated machine: what of it survives every process. */
export interface Workspace {
  number: number;
  store: Store;
  /** As they were planned last: what whoever sits before the machine has agreed to pay for each. */
  items: NewItem[];
  /** The same in credits, by row id. */
  prices: ReadonlyMap<string, number>;
  outFolder: string;
  receiptsFile: string;
  run: Run | null;
}

export const origin = "https://service.example";

export function workspaceOf(number: number, store: Store, scenario: Scenario): Workspace {
  const items = scenario.items.flatMap((item, index) =>
    item.workspace === number ? [newItem(item, index)] : [],
  );
  return {
    number,
    store,
    items,
    prices: pricesOf(items),
    outFolder: `/workspace-${number}/outputs`,
    receiptsFile: `/workspace-${number}/.bulkgen/receipts.jsonl`,
    run: null,
  };
}

function newItem(item: Scenario["items"][number], index: number): NewItem {
  return {
    key: `k1:${item.id}`,
    edition: "",
    occurrence: 1,
    variant: 1,
    position: index + 1,
    priority: item.priority,
    rowNumber: index + 2,
    rowId: item.id,
    name: item.name,
    model: item.model,
    category: categoryOf(item.model),
    prompt: item.id,
    params: {},
    inputs: {},
    cells: [],
    price: credits(priceOf(item.model)),
  };
}

/** The items as a plan of now has them: at what their like was charged, or else at the listed price. */
export function plannedAnew({ items }: Workspace, charges: ReadonlyMap<string, Credits>): NewItem[] {
  return items.map((item) => ({
    ...item,
    price: charges.get(priceGroup(item)) ?? credits(priceOf(item.model)),
  }));
}

/** Somebody has seen what the items cost, and agrees to it. */
export function agreeTo(workspace: Workspace, planned: NewItem[]): void {
  workspace.items = planned;
  workspace.prices = pricesOf(planned);
}

function pricesOf(items: readonly NewItem[]): Map<string, number> {
  return new Map(items.map(({ rowId, price }) => [rowId, toNumber(price)]));
}

export function runStartOf(workspace: Workspace, scenario: Scenario): RunStart {
  const { modelCap, dailyCredits, keepCredits, orphanCredits, overdueWaitMs } = scenario;
  return {
    manifest: `/workspace-${workspace.number}/items.csv`,
    origin,
    accountId: userId,
    edition: "",
    outFolder: workspace.outFolder,
    options: {
      maxCredits: scenario.maxCredits === null ? null : credits(scenario.maxCredits),
      ...(modelCap ? { modelCaps: { [modelCap.model]: credits(modelCap.most) } } : {}),
      ...(dailyCredits === undefined ? {} : { dailyCredits: credits(dailyCredits) }),
      ...(keepCredits === undefined ? {} : { keepCredits: credits(keepCredits) }),
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
