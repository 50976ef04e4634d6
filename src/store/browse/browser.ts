import { statSync } from "node:fs";
import type { Clock } from "../../clock.js";
import type { ItemState } from "../../core/item.js";
import { minus } from "../../core/money.js";
import type { Amount } from "../../core/ports/accounts.js";
import { named, type Sqlite } from "../../sqlite.js";
import { sqliteDatabase } from "../on-sqlite.js";
import { NewerDatabase, openReadOnly, refuseForeignCode } from "../open.js";
import type { Database, Queries, Script } from "../script.js";
import { isLost, isUndecided } from "../workspace/lost-requests.js";
import { absolutePath } from "../workspace/own-paths.js";
import { refuseStrangeNames } from "../workspace/workspace.js";
import { workspaceMigrations } from "../workspace/workspace-schema.js";
import type {
  BrowsedAttempt,
  BrowsedFile,
  BrowsedItem,
  BrowsedRelative,
  BrowsedRun,
  BrowsedStory,
  Browser,
  WaitingKind,
  WantedItems,
} from "./pages.js";

/** Few requests are lost, and only these are looked through: the sign keeps SQLite from reading all attempts of a run. */
const runColumns = `
  SELECT r.id, j.name AS job, r.state, r.manifest, r.origin, r.account_id AS accountId, r.edition, r.out_folder AS outFolder,
    r.options, r.started_at AS startedAt, r.ended_at AS endedAt, r.exit, r.ending, r.requests,
    (SELECT json_group_array(json_object('state', state, 'items', items)) FROM run_states s WHERE s.run_id = r.id) AS counts,
    (SELECT coalesce(sum(charged), 0) FROM run_spending s WHERE s.run_id = r.id) AS charged,
    (SELECT coalesce(sum(pending), 0) FROM run_spending s WHERE s.run_id = r.id) AS pending,
    (SELECT coalesce(sum(a.price), 0) FROM attempts a JOIN items i ON i.id = a.item_id
     WHERE +a.run_id = r.id AND ${isLost("a")} AND NOT ${isUndecided("a", "i")}) AS lost,
    (SELECT count(*) FROM items i WHERE i.run_id = r.id AND i.approval = 'waiting' AND i.state = 'archived') AS awaiting
  FROM runs r JOIN jobs j ON j.id = r.job_id`;

const itemColumns = `
  i.id, i.run_id AS runId, j.name AS job, i.key, i.row_id AS rowId, i.row_number AS rowNumber, i.model, i.category, i.prompt,
  i.state, i.failure_kind AS failureKind, i.note, i.approval, i.price,
  (SELECT count(*) FROM outputs o WHERE o.item_id = i.id AND o.file IS NOT NULL) AS files,
  (SELECT mime FROM outputs o WHERE o.item_id = i.id AND o.file IS NOT NULL ORDER BY number LIMIT 1) AS mime,
  EXISTS (SELECT 1 FROM picks p WHERE p.item_id = i.id) AS picked`;

const hasText =
  "(i.row_id LIKE @like ESCAPE '\\' OR i.prompt LIKE @like ESCAPE '\\' OR i.model LIKE @like ESCAPE '\\')";

const waitingWhere: Readonly<Record<WaitingKind, string>> = {
  held: "i.state = 'held' AND i.run_id IS NOT NULL",
  failed: "i.state = 'failed' AND i.run_id IS NOT NULL AND i.vanished = 0",
  approval: "i.approval = 'waiting' AND i.state = 'archived' AND i.run_id IS NOT NULL",
};

const ofNewestTask = (column: "run_id" | "task_id") =>
  `(SELECT a.${column} FROM attempts a WHERE a.item_id = i.id AND a.task_id IS NOT NULL ORDER BY a.number DESC LIMIT 1)`;

/** The run that paid for an item. */
const paidIn = `coalesce(
  ${ofNewestTask("run_id")},
  i.run_id, (SELECT max(id) FROM runs WHERE job_id = i.job_id))`;

const fileColumns = `
  SELECT o.item_id AS itemId, o.number, i.key, i.run_id AS itemRunId, ${ofNewestTask("task_id")} AS taskId, r.id AS runId, j.name AS job, i.row_id AS rowId, i.model, i.prompt, o.file,
    o.out_folder AS outFolder, o.bucket, o.bytes, o.sha256, o.mime, o.saved_at AS savedAt, i.approval,
    EXISTS (SELECT 1 FROM picks p WHERE p.item_id = i.id) AS picked
  FROM outputs o JOIN items i ON i.id = o.item_id JOIN jobs j ON j.id = i.job_id JOIN runs r ON r.id = ${paidIn}
  WHERE o.file IS NOT NULL`;

