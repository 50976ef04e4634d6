import { statSync } from "node:fs";
import type { Clock } from "../../clock.js";
import { type ExitName, exitCode } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import { type Credits, minus, toNumber } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Amount } from "../../core/ports/accounts.js";
import type { RunEnding } from "../../core/ports/store.js";
import type { FileDocument } from "../../documents/file.js";
import type { ItemDocument } from "../../documents/item.js";
import type { ItemStory, Standing } from "../../documents/page.js";
import type { RunDocument } from "../../documents/run.js";
import { named, type Sqlite } from "../../sqlite.js";
import { iso, isoOrNull } from "../../text/times.js";
import { sqliteDatabase } from "../on-sqlite.js";
import { NewerDatabase, openReadOnly, refuseForeignCode } from "../open.js";
import type { Database, Queries, Script } from "../script.js";
import { isLost, isUndecided } from "../workspace/attempts/lost-requests.js";
import { absolutePath } from "../workspace/own-paths.js";
import { refuseStrangeNames } from "../workspace/workspace.js";
import { workspaceMigrations } from "../workspace/workspace-schema.js";

/** The document of a run without what the store does not know: the job's folder, and whether a process works on the run. */
export type BrowsedRun = Omit<RunDocument, "alive" | "folder"> & {
  outFolder: string;
  accountId: string;
  options: RunOptions;
};

/** The document of a file without the job's folder, which is below `outFolder`. */
export type BrowsedFile = Omit<FileDocument, "folder"> & {
  outFolder: string;
  /** The run that its item is in. */
  itemRunId: number | null;
  /** The task that made it; null for a file that was made elsewhere. */
  taskId: string | null;
};

export interface WantedItems {
  runId: number;
  state: ItemState | null;
  /** Words of the row id, the prompt or the model; empty for all. */
  text: string;
  from: number;
  limit: number;
}

export interface WantedFiles {
  text: string;
  before: number | null;
  limit: number;
  run: number | null;
}

export type WaitingKind = keyof Standing["waiting"];

/** The SQL of each field: a field that is added to a document does not compile until its SQL is here. */
type Columns<Row> = Readonly<Record<keyof Row, string>>;

function selected(columns: Readonly<Record<string, string>>): string {
  return Object.entries(columns)
    .map(([field, query]) => `${query} AS "${field}"`)
    .join(", ");
}

/** The columns of a run, before `asRun` makes the fields of the document from them. */
type RunRow = Pick<
  BrowsedRun,
  | "run"
  | "job"
  | "manifest"
  | "edition"
  | "state"
  | "origin"
  | "requests"
  | "awaiting"
  | "outFolder"
  | "accountId"
> & {
  /** JSON. */
  options: string;
  ending: string | null;
  counts: string | null;
  startedAt: number;
  endedAt: number | null;
  exit: ExitName | null;
  charged: Credits;
  pending: Credits;
  /** At most this was charged for requests whose items were submitted again or skipped; a part of `pending`. */
  lost: Credits;
};

const runColumns: Columns<RunRow> = {
  run: "r.id",
  job: "j.name",
  manifest: "r.manifest",
  edition: "r.edition",
  state: "r.state",
  startedAt: "r.started_at",
  endedAt: "r.ended_at",
  exit: "r.exit",
  ending: "r.ending",
  requests: "r.requests",
  origin: "r.origin",
  counts:
    "(SELECT json_group_array(json_object('state', state, 'items', items)) FROM run_states s WHERE s.run_id = r.id)",
  awaiting:
    "(SELECT count(*) FROM items i WHERE i.run_id = r.id AND i.approval = 'waiting' AND i.state = 'archived')",
  charged: "(SELECT coalesce(sum(charged), 0) FROM run_spending s WHERE s.run_id = r.id)",
  pending: "(SELECT coalesce(sum(pending), 0) FROM run_spending s WHERE s.run_id = r.id)",
  // Few requests are lost, and only these are looked through: the sign keeps SQLite from reading all attempts of a run.
  lost: `(SELECT coalesce(sum(a.price), 0) FROM attempts a JOIN items i ON i.id = a.item_id
     WHERE +a.run_id = r.id AND ${isLost("a")} AND NOT ${isUndecided("a", "i")})`,
  outFolder: "r.out_folder",
  accountId: "r.account_id",
  options: "r.options",
};
const selectRuns = `SELECT ${selected(runColumns)} FROM runs r JOIN jobs j ON j.id = r.job_id`;

