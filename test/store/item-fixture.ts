import { defaultReconcile } from "../../src/core/charges/readings.js";
import { credits, noCredits } from "../../src/core/money.js";
import type { NewItem, RunStart } from "../../src/core/ports/store.js";

export function newItem(id: string, change: Partial<NewItem> = {}): NewItem {
  return {
    key: `k1:${id}`,
    edition: "",
    occurrence: 1,
    variant: 1,
    position: 1,
    priority: 0,
    rowNumber: 2,
    rowId: id,
    name: id,
    model: "picture",
    category: "image",
    prompt: `a ${id}`,
    params: {},
    inputs: {},
    cells: [],
    price: credits(4),
    ...change,
  };
}

export const runStart: RunStart = {
  manifest: "/somewhere/jobs/demo.csv",
  origin: "https://service.example",
  accountId: "user-1",
  edition: "",
  outFolder: "/somewhere/outputs",
  options: {
    maxCredits: null,
    maxFailures: null,
    retries: 1,
    downloads: 4,
    onInsufficient: "refuse",
    onDailyLimit: "stop",
    until: null,
    maxDurationMs: null,
    overdueWaitMs: 0,
    settle: "stop",
    ...defaultReconcile,
    unsettledMax: 5,
    orphanCredits: noCredits,
    sandbox: false,
  },
};
