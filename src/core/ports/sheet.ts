/** A manifest's rows as people wrote them. */
export interface Sheet {
  /** In their order. */
  columns: readonly string[];
  rows: Iterable<SheetRow>;
}

/** A sheet that was kept, with all its rows in memory. */
export interface KeptSheet extends Sheet {
  rows: readonly SheetRow[];
}

export interface SheetRow {
  /** As the spreadsheet counts. */
  number: number;
  /** Cells that are not empty, by column. */
  cells: Readonly<Record<string, string>>;
  /** Keys of the items that the row stands for. */
  keys: readonly string[];
  /** Why it stands for none, where it was wrong. */
  problem: string | null;
}

/** What an export adds to a sheet, in this order. */
export const filledColumns = [
  "item",
  "file",
  "state",
  "reason",
  "credits",
  "task_id",
  "external_task_id",
  "evidence",
] as const;