const isPicked = "EXISTS (SELECT 1 FROM picks p WHERE p.item_id = i.id)";

const itemColumns: Columns<ItemDocument> = {
  id: "i.id",
  run: "i.run_id",
  job: "j.name",
  key: "i.key",
  rowId: "i.row_id",
  rowNumber: "i.row_number",
  model: "i.model",
  category: "i.category",
  prompt: "i.prompt",
  state: "i.state",
  failureKind: "i.failure_kind",
  note: "i.note",
  approval: "i.approval",
  price: "i.price",
  files: "(SELECT count(*) FROM outputs o WHERE o.item_id = i.id AND o.file IS NOT NULL)",
  mime: "(SELECT mime FROM outputs o WHERE o.item_id = i.id AND o.file IS NOT NULL ORDER BY number LIMIT 1)",
  picked: isPicked,
};
const fromItems = "FROM items i JOIN jobs j ON j.id = i.job_id";
const selectItems = `SELECT ${selected(itemColumns)} ${fromItems}`;

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

const fileColumns: Columns<BrowsedFile> = {
  job: "j.name",
  rowId: "i.row_id",
  model: "i.model",
  prompt: "i.prompt",
  output: "o.number",
  bytes: "o.bytes",
  sha256: "o.sha256",
  mime: "o.mime",
  savedAt: "o.saved_at",
  itemId: "o.item_id",
  key: "i.key",
  run: "r.id",
  file: "o.file",
  bucket: "o.bucket",
  approval: "i.approval",
  picked: isPicked,
  outFolder: "o.out_folder",
  itemRunId: "i.run_id",
  taskId: ofNewestTask("task_id"),
};
const selectFiles = `
  SELECT ${selected(fileColumns)}
  FROM outputs o JOIN items i ON i.id = o.item_id JOIN jobs j ON j.id = i.job_id JOIN runs r ON r.id = ${paidIn}
  WHERE o.file IS NOT NULL`;

function asRun(row: unknown, root: string): BrowsedRun {
  const { run, job, manifest, edition, state, origin, requests, awaiting, ...stored } = row as RunRow;
  const { exit, charged, pending, lost, accountId } = stored;
  const options = JSON.parse(stored.options) as RunOptions;
  const ending = JSON.parse(stored.ending ?? "null") as RunEnding | null;
  const counts = JSON.parse(stored.counts ?? "[]") as { state: ItemState; items: number }[];
  return {
    run,
    job,
    manifest: absolutePath(root, manifest),
    edition,
    state,
    beganBy: options.beganBy ?? null,
    startedAt: iso(stored.startedAt),
    endedAt: isoOrNull(stored.endedAt),
    exit: exit === null ? null : exitCode(exit),
    exitName: exit,
    stops: [...(ending?.reasons ?? [])],
    resumeAt: isoOrNull(ending?.resumeAt ?? null),
    after: ending?.after ?? null,
    requests,
    origin,
    counts: Object.fromEntries(counts.map((each) => [each.state, each.items])),
    awaiting,
    credits: { spent: toNumber(charged), pending: toNumber(minus(pending, lost)), lost: toNumber(lost) },
    cap: options.maxCredits === null ? null : toNumber(options.maxCredits),
    forecast: options.forecast ?? null,
    outFolder: absolutePath(root, stored.outFolder),
    accountId,
    options,
  };
}

function asItem<Document extends ItemDocument = ItemDocument>(row: unknown): Document {
  const { price, picked } = row as { price: Credits; picked: number };
  return { ...(row as Document), price: toNumber(price), picked: picked !== 0 };
}

