import type { ItemState } from "../../core/item.js";
import { type Credits, noCredits, plus } from "../../core/money.js";
import type { DraftItem, GroupSum, ItemKind, Totals } from "../../core/ports/draft.js";

/** The tables of a plan in the making. */
export const draftTables = `
  -- What many items have in common; beyond the kinds that are kept in memory, each item has one of its own.
  CREATE TABLE kinds (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    category TEXT NOT NULL,
    params TEXT NOT NULL,
    price INTEGER NOT NULL,
    price_group INTEGER NOT NULL
  );

  CREATE TABLE drafted (
    position INTEGER PRIMARY KEY,
    -- The row that this record is of, counted from 0; a row has one for each item, and at least one.
    row INTEGER NOT NULL,
    number INTEGER NOT NULL,
    -- The first record of its row.
    first INTEGER NOT NULL DEFAULT 1,
    copy INTEGER NOT NULL DEFAULT 1,
    id TEXT,
    repeat INTEGER NOT NULL DEFAULT 1,
    cells TEXT,
    problem TEXT,
    without TEXT,
    chosen INTEGER NOT NULL DEFAULT 1,
    -- An item is wanted with any of the rows that share it.
    wanted INTEGER NOT NULL DEFAULT 1,
    lot TEXT,
    -- The head of a group, and how many of its items the row shares.
    shared INTEGER,
    shares INTEGER,
    -- Null where nothing is made of the row.
    key TEXT,
    occurrence INTEGER NOT NULL DEFAULT 1,
    head INTEGER,
    -- 1: a person has to approve it.
    approve INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    kind INTEGER,
    -- row_id is null if it is the id; name is null if it is the row id.
    row_id TEXT,
    name TEXT,
    prompt TEXT,
    inputs TEXT NOT NULL DEFAULT '{}',
    contents TEXT,
    -- The items whose outputs it takes, as JSON; null where there are none.
    parents TEXT,
    -- How many items are above it in its chain.
    depth INTEGER NOT NULL DEFAULT 0,
    -- The name of its step, where the job has steps.
    step TEXT,
    state TEXT NOT NULL DEFAULT 'new',
    due INTEGER NOT NULL DEFAULT 1
  );

  -- The records that are items. Kinds never come first, because that would lose the order of the records.
  CREATE VIEW planned AS
  SELECT position, row, number, copy, drafted.id, cells, wanted, key, occurrence, head, approve, priority,
    coalesce(row_id, drafted.id) AS row_id, coalesce(name, row_id, drafted.id) AS name,
    repeat, model, category, prompt, params, inputs, contents, parents, price, price_group, state, due
  FROM drafted CROSS JOIN kinds ON kinds.id = drafted.kind
  WHERE key IS NOT NULL;

  CREATE TABLE problems (
    id INTEGER PRIMARY KEY,
    row INTEGER NOT NULL,
    row_id TEXT,
    hidden INTEGER NOT NULL DEFAULT 0,
    document TEXT NOT NULL
  );

  CREATE TABLE known (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    row_id TEXT NOT NULL,
    name TEXT,
    state TEXT NOT NULL,
    attempted INTEGER NOT NULL,
    vanished INTEGER NOT NULL,
    missing INTEGER NOT NULL,
    gone INTEGER NOT NULL DEFAULT 0,
    document TEXT NOT NULL,
    cells TEXT
  );

  -- Inputs that are outputs of other items: of the item at a position, or of one of these names.
  CREATE TABLE links (
    child INTEGER NOT NULL,
    field TEXT NOT NULL,
    written TEXT NOT NULL,
    output INTEGER NOT NULL,
    place TEXT NOT NULL,
    name TEXT,
    other TEXT,
    parent INTEGER,
    -- Which copy of the row at that position.
    copy INTEGER NOT NULL,
    PRIMARY KEY (child, field)
  ) WITHOUT ROWID;

  CREATE TABLE wrong_ids (id TEXT PRIMARY KEY) WITHOUT ROWID;

  CREATE TABLE changes (
    id INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    key TEXT NOT NULL,
    old_key TEXT NOT NULL,
    fields TEXT NOT NULL
  );
`;

export const tableNames = ["kinds", "drafted", "problems", "known", "wrong_ids", "changes", "links"] as const;

/** Totals that would take another pass over all records. */
export interface DraftProgress {
  /** Records and rows so far. */
  records: number;
  rows: number;
  /** Some item has a priority. */
  prioritised: boolean;
  /** Some item has to be approved. */
  approves: boolean;
  tally: Tally;
}

/** An item's record in the view `planned`. */
export interface DraftPlanned {
  position: number;
  row: number;
  number: number;
  copy: number;
  id: string | null;
  cells: string;
  key: string;
  occurrence: number;
  head: number | null;
  approve: number;
  priority: number;
  row_id: string;
  name: string;
  model: string;
  category: string;
  prompt: string | null;
  params: string;
  inputs: string;
  contents: string | null;
  parents: string | null;
  repeat: number;
  price: number;
  price_group: number;
  state: "new" | ItemState;
  due: number;
  wanted: number;
}

export type ItemRecord = Pick<
  DraftPlanned,
  | "key"
  | "copy"
  | "occurrence"
  | "head"
  | "approve"
  | "priority"
  | "row_id"
  | "name"
  | "prompt"
  | "inputs"
  | "contents"
>;

export function itemOf(record: ItemRecord, kind: ItemKind): DraftItem {
  const inputs = JSON.parse(record.inputs);
  return {
    key: record.key,
    copy: record.copy,
    occurrence: record.occurrence,
    head: record.head,
    approve: record.approve === 1,
    priority: record.priority,
    rowId: record.row_id,
    name: record.name,
    kind,
    prompt: record.prompt,
    inputs,
    contents: record.contents === null ? inputs : JSON.parse(record.contents),
  };
}

/**
 * Counts records while they are inserted, for the usual case that each item is new and each selected one is due. Other
 * sheets are counted by the database afterwards, which takes another pass.
 */
export class Tally {
  private readonly sums = new Map<number, GroupSum>();
  /** The records have not changed since they were inserted. */
  private holds = true;

  add({ kind: { group, price } }: Pick<DraftItem, "kind">): void {
    const sum = this.sums.get(group);
    if (sum === undefined) this.sums.set(group, { group, items: 1, due: 1, price, credits: price });
    else {
      sum.items++;
      sum.due++;
      sum.price = Math.max(sum.price, price) as Credits;
      sum.credits = plus(sum.credits, price);
    }
  }

  /** To be called when inserted records are changed. */
  spoil(): void {
    this.holds = false;
  }

  clear(): void {
    this.sums.clear();
    this.holds = true;
  }

  /** Null when the database has to count. */
  totals(): Totals | null {
    if (!this.holds) return null;
    const groups = [...this.sums.values()].map((sum) => ({ ...sum }));
    const items = groups.reduce((sum, group) => sum + group.items, 0);
    return { items, due: items, groups, states: items === 0 ? {} : { new: items }, inDoubt: noCredits };
  }
}
