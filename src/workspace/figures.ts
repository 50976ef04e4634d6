import type { Clock } from "../clock.js";
import type { ItemState } from "../core/item.js";
import type { Credits } from "../core/money.js";
import { openStore } from "./state.js";
import { type Workspace, workspaceExists } from "./workspace.js";

/** What a run has come to so far: an item counts in the run that has it now. */
export interface RunFigures {
  job: string;
  sandbox: boolean;
  counts: Readonly<Record<ItemState, number>>;
  /** Charged for good. */
  spent: Credits;
  requests: number;
}

/** The figures of every run of a workspace; none where nothing has run yet. */
export async function figuresOf(workspace: Workspace, clock: Clock): Promise<RunFigures[]> {
  if (!workspaceExists(workspace)) return [];
  const store = await openStore(workspace, clock);
  try {
    const figures: RunFigures[] = [];
    for (const { id, jobName: job, options, requests } of await store.runs()) {
      const { charged: spent } = await store.spending(id);
      figures.push({ job, sandbox: options.sandbox, counts: await store.counts(id), spent, requests });
    }
    return figures;
  } finally {
    await store.close();
  }
}