type FileRow = Omit<BrowsedFile, "savedAt" | "picked"> & { savedAt: number; picked: number };

function asFile(row: unknown, root: string): BrowsedFile {
  const file = row as FileRow;
  return {
    ...file,
    savedAt: iso(file.savedAt),
    picked: file.picked !== 0,
    outFolder: absolutePath(root, file.outFolder),
  };
}

/**
 * A workspace page by page, for readers of a workspace that may have hundreds of runs and a hundred thousand items,
 * while other processes work in it. Each question is answered from an index or a maintained sum, except a search for
 * words, and the progress of a run, which reads the times of its items.
 */
export type Browser = ReturnType<typeof browserOn>;

/** The browser of a workspace in an open database of either kind; stored paths are relative to its folder `root`. */
export function browserOn({ sql, read }: Pick<Database, "sql" | "read">, root: string) {
  return {
    /** The newest runs first; with `before`, only runs with a lower number. */
    runs: (before: number | null, limit: number): Promise<BrowsedRun[]> =>
      read(function* () {
        const rows = yield* sql(`${selectRuns} WHERE r.id < ? ORDER BY r.id DESC LIMIT ?`).all(
          before ?? Number.MAX_SAFE_INTEGER,
          limit,
        );
        return rows.map((row) => asRun(row, root));
      }),

    run: (id: number): Promise<BrowsedRun | null> =>
      read(function* () {
        const row = yield* sql(`${selectRuns} WHERE r.id = ?`).get(id);
        return row === undefined ? null : asRun(row, root);
      }),

    /** Items in the order in which they were planned, and how many there are of them. */
    items: (wanted: WantedItems) => read(() => itemsPage(sql, wanted)),

    story: (itemId: number) => read(() => storyOf(sql, itemId, root)),

    /** Held items of all runs, failed items of unfinished work, or items that wait for approval: the newest runs first. */
    waiting: (what: WaitingKind, limit: number): Promise<{ items: ItemDocument[]; total: number }> =>
      read(function* () {
        const items = yield* sql(
          `${selectItems} WHERE ${waitingWhere[what]} ORDER BY i.run_id DESC, i.id LIMIT ?`,
        ).all(limit);
        return { items: items.map((row) => asItem(row)), total: yield* waitingCount(sql, what) };
      }),

    waitingCounts: (): Promise<Standing["waiting"]> =>
      read(function* () {
        return {
          held: yield* waitingCount(sql, "held"),
          failed: yield* waitingCount(sql, "failed"),
          approval: yield* waitingCount(sql, "approval"),
        };
      }),

    /** Archived files, the newest items first; with `before`, only items with a lower number. */
    files: ({ text, before, limit, run }: WantedFiles): Promise<BrowsedFile[]> =>
      read(function* () {
        const wheres = [
          "o.item_id < @before",
          ...(text === "" ? [] : [hasText]),
          ...(run === null ? [] : ["i.run_id = @run"]),
        ];
        const values = { before: before ?? Number.MAX_SAFE_INTEGER, limit, like: likeOf(text), run };
        const rows = yield* sql(
          `${selectFiles} AND ${wheres.join(" AND ")} ORDER BY o.item_id DESC, o.number LIMIT @limit`,
        ).all(values);
        return rows.map((row) => asFile(row, root));
      }),

    file: (itemId: number, output: number): Promise<BrowsedFile | null> =>
      read(function* () {
        const row = yield* sql(`${selectFiles} AND o.item_id = ? AND o.number = ?`).get(itemId, output);
        return row === undefined ? null : asFile(row, root);
      }),

    /** Items archived and credits spent in a run, per interval. */
    progress: (runId: number, stepMs: number): Promise<{ archived: Amount[]; credits: Amount[] }> =>
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
): Script<{ items: ItemDocument[]; total: number }> {
  const wheres = [
    "i.run_id = @runId",
    ...(state === null ? [] : [`i.state = '${state}'`]),
    ...(text === "" ? [] : [hasText]),
  ].join(" AND ");
  const values = { runId, from, limit, like: likeOf(text) };
  // The index of a run's items is in the order of their ids, so a page can be read without sorting.
  const items = yield* sql(
    `${selectItems} WHERE i.id IN (SELECT i.id FROM items i WHERE ${wheres} ORDER BY i.id LIMIT @limit OFFSET @from) ORDER BY i.id`,
  ).all(values);
  const counted =
    text === ""
      ? yield* sql(
          `SELECT coalesce(sum(items), 0) FROM run_states WHERE run_id = @runId ${state === null ? "" : `AND state = '${state}'`}`,
        ).value({ runId })
      : yield* sql(`SELECT count(*) FROM items i WHERE ${wheres}`).value({ runId, like: values.like });
  return { items: items.map((row) => asItem(row)), total: Number(counted) };
}

/** The item of a story without the addresses that the server of the page gives it. */
type ToldItem = Omit<ItemStory["item"], "src" | "thumbnail">;

const toldItemColumns: Columns<ToldItem> = {
  ...itemColumns,
  edition: "i.edition",
  variant: "i.variant",
  tries: "i.polls",
  nextAt: "i.next_at",
  params: "i.params",
  inputs: "i.inputs",
  cells: "i.cells",
  name: "i.name",
};

type AttemptRow = Omit<ItemStory["attempts"][number], "price" | "charged"> & {
  price: Credits;
  charged: Credits | null;
};

const attemptColumns: Columns<AttemptRow> = {
  number: "number",
  run: "run_id",
  price: "price",
  intendedAt: "intended_at",
  sentAt: "sent_at",
  answeredAt: "answered_at",
  bodySha256: "body_sha256",
  outcome: "outcome",
  verdict: "verdict",
  status: "status",
  message: "message",
  taskId: "task_id",
  externalTaskId: "external_task_id",
  charged: "charged",
  createdAt: "created_at",
  completedAt: "completed_at",
};

/** The whole story of an item, from row to file; null if there is no such item. */
function* storyOf(sql: Queries, itemId: number, root: string) {
  const item = yield* sql(`SELECT ${selected(toldItemColumns)} ${fromItems} WHERE i.id = ?`).get(itemId);
  if (item === undefined) return null;
  const relatives = (where: string) =>
    sql(
      `SELECT i.id, i.row_id AS rowId, i.state, p.field FROM parents p JOIN items i ON ${where} LIMIT 200`,
    ).all(itemId);
  const attempts = yield* sql(
    `SELECT ${selected(attemptColumns)} FROM attempts WHERE item_id = ? ORDER BY number`,
  ).all(itemId);
  // At most the first 500.
  const events = yield* sql(
    `SELECT e.at, e.from_state AS "from", e.event, t.to_state AS "to", e.attempt, e.run_id AS run
     FROM events e JOIN transitions t USING (from_state, event) WHERE e.item_id = ? ORDER BY e.id LIMIT 500`,
  ).all(itemId);
  const files = yield* sql(`${selectFiles} AND o.item_id = ? ORDER BY o.number`).all(itemId);
  const parents = yield* relatives(
    "p.item_id = ? AND i.key = p.parent_key AND i.job_id = (SELECT job_id FROM items WHERE id = p.item_id)",
  );
  // Another job may have an item of the same key.
  const children = yield* relatives(
    "(p.parent_key, i.job_id) = (SELECT key, job_id FROM items WHERE id = ?) AND i.id = p.item_id",
  );
  return {
    item: asItem<ToldItem>(item),
    attempts: (attempts as AttemptRow[]).map((attempt) => ({
      ...attempt,
      price: toNumber(attempt.price),
      charged: attempt.charged === null ? null : toNumber(attempt.charged),
    })),
    events: events as ItemStory["events"],
    files: files.map((row) => asFile(row, root)),
    parents: parents as ItemStory["parents"],
    children: children as ItemStory["children"],
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