/** The browser of a workspace in an open database of either kind; stored paths are relative to its folder `root`. */
export function browserOn({ sql, read }: Pick<Database, "sql" | "read">, root: string): Browser {
  const asRun = (row: object) => {
    const { counts, ending, outFolder, manifest, pending, lost, ...rest } = row as BrowsedRun & {
      counts: unknown;
      ending: unknown;
    };
    const states = JSON.parse(String(counts ?? "[]")) as { state: ItemState; items: number }[];
    return {
      ...rest,
      pending: minus(pending, lost),
      lost,
      manifest: absolutePath(root, manifest),
      outFolder: absolutePath(root, outFolder),
      counts: Object.fromEntries(states.map(({ state, items }) => [state, items])),
      ending: ending === null ? null : JSON.parse(String(ending)),
    } as BrowsedRun;
  };
  const asFile = (row: object) => {
    const file = row as BrowsedFile;
    return { ...file, outFolder: absolutePath(root, file.outFolder) };
  };
  return {
    runs: (before, limit) =>
      read(function* () {
        const rows = yield* sql(`${runColumns} WHERE r.id < ? ORDER BY r.id DESC LIMIT ?`).all(
          before ?? Number.MAX_SAFE_INTEGER,
          limit,
        );
        return rows.map((row) => asRun(row as object));
      }),
    run: (id) =>
      read(function* () {
        const row = yield* sql(`${runColumns} WHERE r.id = ?`).get(id);
        return row === undefined ? null : asRun(row as object);
      }),
    items: (wanted) => read(() => itemsPage(sql, wanted)),
    story: (itemId) => read(() => storyOf(sql, itemId, asFile)),
    waiting: (what, limit) =>
      read(function* () {
        const items = yield* sql(
          `SELECT ${itemColumns} FROM items i JOIN jobs j ON j.id = i.job_id WHERE ${waitingWhere[what]}
           ORDER BY i.run_id DESC, i.id LIMIT ?`,
        ).all(limit);
        return { items: items as BrowsedItem[], total: yield* waitingCount(sql, what) };
      }),
    waitingCounts: () =>
      read(function* () {
        return {
          held: yield* waitingCount(sql, "held"),
          failed: yield* waitingCount(sql, "failed"),
          approval: yield* waitingCount(sql, "approval"),
        };
      }),
    files: ({ text, before, limit, run }) =>
      read(function* () {
        const wheres = [
          "o.item_id < @before",
          ...(text === "" ? [] : [hasText]),
          ...(run === null ? [] : ["i.run_id = @run"]),
        ];
        const values = { before: before ?? Number.MAX_SAFE_INTEGER, limit, like: likeOf(text), run };
        const rows = yield* sql(
          `${fileColumns} AND ${wheres.join(" AND ")} ORDER BY o.item_id DESC, o.number LIMIT @limit`,
        ).all(values);
        return rows.map((row) => asFile(row as object));
      }),
    file: (itemId, number) =>
      read(function* () {
        const row = yield* sql(`${fileColumns} AND o.item_id = ? AND o.number = ?`).get(itemId, number);
        return row === undefined ? null : asFile(row as object);
      }),
    progress: (runId, stepMs) =>
      read(function* () {
        const values = { run: runId, step: stepMs };
        const archived = yield* sql(
          `SELECT CAST(o.saved_at / @step AS INTEGER) * @step AS at, count(*) AS amount FROM items i JOIN outputs o ON o.item_id = i.id AND o.number = 1
           WHERE i.run_id = @run AND o.saved_at IS NOT NULL GROUP BY 1 ORDER BY 1`,
        ).all(values);
        const credits = yield* sql(
          `SELECT CAST(sent_at / @step AS INTEGER) * @step AS at, sum(coalesce(charged, price)) AS amount FROM attempts
           WHERE run_id = @run AND task_id IS NOT NULL GROUP BY 1 ORDER BY 1`,
        ).all(values);
        return { archived: archived as Amount[], credits: credits as Amount[] };
      }),
  };
}

function* waitingCount(sql: Queries, what: WaitingKind): Script<number> {
  return Number(yield* sql(`SELECT count(*) FROM items i WHERE ${waitingWhere[what]}`).value());
}

function* itemsPage(
  sql: Queries,
  { runId, state, text, from, limit }: WantedItems,
): Script<{ items: BrowsedItem[]; total: number }> {
  const wheres = [
    "i.run_id = @runId",
    ...(state === null ? [] : [`i.state = '${state}'`]),
    ...(text === "" ? [] : [hasText]),
  ].join(" AND ");
  const values = { runId, from, limit, like: likeOf(text) };
  // The index of a run's items is in the order of their ids, so a page can be read without sorting.
  const items = yield* sql(
    `SELECT ${itemColumns} FROM items i JOIN jobs j ON j.id = i.job_id
     WHERE i.id IN (SELECT i.id FROM items i WHERE ${wheres} ORDER BY i.id LIMIT @limit OFFSET @from) ORDER BY i.id`,
  ).all(values);
  const counted =
    text === ""
      ? yield* sql(
          `SELECT coalesce(sum(items), 0) FROM run_states WHERE run_id = @runId ${state === null ? "" : `AND state = '${state}'`}`,
        ).value({ runId })
      : yield* sql(`SELECT count(*) FROM items i WHERE ${wheres}`).value({ runId, like: values.like });
  return { items: items as BrowsedItem[], total: Number(counted) };
}

