import { type Credits, minus, plus } from "../../core/money.js";
import type { BalanceMark, Bounds, TakenCredits } from "../../core/ports/spend-log.js";
import type { Day } from "../../core/quota/quota.js";
import type { Queries, Script } from "../script.js";
import { costOf, seqBlock, timeBlockMs } from "./accounts-schema.js";

const cost = costOf("spend_log");

const ofAccount = (table: string) =>
  `FROM keys CROSS JOIN ${table} USING (origin, fingerprint) WHERE account_id = @accountId`;
/** The kept sums of whole blocks. */
const sumOf = (kind: "time" | "seq", blocks: string) =>
  `(SELECT coalesce(sum(credits), 0) ${ofAccount("spent")} AND kind = '${kind}' AND ${blocks})`;
/** The requests of a part of a block; the unary plus leaves the index to the other condition. */
const costBetween = (rows: string) =>
  `(SELECT coalesce(sum(${cost}), 0) FROM spend_log JOIN keys USING (origin, fingerprint) WHERE ${rows} AND +account_id = @accountId)`;

/**
 * A request with a time in the future was sent while a clock was ahead, perhaps today. It also counts on the day on which
 * it was found.
 */
const spent = `
  SELECT
    ${sumOf("time", `block >= @firstWhole / ${timeBlockMs} AND block < @to / ${timeBlockMs}`)}
    + ${costBetween("sent_at >= @from AND sent_at < min(@to, @firstWhole)")}
    + ${costBetween(`sent_at >= max(@firstWhole, @to / ${timeBlockMs} * ${timeBlockMs}) AND sent_at < @to`)}
    + ${costBetween("sent_at >= @to AND (found_at IS NULL OR found_at >= @from)")} AS credits,
    (SELECT count(*) FILTER (WHERE found_at IS NULL OR found_at >= @to)
      FROM spend_log JOIN keys USING (origin, fingerprint) WHERE sent_at >= @to AND +account_id = @accountId) AS found`;

const find = `
  UPDATE spend_log SET found_at = @to - 1
  WHERE sent_at >= @to AND (found_at IS NULL OR found_at >= @to)
    AND (origin, fingerprint) IN (SELECT origin, fingerprint FROM keys WHERE account_id = @accountId)`;

/**
 * What the paid requests that were sent on a day have cost or may have cost, over all keys of the account and all
 * workspaces. Call it inside a transaction.
 */
export function* spentOn(sql: Queries, accountId: number, day: Day): Script<Credits> {
  const { credits, hasNew } = yield* spentSoFar(sql, accountId, day);
  if (hasNew) yield* sql(find).run({ accountId, to: day.to });
  return credits;
}

/** The recorded spending of a day, and whether a request with a time in the future is to be marked as found. */
export function* spentSoFar(
  sql: Queries,
  accountId: number,
  { from, to }: Day,
): Script<{ credits: Credits; hasNew: boolean }> {
  const firstWhole = Math.ceil(from / timeBlockMs) * timeBlockMs;
  const days = { accountId, from, to, firstWhole };
  const { credits, found } = (yield* sql(spent).get(days)) as { credits: Credits; found: number };
  return { credits, hasNew: found > 0 };
}

/** Requests answered before the balance reading are in it, and unanswered ones whose charge a reading by then has shown. */
const isIn = `
  coalesce(outcome <> 'unknown' AND ended_seq <= @seq, FALSE)
    OR coalesce(verdict = 'charged' AND (verdict_seq <= @seq OR verdict_seq = @reading), FALSE)`;

// SQLite is given numbers with a fraction.
const blockOfSeq = `CAST(@seq / ${seqBlock} AS INTEGER)`;

const since = `
  SELECT ${sumOf("seq", `block > ${blockOfSeq}`)}
    + (SELECT coalesce(sum(${cost}), 0) ${ofAccount("spend_log")}
        AND intended_seq > @seq AND intended_seq < (${blockOfSeq} + 1) * ${seqBlock})`;

const begunBefore = `
  SELECT spend_log.id ${ofAccount("spend_log")} AND sent_at > @dayBefore AND intended_seq <= @seq AND NOT (${isIn})`;

const costOfThese = `
  SELECT coalesce(sum(${cost}), 0) FROM spend_log WHERE id IN (SELECT CAST(value AS INTEGER) FROM json_each(@ids)) AND NOT (${isIn})`;

/**
 * Requests that had started before a balance was read and are not included in it: found once for each reading, because
 * they only become fewer.
 */
const begun = new WeakMap<Queries, { name: string; ids: string }>();

function* begunBy(sql: Queries, accountId: number, mark: BalanceMark): Script<string> {
  const name = JSON.stringify([accountId, mark]);
  const known = begun.get(sql);
  if (known?.name === name) return known.ids;
  const rows = (yield* sql(begunBefore).all({ accountId, ...mark })) as { id: number }[];
  const ids = JSON.stringify(rows.map(({ id }) => id));
  begun.set(sql, { name, ids });
  return ids;
}

/** What paid requests have taken or may have taken from a balance since it was read, over all keys and workspaces. */
export function* takenFrom(sql: Queries, accountId: number, mark: BalanceMark): Script<TakenCredits> {
  const { seq, reading } = mark;
  return {
    since: (yield* sql(since).value({ accountId, seq })) as Credits,
    before: (yield* sql(costOfThese).value({
      seq,
      reading,
      ids: yield* begunBy(sql, accountId, mark),
    })) as Credits,
  };
}

/** The credits that the caps leave for another paid request of the account; null without caps. */
export function* remainingWithin(
  sql: Queries,
  accountId: number,
  { daily, kept }: Bounds,
): Script<Credits | null> {
  const rooms: Credits[] = [];
  if (daily !== null) rooms.push(minus(daily.most, yield* spentOn(sql, accountId, daily.day)));
  if (kept !== null) {
    const { since, before } = yield* takenFrom(sql, accountId, kept.mark);
    rooms.push(minus(kept.most, plus(since, before)));
  }
  return rooms.length === 0 ? null : (Math.min(...rooms) as Credits);
}
