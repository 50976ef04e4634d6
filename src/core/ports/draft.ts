import type { MediaField } from "../../api/inputs.js";
import type { Listing } from "../../text/listing.js";
import type { ItemState } from "../item.js";
import type { Credits } from "../money.js";
import type { Place, Problem } from "../problem.js";
import type { Item, NewItem } from "./store.js";

export interface DraftCounts {
  /** Rows, in all their combinations. */
  rows: number;
  /** Items that the job has already. */
  known: number;
  /** Those of them that are at the service, or may be. */
  open: number;
  /** Problems of rows that are not wanted. */
  hidden: number;
  /** Wanted items to be submitted whose files a person has to approve. */
  toApprove: number;
}

export interface Totals {
  items: number;
  /** Those to be submitted. */
  due: number;
  /** By price group, in the order of the sheet. */
  groups: GroupSum[];
  states: Partial<Record<PlannedState, number>>;
  /** The price of those whose request has no answer yet: each is sent again if it proves not to have been charged. */
  inDoubt: Credits;
}

export interface DraftRow {
  number: number;
  id: string | null;
  repeat: number;
  /** Every cell as written, by column. */
  cells: Readonly<Record<string, string>>;
  /** Why nothing is made of it; null if something is. */
  problem: string | null;
  /** The problems that the row has if no model accepts the default of that name. */
  without: readonly { key: string; problem: Problem }[];
  /** Selected so far. */
  chosen: boolean;
  /** Its lot if rows are chosen by lot (`--sample`), otherwise null. */
  lot: string | null;
  /** How many items it stands for, of those that are identical to the item at this position. */
  shares: { head: number; items: number } | null;
  /** The name of its step; null without steps. */
  step: string | null;
}

export interface DraftItem {
  key: string;
  /** 1 for the first item of the row. */
  copy: number;
  occurrence: number;
  /** The position of the first identical item; null if this is the first. */
  head: number | null;
  approve: boolean;
  priority: number;
  rowId: string;
  name: string;
  kind: ItemKind;
  prompt: string | null;
  inputs: NewItem["inputs"];
  /** The inputs as identity counts them. */
  contents: NewItem["inputs"];
}

/** What items of one model with the same params have in common. All of them should share one object. */
export interface ItemKind {
  model: string;
  category: string;
  params: NewItem["params"];
  price: Credits;
  /** The number of the price group. */
  group: number;
}

/** An input that is another item's output, as written in the manifest. */
export interface DraftLink {
  /** The position of the item that takes it. */
  child: number;
  field: MediaField;
  written: string;
  output: number;
  place: Place;
  /** A copy of the row whose first record is at that position, or the item with one of these ids. */
  of: { position: number; copy: number } | { names: readonly string[] };
}

/** An input with the item whose output it is: no position if there is none, no key if its row makes no item. */
export interface ResolvedLink extends Pick<DraftLink, "field" | "written" | "output"> {
  /** As JSON: only problems need it. */
  place: string;
  parent: number | null;
  key: string | null;
  model: string | null;
  category: string | null;
  rowId: string | null;
}

export interface DraftSlot {
  position: number;
  /** The id that the row itself says. */
  id: string | null;
  item: DraftItem;
  /** Of its row, as JSON. */
  cells: string | null;
}

export type Known = Pick<
  Item,
  "key" | "state" | "rowId" | "model" | "prompt" | "params" | "inputs" | "files" | "attempted" | "vanished"
> & {
  name: string | null;
  /** The cells of its row, where these tell identical rows apart. */
  cells: Item["cells"] | null;
};

/** `files` are the hashes of the local files among its inputs. */
export type KnownContent = Pick<Item, "model" | "prompt" | "params" | "inputs" | "files">;

export type RowContent = Pick<NewItem, "model" | "prompt" | "params" | "inputs">;

export interface Choice {
  /** Whether filters and range select a row that could not be read. */
  matches(row: { number: number; id: string | null }): boolean;
  onlyFailed: boolean;
  sample: number | null;
  first: number | null;
}

/**
 * The items of one step and model. Items without a step are grouped by their depth: how many items come before them in
 * their chain.
 */
export interface StepSum {
  step: string | null;
  model: string;
  category: string;
  /** Null for a step. */
  depth: number | null;
  items: number;
  due: number;
  /** Of the due ones. */
  credits: Credits;
  states: Partial<Record<PlannedState, number>>;
  /** The steps that use outputs of this one, by their index. */
  next: number[];
}

export type PlannedState = "new" | ItemState;

export interface PlannedItem extends NewItem {
  state: PlannedState;
  /** It is to be submitted, and paid, by this run. */
  due: boolean;
  /** Position in the order of submission, from 0: by priority, then by the manifest's order. */
  order: number;
  /** It is due, and balance and caps cover it and all items before it. */
  fits: boolean;
}

export interface Ordered {
  priority: number;
  position: number;
  price: Credits;
  rowNumber: number;
  rowId: string;
  /** The number of its price group. */
  group: number;
}

export interface GroupSum {
  group: number;
  items: number;
  due: number;
  /** The highest. */
  price: Credits;
  /** Of the due ones together. */
  credits: Credits;
}

export interface ChangedRow {
  rowNumber: number;
  rowId: string;
  key: string;
  oldKey: string;
  /** `file` is the local file whose content changed, where the cell itself did not. */
  fields: { field: string; from: string | null; to: string | null; file?: string }[];
}

export interface VanishedItem {
  key: string;
  rowId: string;
  state: ItemState;
  /** The new item that the row asks for now. */
  replacedBy: string | null;
  /** A row of its id is still there. */
  hasRow: boolean;
}

export interface RenamedItem {
  rowNumber: number;
  rowId: string;
  from: string;
  to: string;
}

/** How the manifest changed since the job was last planned. */
export interface Comparison {
  /** Rows that were there before with other content. */
  changed: Listing<ChangedRow>;
  /** Items of the job that no row asks for any more. */
  vanished: Listing<VanishedItem>;
  /** Archived items whose files are renamed, at no cost. */
  renamed: Listing<RenamedItem>;
  /** Archived items that had no row when the job was last planned and have one again; they cost nothing. */
  restored: Listing<{ rowNumber: number; rowId: string; key: string }>;
}
