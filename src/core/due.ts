import type { ItemState } from "./item.js";
import type { Credits } from "./money.js";
import type { Planned } from "./next.js";
import type { Task } from "./poll.js";

/** What must not be submitted for now: models, and price groups (`priceGroup`). */
export interface Parked {
  models: readonly string[];
  groups: readonly string[];
}

/** The planned items of one price group that have the same priority. */
export interface Head {
  group: string;
  priority: number;
}

export interface WaitingGroup extends Head {
  items: number;
  credits: Credits;
}

export interface Due {
  counts: Record<ItemState, number>;
  planned: Planned[];
  /** Tasks to look at: unfinished ones, and ready items whose addresses have expired. */
  tasks: Task[];
  ready: { id: number; nextAt: number; fetchBy: number }[];
  /** Ready items that wait for a look at their task. */
  expired: number;
  /** Planned items that are parked. */
  parked: number;
}
