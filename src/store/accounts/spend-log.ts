import { dirname } from "node:path";
import type {
  ChargeEvidence,
  CounterReading,
  Hypothesis,
  LearnedCounting,
  ReconcileSettings,
  SpendLogEntry,
  Verdict,
} from "../../core/charges/readings.js";
import { foreignCredits, foreignRequests, newKey } from "../../core/charges/readings.js";
import { isNews, type Judgement, reconcile } from "../../core/charges/verdict.js";
import { type Credits, noCredits } from "../../core/money.js";
import type {
  Bounds,
  Counters,
  LoggedAnswer,
  LoggedIntent,
  LoggedPoll,
  OpenEntry,
  PaidAttempt,
  PaidElsewhere,
  SpendLogOwner,
} from "../../core/ports/spend-log.js";
import { dayMs } from "../../core/quota/quota.js";
import type { Database, Queries, Script } from "../script.js";
import { costOf } from "./accounts-schema.js";
import { countedOf } from "./foreign-requests.js";
import { remainingWithin } from "./spending.js";

/** Readings that are kept for one judgement; the oldest ones after the baseline are the least useful. */
const readingsMax = 60;

/**
 * The spend log of one key: every paid request that this machine has sent with it, from any workspace, and the key's
 * counters as GET me showed them. Every method is one transaction.
 */
export type SpendLog = ReturnType<typeof spendLogOf>;

