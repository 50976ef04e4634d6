import type { Credits } from "../money.js";

/** An item of a saved plan, as its file has it. */
export interface SavedItem {
  key: string;
  /** The row's number as the spreadsheet shows it, and its id. */
  row: number;
  id: string;
  model: string;
  credits: number;
  /** It was to be submitted by the run. */
  due: boolean;
  /** Prompt, params and inputs. */
  content: Record<string, string>;
}

/** The items of a saved plan, in the order of the plan. There may be more than fit into memory. */
export interface SavedItems {
  readonly length: number;
  /** What the items that were to be submitted cost together. */
  readonly planned: Credits;
  /** Throws for credits that are no amount. */
  add(item: SavedItem): void;
  find(key: string): ComparedItem | undefined;
  /** The positions of the items with a row id. */
  positionsOf(id: string): number[];
  at(position: number): SavedItem;
  close(): void;
}

/** What most comparisons need of an item. */
export interface ComparedItem {
  /** From 0. */
  position: number;
  due: 0 | 1;
  credits: Credits;
}
