import { type Credits, credits, noCredits, plus } from "../core/money.js";
import { openSqlite } from "../sqlite.js";

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

/** What most comparisons need of an item. */
interface ComparedItem {
  /** From 0. */
  position: number;
  due: 0 | 1;
  credits: Credits;
}

/**
 * The items of a saved plan, none at first, in the order of the plan. A million would take more than a gigabyte of memory,
 * so they are in a temporary database of SQLite: it has no name, uses the disk only beyond its cache, and ends with the
 * process at the latest.
 */
export class SavedItems {
  private readonly tables = openTables();
  private readonly indexed = new Set<string>();
  private count = 0;
  private sum: Credits = noCredits;

  get length(): number {
    return this.count;
  }

  /** What the items that were to be submitted cost together. */
  get planned(): Credits {
    return this.sum;
  }

  /** Throws for credits that are no amount. */
  add(item: SavedItem): void {
    const price = credits(item.credits);
    this.tables.add.run(this.count, item.key, item.id, Number(item.due), price, JSON.stringify(item));
    this.count++;
    if (item.due) this.sum = plus(this.sum, price);
  }

  find(key: string): ComparedItem | undefined {
    this.index("key");
    return this.tables.find.get(key) as ComparedItem | undefined;
  }

  /** The positions of the items with a row id. */
  positionsOf(id: string): number[] {
    this.index("id");
    return this.tables.positions.all(id) as number[];
  }

  at(position: number): SavedItem {
    return JSON.parse(this.tables.item.get(position) as string) as SavedItem;
  }

  close(): void {
    this.tables.db.close();
  }

  /** An index of all items at once takes less time than one that grows with each. */
  private index(column: "key" | "id"): void {
    if (this.indexed.has(column)) return;
    this.tables.db.exec(`CREATE INDEX by_${column} ON items (${column})`);
    this.indexed.add(column);
  }
}

function openTables() {
  const db = openSqlite("");
  // It need not survive a crash.
  db.exec(`PRAGMA journal_mode = OFF;
    PRAGMA cache_size = -16000;
    CREATE TABLE items (
      position INTEGER PRIMARY KEY,
      key TEXT NOT NULL,
      id TEXT NOT NULL,
      due INTEGER NOT NULL,
      credits INTEGER NOT NULL,
      item TEXT NOT NULL
    );
    BEGIN`);
  return {
    db,
    add: db.prepare("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)"),
    find: db.prepare("SELECT position, due, credits FROM items WHERE key = ?"),
    positions: db.prepare("SELECT position FROM items WHERE id = ? ORDER BY position").pluck(),
    item: db.prepare("SELECT item FROM items WHERE position = ?").pluck(),
  };
}