/** The spend log of one key, for one workspace. */
export function spendLogOf({ sql, atomic, read, clock }: Database, owner: SpendLogOwner) {
  const { origin, fingerprint, workspace } = owner;

  function* intend({ itemKey, price, at }: LoggedIntent): Script<number> {
    yield* advance(sql);
    return yield* sql(
      `INSERT INTO spend_log (id, origin, fingerprint, workspace, item_key, price, intended_seq, intended_at, sent_at)
       VALUES (max(?, 1 + coalesce((SELECT max(id) FROM spend_log), 0)), ?, ?, ?, ?, ?, ${position}, ?, ?)`,
    ).insert(
      firstNumber(clock.now()),
      origin,
      fingerprint,
      workspace,
      itemKey,
      price,
      clock.now(),
      Math.round(at),
    );
  }

  function* evidenceOf(settings: ReconcileSettings): Script<ChargeEvidence | null> {
    const key = (yield* sql("SELECT * FROM keys WHERE origin = ? AND fingerprint = ?").get(
      origin,
      fingerprint,
    )) as SpendLogKeyRow | undefined;
    if (!key || key.baseline === null) return null;
    const [baseline, ...readings] = yield* readingsFrom(sql, owner, key.baseline);
    if (!baseline) throw new Error(`the spend log's baseline ${key.baseline} is gone`);
    const entries = (yield* entriesSince(sql, owner, baseline)).map(asEntry);
    return { ...asLearned(key), baseline, readings, entries, settings, now: clock.now() };
  }

  /** What was charged elsewhere: since the baseline, from when that is, and in all. */
  function* foreignOf(
    settings: ReconcileSettings,
  ): Script<{ total: number; sinceBaseline: Credits; at: number }> {
    const evidence = yield* evidenceOf(settings);
    const before = Number(
      (yield* sql("SELECT foreign_credits FROM keys WHERE origin = ? AND fingerprint = ?").value(
        origin,
        fingerprint,
      )) ?? 0,
    );
    const all = evidence === null ? noCredits : foreignCredits(evidence);
    const sinceBaseline = Math.max(
      0,
      all - (yield* atOtherAddresses(sql, owner, evidence?.baseline.seq ?? 0)),
    ) as Credits;
    return { total: before + sinceBaseline, sinceBaseline, at: evidence?.baseline.at ?? clock.now() };
  }

  return {
    /** Records a POST before it is sent, and before it is recorded anywhere else. Returns the number of its entry. */
    intend: async (intent: LoggedIntent): Promise<number> => atomic(() => intend(intent), { part: {} }),

    /** Does what `intend` does, unless the limits do not cover it, counting what others have spent since: then null. */
    intendWithin: async (bounds: Bounds, intent: LoggedIntent): Promise<number | null> =>
      atomic(function* () {
        const room = yield* remainingWithin(sql, yield* accountOf(sql, owner), bounds);
        return room !== null && intent.price > room ? null : yield* intend(intent);
      }),

    /** Records the outcome of the POST. */
    answered: async (entry: number, answer: LoggedAnswer): Promise<void> =>
      atomic(
        function* () {
          const { outcome } = answer;
          const accepted = outcome === "accepted";
          yield* advance(sql);
          yield* sql(
            `UPDATE spend_log SET outcome = ?, complete_error = ?, charged = ?, task = ?, task_id = ?, ended_seq = ${position}, ended_at = ?
           WHERE id = ?`,
          ).run(
            outcome,
            outcome === "unknown" && answer.completeError ? 1 : 0,
            accepted ? answer.charged : null,
            accepted ? "open" : null,
            accepted ? (answer.taskId ?? null) : null,
            clock.now(),
            entry,
          );
        },
        { part: {} },
      ),

    /**
     * The same POST is sent once more: until `answered` it is in flight again, and nothing that was read before counts for it.
     * False if it has an answer by now, or is proven not charged, so that its item is bought anew: then it must not be sent.
     */
    repeats: async (entry: number): Promise<boolean> =>
      atomic(function* () {
        const may = "id = ? AND outcome = 'unknown' AND verdict IS DISTINCT FROM 'not_charged'";
        if ((yield* sql(`SELECT 1 FROM spend_log WHERE ${may}`).get(entry)) === undefined) return false;
        yield* advance(sql);
        yield* sql(`UPDATE spend_log SET repeated_seq = ${position} WHERE id = ?`).run(entry);
        yield* sql(
          `UPDATE spend_log SET outcome = NULL, complete_error = 0, ended_seq = NULL, ended_at = NULL
           WHERE id = ? AND verdict IS NULL`,
        ).run(entry);
        return true;
      }),

    /** Records a poll of the task of an accepted POST. */
    polled: async (entry: number, poll: LoggedPoll): Promise<void> =>
      atomic(
        function* () {
          const charge = { open: "", completed: ", charged = coalesce(?, charged)", failed: ", kept = ?" };
          yield* advance(sql);
          yield* sql(
            `UPDATE spend_log SET polled_seq = ${position}, polled_at = ?, task = ?, task_ended_at = ?${charge[poll.task]} WHERE id = ?`,
          ).run(
            clock.now(),
            poll.task,
            ...(poll.task === "open" ? [null] : [poll.endedAt, poll.charged]),
            entry,
          );
        },
        { part: {} },
      ),

    /** Records a counter reading, taken while no POST of the key was in flight in any process. Returns its position. */
    read: async ({ used, servedAt, ...counters }: Counters): Promise<number> =>
      atomic(function* () {
        const { requests, sent, over } = yield* countedOf(sql, owner, counters);
        yield* advance(sql);
        const seq = yield* lastSeq(sql);
        const reading = yield* sql(
          `INSERT INTO readings (origin, fingerprint, seq, at, served_at, used, requests, sent, over)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        ).insert(origin, fingerprint, seq, clock.now(), servedAt, used, requests, sent, over);
        // Tasks that the spend log does not know may be open then, and their refunds would hide a charge.
        const isUsedBefore = foreignRequests(newKey, { requests, sent }) > 0;
        yield* sql(
          "UPDATE keys SET baseline = ?, foreign_at = ? WHERE origin = ? AND fingerprint = ? AND baseline IS NULL",
        ).run(reading, isUsedBefore ? (servedAt ?? clock.now()) : null, origin, fingerprint);
        yield* forget(sql, owner);
        return seq;
      }),

    /** The last position in the spend log, which grows with every write of any process. */
    seq: (): Promise<number> => read(() => lastSeq(sql)),

    /** Everything that a judgement needs; null while there is no reading. */
    evidence: async (settings: ReconcileSettings): Promise<ChargeEvidence | null> =>
      atomic(() => evidenceOf(settings)),

    /**
     * What the key was charged for requests that this machine did not send, since this workspace last bought with it
     * (`since`, UTC ms): the least that the counters show.
     */
    foreign: async (settings: ReconcileSettings): Promise<{ credits: Credits; since: number }> =>
      atomic(function* () {
        const { total, sinceBaseline, at } = yield* foreignOf(settings);
        const known = (yield* sql(
          "SELECT credits, at FROM foreign_known WHERE workspace = ? AND origin = ? AND fingerprint = ?",
        ).get(workspace, origin, fingerprint)) as { credits: number; at: number } | undefined;
        if (known === undefined) return { credits: sinceBaseline, since: at };
        return { credits: Math.max(0, total - known.credits) as Credits, since: known.at };
      }),

    /** This workspace buys, and knows of what was charged elsewhere until now. */
    knowForeign: async (settings: ReconcileSettings): Promise<void> =>
      atomic(function* () {
        const { total } = yield* foreignOf(settings);
        yield* sql(
          `INSERT INTO foreign_known (workspace, origin, fingerprint, credits, at) VALUES (?, ?, ?, ?, ?)
           ON CONFLICT (workspace, origin, fingerprint) DO UPDATE SET credits = excluded.credits, at = excluded.at`,
        ).run(workspace, origin, fingerprint, total, clock.now());
      }),

    /**
     * Stores a judgement and starts again from its baseline. Returns false, and stores nothing, if the spend log has
     * grown past `seq`: the judgement would overwrite what another process has found since.
     */
    keep: async (judgement: Judgement, seq: number): Promise<boolean> =>
      atomic(function* () {
        const isNewest = (yield* lastSeq(sql)) === seq;
        if (isNewest) yield* keep(sql, owner, judgement);
        return isNewest;
      }),

    /**
     * Judges by what the spend log has, and stores the judgement, while no process can write; null while there is no
     * reading. With many paid requests all writers wait for long.
     */
    judgeAlone: async (
      settings: ReconcileSettings,
    ): Promise<{ evidence: ChargeEvidence; judgement: Judgement } | null> =>
      atomic(function* () {
        const evidence = yield* evidenceOf(settings);
        if (evidence === null) return null;
        const judgement = reconcile(evidence);
        if (isNews(judgement, evidence)) yield* keep(sql, owner, judgement);
        return { evidence, judgement };
      }),

    /** An entry of any key; null if the spend log does not have it. */
    entry: (
      entry: number,
    ): Promise<{
      ownKey: boolean;
      verdict: Verdict | null;
      evidence: string | null;
      task: "open" | "completed" | "failed" | null;
    } | null> =>
      read(function* () {
        const row = (yield* sql("SELECT * FROM spend_log WHERE id = ?").get(entry)) as EntryRow | undefined;
        if (!row) return null;
        const { verdict, evidence, task } = row;
        return { ownKey: row.fingerprint === fingerprint, verdict, evidence, task };
      }),

    /** The folder of another workspace whose request made this task, with any key of the service; null if none is recorded. */
    otherOwner: (taskId: string): Promise<string | null> =>
      read(function* () {
        // Every entry is looked through: people ask this rarely, and an index would cost each paid request something.
        const row = yield* sql(
          `SELECT l.workspace, w.root FROM spend_log l LEFT JOIN workspaces w ON w.name = l.workspace
           WHERE l.origin = ? AND l.task_id = ? AND l.workspace <> ? LIMIT 1`,
        ).get(origin, taskId, workspace);
        return row === undefined ? null : rootIn(row as Placed);
      }),

    /** Entries of this workspace that have no answer yet, or whose task has not ended yet. */
    open: (): Promise<OpenEntry[]> =>
      read(function* () {
        const rows = (yield* sql(
          `SELECT id AS entry, intended_at AS intendedAt, outcome IS NOT NULL AS answered FROM spend_log WHERE workspace IN (${inThisPlace}) AND (outcome IS NULL OR task = 'open') ORDER BY id`,
        ).all({ workspace })) as OpenRow[];
        return rows.map((row) => ({ ...row, answered: row.answered === 1 }));
      }),

    /**
     * Entries of this workspace, and of any that was in its place before, sent at `since` (UTC ms) or later with any key
     * of the service, that were or may have been charged and whose end is not recorded: no answer yet, no answer at all,
     * or the task is still open. Oldest first.
     */
    unended: (since: number): Promise<PaidAttempt[]> =>
      read(function* () {
        const rows = (yield* sql(unendedSince).all({ origin, workspace, since })) as UnendedRow[];
        return rows.map((row) => ({ ...row, answered: row.answered === 1 }));
      }),

    /**
     * The newest entry of this workspace, made after `since` (UTC ms) with any key of any service, that was or may have
     * been charged when its answer came; null if there is none.
     */
    newestPaid: (since: number): Promise<Omit<PaidAttempt, "intendedAt" | "answered"> | null> =>
      read(function* () {
        const row = yield* sql(newestPaidSince).get({ workspace, first: firstNumber(since) });
        return (row as Omit<PaidAttempt, "intendedAt" | "answered"> | undefined) ?? null;
      }),

    /**
     * What other workspaces have paid for, or may have, since then (UTC ms) with any key of the service; with `own`, what
     * this one has paid for as well. Page by page: it may be more than fits into memory.
     */
    async *paidElsewhere(since: number, own = false): AsyncGenerator<readonly PaidElsewhere[], void> {
      for (let after = firstNumber(since); ; ) {
        const values = { origin, workspace: own ? "" : workspace, after };
        const page = await read(() => sql(elsewherePage).all(values));
        const rows = page as ElsewhereRow[];
        if (rows.length === 0) return;
        yield rows.map((row) => ({ ...row, root: rootIn(row), isInDoubt: row.isInDoubt === 1 }));
        after = rows.at(-1)?.entry ?? after;
      }
    },
  };
}

function* accountOf(sql: Queries, { origin, fingerprint }: SpendLogOwner): Script<number> {
  const row = yield* sql("SELECT account_id AS id FROM keys WHERE origin = ? AND fingerprint = ?").get(
    origin,
    fingerprint,
  );
  return (row as { id: number }).id;
}

/** The last position in the spend log, over all keys. */
export function* lastSeq(sql: Queries): Script<number> {
  return (yield* sql("SELECT last FROM sequence").value()) as number;
}

/** Makes the next position. */
function* advance(sql: Queries): Script<void> {
  yield* sql("UPDATE sequence SET last = last + 1").run();
}

/** The last position, as a part of a query. */
const position = "(SELECT last FROM sequence)";

/** The baseline and what came after it, oldest first. */
function* readingsFrom(
  sql: Queries,
  { origin, fingerprint }: SpendLogOwner,
  baseline: number,
): Script<CounterReading[]> {
  const rows = (yield* sql(
    "SELECT * FROM readings WHERE origin = ? AND fingerprint = ? AND id >= ? ORDER BY seq",
  ).all(origin, fingerprint, baseline)) as ReadingRow[];
  return rows.map(asReading);
}

const ofKey = "origin = @origin AND fingerprint = @fingerprint";
const entryIds = (condition: string) => `SELECT id FROM spend_log WHERE ${ofKey} AND ${condition}`;
const relevantEntries = `
  SELECT * FROM spend_log WHERE id IN (
    ${entryIds("intended_seq > @seq")}
    UNION ${entryIds("(outcome IS NULL OR (outcome = 'unknown' AND verdict IS NULL))")}
    UNION ${entryIds("repeated_seq > @seq")}
    UNION ${entryIds("task = 'open'")}
    UNION ${entryIds("task = 'failed' AND max(polled_at, sent_at) > @recent")}
    UNION ${entryIds("outcome = 'unknown' AND verdict IN ('charged', 'undecided') AND max(ended_at, sent_at) > @recent")})
  ORDER BY id`;

/** Everything that may have moved the counters since the baseline, or is not settled. */
function* entriesSince(
  sql: Queries,
  { origin, fingerprint }: SpendLogOwner,
  baseline: CounterReading,
): Script<EntryRow[]> {
  // If one of the clocks was wrong, then or at an entry, more entries than necessary are examined.
  const began = Math.min(baseline.at, baseline.servedAt ?? baseline.at);
  const values = { origin, fingerprint, seq: baseline.seq, recent: began - dayMs };
  return (yield* sql(relevantEntries).all(values)) as EntryRow[];
}

/** The workspace, and those whose state was where its state is: their folder was deleted, and was made anew. */
const inThisPlace = `
  SELECT @workspace UNION SELECT name FROM workspaces WHERE state = (SELECT state FROM workspaces WHERE name = @workspace)`;

/**
 * Each part finds its few entries with its own index, however many others there are; the unary signs keep SQLite from
 * using another index.
 */
const unendedSince = `
  SELECT id AS entry, item_key AS itemKey, intended_at AS intendedAt, sent_at AS sentAt, task_id AS taskId,
    outcome IS NOT NULL AS answered
  FROM spend_log WHERE +origin = @origin AND +workspace IN (${inThisPlace}) AND +sent_at >= @since AND id IN (
    SELECT id FROM spend_log WHERE workspace IN (${inThisPlace}) AND (outcome IS NULL OR task = 'open')
    UNION SELECT id FROM spend_log WHERE origin = @origin AND (outcome IS NULL OR (outcome = 'unknown' AND verdict IS NULL))
    UNION SELECT id FROM spend_log WHERE origin = @origin AND outcome = 'unknown' AND verdict IN ('charged', 'undecided'))
  ORDER BY id`;

/** Entries are numbered by their time, and the newest are looked through first. */
const newestPaidSince = `
  SELECT id AS entry, item_key AS itemKey, sent_at AS sentAt, task_id AS taskId FROM spend_log
  WHERE id > @first AND +workspace = @workspace AND outcome IN ('accepted', 'unknown') ORDER BY id DESC LIMIT 1`;

const elsewherePage = `
  SELECT id AS entry, item_key AS itemKey, sent_at AS sentAt, workspace, root,
    CASE WHEN outcome = 'accepted' THEN 0 ELSE 1 END AS isInDoubt
  FROM spend_log LEFT JOIN workspaces ON name = workspace
  WHERE id > @after AND +origin = @origin AND workspace <> @workspace AND (outcome IS NULL
    OR (outcome = 'accepted' AND task <> 'failed') OR (outcome = 'unknown' AND verdict IS DISTINCT FROM 'not_charged'))
  ORDER BY id LIMIT 10000`;

type ElsewhereRow = Omit<PaidElsewhere, "isInDoubt" | "root"> & Placed & { isInDoubt: number };

/** A workspace, and where it was last used. */
interface Placed {
  workspace: string;
  root: string | null;
}

/** Before version 3 the name was the state file, which is in `.bulkgen` in its folder. */
function rootIn({ workspace, root }: Placed): string {
  return root ?? dirname(dirname(workspace));
}

type OpenRow = Omit<OpenEntry, "answered"> & { answered: number };

type UnendedRow = Omit<PaidAttempt, "answered"> & { answered: number };

/** What this machine has bought with the key at other addresses, which may be the same service's. */
function* atOtherAddresses(
  sql: Queries,
  { origin, fingerprint }: SpendLogOwner,
  after: number,
  until = Number.MAX_SAFE_INTEGER,
): Script<number> {
  const others = (yield* sql("SELECT origin FROM keys WHERE fingerprint = ? AND origin <> ?").all(
    fingerprint,
    origin,
  )) as { origin: string }[];
  let credits = 0;
  for (const other of others)
    credits += Number(
      yield* sql(
        `SELECT coalesce(sum(${costOf("spend_log")}), 0) FROM spend_log
         WHERE origin = ? AND fingerprint = ? AND intended_seq > ? AND intended_seq <= ?`,
      ).value(other.origin, fingerprint, after, until),
    );
  return credits;
}

/** What was charged elsewhere between the old baseline and the new one. */
function* foreignUntil(
  sql: Queries,
  owner: SpendLogOwner,
  foreign: Credits,
  baseline: number,
): Script<number> {
  const { origin, fingerprint } = owner;
  const seqOf = "SELECT seq FROM readings WHERE id =";
  const old = yield* sql(`${seqOf} (SELECT baseline FROM keys WHERE origin = ? AND fingerprint = ?)`).value(
    origin,
    fingerprint,
  );
  const now = yield* sql(`${seqOf} ?`).value(baseline);
  return Math.max(0, foreign - (yield* atOtherAddresses(sql, owner, Number(old ?? 0), Number(now ?? 0))));
}

function* keep(sql: Queries, owner: SpendLogOwner, judgement: Judgement): Script<void> {
  const { origin, fingerprint } = owner;
  const { verdicts, hypotheses, trusted, foreignAt, baseline, foreign = noCredits } = judgement;
  for (const { entry, verdict, evidence, seq } of verdicts) {
    yield* sql(
      "UPDATE spend_log SET verdict = ?, evidence = ?, verdict_seq = ? WHERE id = ? AND verdict IS NULL",
    ).run(verdict, evidence, seq, entry);
  }
  const ofForeign = foreign > 0 && baseline !== null ? yield* foreignUntil(sql, owner, foreign, baseline) : 0;
  // Other processes that wait for a verdict see by this that there is one.
  yield* advance(sql);
  yield* sql(
    `UPDATE keys SET hypotheses = ?, trusted = ?, foreign_at = ?, baseline = coalesce(?, baseline),
       foreign_credits = foreign_credits + ? WHERE origin = ? AND fingerprint = ?`,
  ).run(hypotheses.join(","), trusted ? 1 : 0, foreignAt, baseline, ofForeign, origin, fingerprint);
}

const uselessReadings = `
  DELETE FROM readings WHERE ${ofKey}
    AND id <> (SELECT baseline FROM keys WHERE ${ofKey})
    AND (id < (SELECT baseline FROM keys WHERE ${ofKey})
      OR id NOT IN (SELECT id FROM readings WHERE ${ofKey} ORDER BY seq DESC LIMIT ${readingsMax}))`;

/** Readings before the baseline are useless, and so are more readings than a judgement can use. */
function* forget(sql: Queries, { origin, fingerprint }: SpendLogOwner): Script<void> {
  yield* sql(uselessReadings).run({ origin, fingerprint });
}

/** The rows of the spend log's tables, and the records made from them. */

export interface SpendLogKeyRow {
  baseline: number | null;
  hypotheses: string;
  trusted: number;
  foreign_at: number | null;
}

function asLearned(row: SpendLogKeyRow): LearnedCounting {
  return {
    hypotheses: row.hypotheses === "" ? [] : (row.hypotheses.split(",") as Hypothesis[]),
    trusted: row.trusted === 1,
    foreignAt: row.foreign_at,
  };
}

export interface ReadingRow {
  id: number;
  seq: number;
  at: number;
  served_at: number | null;
  used: number;
  requests: number;
  sent: number;
  over: number;
}

function asReading({ id, seq, at, served_at, used, requests, sent, over }: ReadingRow): CounterReading {
  return { id, seq, at, servedAt: served_at, used: used as Credits, requests, sent, over };
}

export interface EntryRow {
  id: number;
  fingerprint: string;
  price: number;
  intended_seq: number;
  sent_at: number;
  repeated_seq: number | null;
  ended_seq: number | null;
  ended_at: number | null;
  outcome: SpendLogEntry["outcome"];
  complete_error: number;
  charged: number | null;
  task: SpendLogEntry["task"];
  kept: number;
  task_ended_at: number | null;
  polled_seq: number;
  polled_at: number | null;
  verdict: Verdict | null;
  verdict_seq: number | null;
  evidence: string | null;
}

function asEntry(row: EntryRow): SpendLogEntry {
  return {
    id: row.id,
    intendedSeq: row.intended_seq,
    sentAt: row.sent_at,
    repeatedSeq: row.repeated_seq,
    endedSeq: row.ended_seq,
    endedAt: row.ended_at,
    price: row.price as Credits,
    outcome: row.outcome,
    completeError: row.complete_error === 1,
    charged: row.charged as Credits | null,
    task: row.task,
    kept: row.kept as Credits,
    taskEndedAt: row.task_ended_at,
    polledSeq: row.polled_seq,
    polledAt: row.polled_at,
    verdict: row.verdict,
    verdictSeq: row.verdict_seq,
  };
}

/** The last time that entries are numbered by (UTC ms): beyond it numbers would not be exact. */
const numberedUntilMs = 8e12;

/**
 * The lowest number for an entry made now. Workspaces know their entries by number, and a spend log may be lost,
 * restored from a copy, or left behind on another machine: a number must never come to mean somebody else's request.
 */
function firstNumber(now: number): number {
  return Math.min(Math.max(0, now), numberedUntilMs) * 1_000;
}
