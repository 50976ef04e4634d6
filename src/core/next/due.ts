import type { ItemState } from "../item.js";
import type { Credits } from "../money.js";
import type { Task } from "../pace/poll.js";
import type { Planned } from "./next.js";

/** What must not be submitted for now: models, and what was planned at a price that is not right. */
export interface Parked {
  models: readonly string[];
  prices: readonly PlannedPrice[];
}

/** Items of one price group (`priceGroup`) that were planned at the same price. */
export interface PlannedPrice {
  group: string;
  price: Credits;
}

/** The items of a run that were planned at such a price, and how many of them are planned still. */
export interface RunGroup extends PlannedPrice {
  model: string;
  category: string;
  planned: number;
  /** The most that one of the group was charged by the service, for any run of the workspace; null where none was. */
  charged: Credits | null;
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