function* storyOf(
  sql: Queries,
  itemId: number,
  asFile: (row: object) => BrowsedFile,
): Script<BrowsedStory | null> {
  const item = (yield* sql(
    `SELECT ${itemColumns}, i.edition, i.variant, i.polls, i.next_at AS nextAt, i.params, i.inputs, i.cells, i.name
     FROM items i JOIN jobs j ON j.id = i.job_id WHERE i.id = ?`,
  ).get(itemId)) as BrowsedStory["item"] | undefined;
  if (item === undefined) return null;
  const relatives = (where: string) =>
    sql(
      `SELECT i.id, i.row_id AS rowId, i.state, p.field FROM parents p JOIN items i ON ${where} LIMIT 200`,
    ).all(itemId);
  const attempts = yield* sql(
    `SELECT number, run_id AS run, price, intended_at AS intendedAt, sent_at AS sentAt, answered_at AS answeredAt,
       body_sha256 AS bodySha256, outcome, verdict, status, message, task_id AS taskId, external_task_id AS externalTaskId,
       charged, created_at AS createdAt, completed_at AS completedAt
     FROM attempts WHERE item_id = ? ORDER BY number`,
  ).all(itemId);
  // At most the first 500.
  const events = yield* sql(
    `SELECT e.at, e.from_state AS "from", e.event, t.to_state AS "to", e.attempt, e.run_id AS run
     FROM events e JOIN transitions t USING (from_state, event) WHERE e.item_id = ? ORDER BY e.id LIMIT 500`,
  ).all(itemId);
  const files = yield* sql(`${fileColumns} AND o.item_id = ? ORDER BY o.number`).all(itemId);
  const parents = yield* relatives(
    "p.item_id = ? AND i.key = p.parent_key AND i.job_id = (SELECT job_id FROM items WHERE id = p.item_id)",
  );
  // Another job may have an item of the same key.
  const children = yield* relatives(
    "(p.parent_key, i.job_id) = (SELECT key, job_id FROM items WHERE id = ?) AND i.id = p.item_id",
  );
  return {
    item,
    attempts: attempts as BrowsedAttempt[],
    events: events as BrowsedStory["events"],
    files: files.map((row) => asFile(row as object)),
    parents: parents as BrowsedRelative[],
    children: children as BrowsedRelative[],
  };
}

function likeOf(text: string): string {
  return `%${text.replace(/[\\%_]/g, "\\$&")}%`;
}

/** The first run of a workspace has made its database, but not yet its tables. */
export class UnmadeDatabase extends Error {
  override readonly name = "UnmadeDatabase";
}

/** Opens an existing workspace of this machine for reading. Throws NewerDatabase, UnmadeDatabase, or SQLite's error. */
export function openBrowser(
  { stateFile, root }: { stateFile: string; root: string },
  clock: Clock,
): Browser & { close(): Promise<void> } {
  const db = openReadOnly(stateFile);
  try {
    db.pragma("busy_timeout = 5000");
    const found = Number(db.pragma("user_version", { simple: true }));
    if (found === 0) throw new UnmadeDatabase(`nothing has been run in ${root} yet`);
    if (found > workspaceMigrations.length)
      throw new NewerDatabase(
        `${stateFile} was written by a newer bulkgen: expected schema ${workspaceMigrations.length} or older, got ${found}; update bulkgen`,
      );
    refuseForeignCode(db, stateFile, workspaceMigrations);
    refuseStrangeNames(db, stateFile);
  } catch (error) {
    db.close();
    throw named(stateFile, error);
  }
  return { ...browserOn(sqliteDatabase(db, clock), root), close: async () => void db.close() };
}

/** Notices that a workspace has changed, whoever changed it, and that its database is another one. */
export interface ChangeWatch {
  /** Which file the database is; null if there is none. */
  file(): string | null;
  /** Differs from the answer before if something was committed since. */
  version(): string;
  close(): void;
}

export function watchChanges(stateFile: string): ChangeWatch {
  let opened: { db: Sqlite; file: string } | null = null;
  const fileNow = () => {
    const stat = statSync(stateFile, { throwIfNoEntry: false });
    return stat ? `${stat.dev}:${stat.ino}` : null;
  };
  const close = () => {
    opened?.db.close();
    opened = null;
  };
  return {
    file: fileNow,
    version() {
      const file = fileNow();
      if (file !== opened?.file) close();
      if (file === null) return "none";
      try {
        opened ??= { db: openReadOnly(stateFile), file };
        return `${file}:${opened.db.pragma("data_version", { simple: true })}`;
      } catch (error) {
        close();
        return `unreadable: ${(error as Error).message}`;
      }
    },
    close,
  };
}
