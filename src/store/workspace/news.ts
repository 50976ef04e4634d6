import type { FailureKind } from "../../core/failure.js";
import type { ItemState } from "../../core/item.js";
import type { Database, Queries, Script } from "../script.js";

/** States whose items a person has to hear about. */
const troubled = ["failed", "held", "unknown", "overdue"] as const;
export type TroubledState = (typeof troubled)[number];

/** Items that are in the same trouble for the same reason. */
export interface TroubleGroup {
  state: TroubledState;
  kind: FailureKind | null;
  /** Null if no reason is known. */
  note: string | null;
  items: number;
  /** The row ids of the first of them. */
  rowIds: readonly string[];
}

/** What happened in a run, for a live view of it. */
export interface News {
  /** The file that was saved last, in the run's folder; null before the first. */
  newestFile: string | null;
  /** The largest groups first. */
  trouble: readonly TroubleGroup[];
  /** Archived items whose files a person has to approve. */
  awaiting: Pick<TroubleGroup, "items" | "rowIds">;
}

/** Follows a run: the cost of each reading depends only on what has happened since the last one. */
export type NewsReader = ReturnType<typeof newsOn>;

interface Row {
  item: number;
  rowId: string;
  state: ItemState;
  kind: FailureKind | null;
  note: string | null;
}

// Joined by OR, so that each state is looked up in an index of its own.
const isTroubled = troubled.map((state) => `(state = '${state}' AND run_id = @runId)`).join(" OR ");
const selectTroubled = `
  SELECT id AS item, row_id AS rowId, state, failure_kind AS kind, note FROM items WHERE ${isTroubled}
  ORDER BY position, id`;
const selectChanged = `
  SELECT i.id AS item, i.row_id AS rowId, i.state, i.failure_kind AS kind, i.note FROM events e JOIN items i ON i.id = e.item_id
  JOIN transitions t ON t.from_state = e.from_state AND t.event = e.event
  WHERE e.id > ? AND e.id <= ? AND e.run_id = ?
    AND (t.to_state IN ('failed', 'held', 'unknown', 'overdue') OR t.from_state IN ('failed', 'held', 'unknown', 'overdue'))
  ORDER BY e.id`;
const selectNewestFile = `
  SELECT o.file FROM events e JOIN outputs o ON o.item_id = e.item_id AND o.file IS NOT NULL
  WHERE e.id > ? AND e.run_id = ? AND e.event = 'saved' ORDER BY e.id DESC, o.number LIMIT 1`;

const isAwaiting = "run_id = ? AND approval = 'waiting' AND state = 'archived'";

/** When a run is continued, the newest file is searched in this many earlier steps. */
const stepsBack = 10_000;

/** Row ids that are kept for a group. */
const idsMax = 5;

/** The news of a run in an open database of either kind. */
export function newsOn({ sql, read }: Pick<Database, "sql" | "read">, runId: number) {
  const groups = new TroubleGroups();
  let seen: number | null = null;
  let newestFile: string | null = null;
  return {
    read: (): Promise<News> =>
      read(function* () {
        const until = Number(yield* sql("SELECT coalesce(max(id), 0) FROM events").value());
        const changed =
          seen === null
            ? yield* sql(selectTroubled).all({ runId })
            : yield* sql(selectChanged).all(seen, until, runId);
        for (const row of changed as Row[]) groups.put(row);
        const newest = yield* sql(selectNewestFile).value(seen ?? until - stepsBack, runId);
        newestFile = (newest as string | undefined) ?? newestFile;
        seen = until;
        return { newestFile, trouble: groups.largestFirst(), awaiting: yield* awaiting(sql, runId) };
      }),
  };
}

function* awaiting(sql: Queries, runId: number): Script<News["awaiting"]> {
  const items = Number(yield* sql(`SELECT count(*) FROM items WHERE ${isAwaiting}`).value(runId));
  if (items === 0) return { items, rowIds: [] };
  const first = yield* sql(
    `SELECT row_id AS rowId FROM items WHERE ${isAwaiting} ORDER BY position, id LIMIT ${idsMax}`,
  ).all(runId);
  return { items, rowIds: (first as { rowId: string }[]).map(({ rowId }) => rowId) };
}

/** Counts items by trouble and reason as they come and go. */
class TroubleGroups {
  private readonly members = new Map<number, { key: string; rowId: string }>();
  private readonly groups = new Map<string, TroubleGroup & { rowIds: string[] }>();

  put({ item, rowId, state, kind, note }: Row): void {
    this.remove(item, rowId);
    const trouble = troubled.find((name) => name === state);
    if (trouble === undefined) return;
    const key = JSON.stringify([trouble, kind, note]);
    const group = this.groups.get(key) ?? { state: trouble, kind, note, items: 0, rowIds: [] };
    group.items++;
    if (group.rowIds.length < idsMax) group.rowIds.push(rowId);
    this.groups.set(key, group);
    this.members.set(item, { key, rowId });
  }

  largestFirst(): TroubleGroup[] {
    this.nameOthers();
    return [...this.groups.values()].toSorted((a, b) => b.items - a.items);
  }

  /** Names other items of groups whose first ones have left. */
  private nameOthers(): void {
    const groups = new Map(
      [...this.groups].filter(([, { items, rowIds }]) => rowIds.length < Math.min(idsMax, items)),
    );
    if (groups.size === 0) return;
    for (const { key, rowId } of this.members.values()) {
      const ids = groups.get(key)?.rowIds;
      if (ids !== undefined && ids.length < idsMax && !ids.includes(rowId)) ids.push(rowId);
    }
  }

  private remove(item: number, rowId: string): void {
    const key = this.members.get(item)?.key;
    const group = key === undefined ? undefined : this.groups.get(key);
    if (key === undefined || group === undefined) return;
    this.members.delete(item);
    group.items--;
    group.rowIds = group.rowIds.filter((id) => id !== rowId);
    if (group.items === 0) this.groups.delete(key);
  }
}
