import { type ErrorFacts, errorFacts, errorWords, isOfModel } from "../api/error-words.js";
import { isStated, meaningOf, type Refusal, refusingStatuses, rowOf } from "../api/errors.js";
import { addressesIn, contentOf, outputsIn } from "../api/reading.js";
import { serviceTime } from "../api/times.js";
import { asRecord, parseJson } from "../api/values.js";
import { asCharge, asCredits, type Credits, noCredits } from "../core/money.js";
import type { Reply } from "../core/ports/send.js";
import { shortText } from "../text/terminal.js";

/**
 * What an answer to a paid request means. Only a complete answer that clearly refuses is a refusal, and a request is "not
 * sent" only if its headers never left this machine. Any answer that is not understood is unknown: it may be charged.
 */
export type GenerateOutcome =
  | {
      kind: "accepted";
      status: number;
      taskId: string;
      externalTaskId: string | null;
      charged: Credits | null;
      remaining: Credits | null;
    }
  /** `isStated`: the answer has a documented error code for its stop. */
  | ({
      kind: "refused";
      status: number;
      stop: Refusal;
      isStated: boolean;
      /** It is about the queue of this model alone: what its `Retry-After` says, if anything. */
      ofModel?: { retryAfter: string | null };
    } & ErrorFacts)
  | ({ kind: "rejected"; status: number } & ErrorFacts)
  | { kind: "not_sent"; reason: string }
  /** `code` is the service's own, from a complete answer. */
  | { kind: "unknown"; reason: string; status?: number; code?: string };

export function generateOutcome(reply: Reply): GenerateOutcome {
  if (reply.kind === "not_sent") return { kind: "not_sent", reason: reply.reason };
  if (reply.kind === "no_answer") {
    return { kind: "unknown", reason: `no answer: ${reply.reason}`, ...status(reply.status) };
  }
  const body = parseJson(reply.body);
  if (reply.status >= 200 && reply.status < 300) return accepted(reply, contentOf(body, ["task_id"]) ?? {});
  const facts = { ...errorFacts(body), ...pageIn(reply) };
  const { submit, stop } = meaningOf(reply.status);
  // An answer of an undocumented status that names a task is not clear: the task may exist.
  const isClear = refusingStatuses.includes(reply.status)
    ? taskIdIn(contentOf(body, ["task_id"]) ?? {}) === null
    : true;
  if (submit === "rejected" && isClear) return { kind: "rejected", status: reply.status, ...facts };
  if (submit === "refused" && stop !== null)
    return {
      kind: "refused",
      status: reply.status,
      stop,
      isStated: isStated(stop, facts.code),
      ...(stop === "pause" && isOfModel(body)
        ? { ofModel: { retryAfter: reply.headers["retry-after"] ?? null } }
        : {}),
      ...facts,
    };
  return {
    kind: "unknown",
    reason: `answer ${answerText(reply)}`,
    status: reply.status,
    ...(facts.code === null ? {} : { code: facts.code }),
  };
}

function accepted(reply: Answer, fields: Record<string, unknown>): GenerateOutcome {
  const { status } = reply;
  const taskId = taskIdIn(fields);
  if (taskId !== null)
    return {
      kind: "accepted",
      status,
      taskId,
      externalTaskId: isShort(fields.external_task_id) ? fields.external_task_id : null,
      charged: asCharge(fields.credits_consumed),
      remaining: asCredits(fields.credits_remaining),
    };
  const unreadable = fields.task_id;
  const odd =
    typeof unreadable === "string" && unreadable !== ""
      ? `it has ${unreadable.length} characters`
      : oddBody(reply);
  const said = odd ?? errorText(errorFacts(parseJson(reply.body)));
  return {
    kind: "unknown",
    reason: `answer ${status} without a readable task_id${followed(": ", said)}`,
    status,
  };
}

/** The task's id; null without a readable one. */
function taskIdIn({ task_id: id }: Record<string, unknown>): string | null {
  if (typeof id === "number" && Number.isSafeInteger(id) && id >= 0) return String(id);
  return isShort(id) && id !== "" ? id : null;
}

/** The title of a page that came in place of the service's JSON, or its beginning. */
function pageIn(reply: Answer): { message?: string } {
  const page = oddBody(reply);
  if (page === null || reply.body.trim() === "") return {};
  const [, title = ""] = /<(?:title|h1)[^>]{0,100}>([^<]{1,200})/i.exec(reply.body.slice(0, 4_000)) ?? [];
  return {
    message: title.trim() === "" ? page : `a page titled "${shortText(title, addressCharactersMax)}"`,
  };
}

/** Ids are kept in receipts and databases and sent in addresses; the service's are UUIDs. */
const taskIdCharactersMax = 1_024;

function isShort(value: unknown): value is string {
  return typeof value === "string" && value.length <= taskIdCharactersMax;
}

/** What an answer to a poll means. An answer that says nothing about the task leaves it alive. */
export type TaskOutcome =
  /**
   * `ageMs` is the time since the task was created, or since it was begun if the service says when, by the service's clock; null
   * if the service does not say. `queued`: it has not begun, and about so many ms are before it, if the service knows.
   * `note`: what the service tells people of it.
   */
  | { kind: "processing"; ageMs: number | null; queued?: { aheadMs: number | null }; note?: string }
  | {
      kind: "completed";
      urls: string[];
      /** Null if the service does not say. */
      charged: Credits | null;
      createdAt: string;
      /** When it was begun, of a service with a queue. */
      startedAt?: string;
      completedAt: string | null;
      /** How long ago that was, by the service's clock (ms); null if it does not say. */
      endedMs: number | null;
      /** Malformed fields, which were ignored. */
      odd: string[];
      /** If it has no usable URL: what its record has instead. */
      unusable?: string;
    }
  | { kind: "failed"; message: string; charged: Credits; completedAt: string | null; endedMs: number | null }
  | ({ kind: "refused"; stop: Refusal; isStated: boolean; answer: string } & ErrorFacts)
  /**
   * `missing`: the status says that there is no such task. `statedMissing`: the service's own error code says so, so it was
   * not a proxy that answered.
   */
  | { kind: "unclear"; reason: string; missing: boolean; statedMissing: boolean; reached: boolean };

/** `baseUrl`: of the service, for outputs whose addresses are given as paths. */
export function taskOutcome(reply: Reply, baseUrl?: string): TaskOutcome {
  if (reply.kind !== "answer")
    return { kind: "unclear", reason: reply.reason, missing: false, statedMissing: false, reached: false };
  const body = parseJson(reply.body);
  const { poll, stop } = meaningOf(reply.status);
  const facts = errorFacts(body);
  if (poll === "refused" && stop !== null)
    return {
      kind: "refused",
      stop,
      isStated: isStated(stop, facts.code),
      answer: answerText(reply),
      ...facts,
    };
  const missing = poll === "missing";
  const { code } = facts;
  const statedMissing = rowOf(code)?.poll === "missing";
  const unclear = (reason: string): TaskOutcome => ({
    kind: "unclear",
    reason,
    missing,
    statedMissing,
    reached: true,
  });
  if (reply.status !== 200) {
    const answer = `answer ${answerStatus(reply)}${followed(" ", code)}`;
    return unclear(statedMissing ? `the service does not know the task any more (${answer})` : answer);
  }
  const record = contentOf(body, ["status"]) ?? asRecord(body);
  return (
    outcomeOf(record, servedAt(reply), baseUrl) ??
    unclear(oddBody(reply) ?? errorText(facts) ?? "an answer that is not a task record")
  );
}

/**
 * What a task record says. A finished task was paid for, so it is accepted whatever else is odd about its record. A status
 * that is not documented means `processing`, unless the record has a time at which the task ended: then it is over, with or
 * without outputs, and nothing more will come. Null if it is no task record.
 */
function outcomeOf(
  record: Record<string, unknown>,
  servedAt: number | null,
  baseUrl: string | undefined,
): TaskOutcome | null {
  const status = statusIn(record);
  const charged = asCharge(record["credits_consumed"]);
  const completedAt = timeText(record["completed_at"]);
  const endedAt = timeIn(completedAt);
  const endedMs = servedAt === null || endedAt === null ? null : Math.max(0, servedAt - endedAt);
  if (status === "failed") {
    const message = errorWords(record["error"]) ?? "no reason was given";
    // A failed task costs nothing, unless the service says otherwise.
    return { kind: "failed", message, charged: charged ?? noCredits, completedAt, endedMs };
  }
  const { usable: urls, isPartial } = addressesIn(outputsIn(record), baseUrl);
  const isKnown = status === "completed" || status === "processing";
  const isNamed = status !== null || urls.length > 0;
  const isOver = status === "completed" || (!isKnown && completedAt !== null && isNamed);
  if (!isOver) {
    if (status === null) return null;
    const { position, ahead_ms: aheadMs } = asRecord(record["queue"]);
    const told =
      typeof record["note"] === "string" ? { note: shortText(record["note"], noteCharactersMax) } : {};
    if (typeof position === "number")
      return { kind: "processing", ageMs: 0, queued: { aheadMs: asMs(aheadMs) }, ...told };
    const begunAt = timeIn(timeText(record["started_at"]) ?? timeText(record["created_at"]));
    const ageMs = servedAt === null || begunAt === null ? null : servedAt - begunAt;
    return { kind: "processing", ageMs, ...told };
  }
  const odd = [
    ...(["created_at", "completed_at"] as const).filter(
      (field) => record[field] != null && timeText(record[field]) === null,
    ),
    ...(record["credits_consumed"] != null && charged === null ? ["credits_consumed"] : []),
    ...(urls.length > 0 && isPartial ? ["output_urls"] : []),
  ];
  return {
    kind: "completed",
    urls,
    createdAt: timeText(record["created_at"]) ?? "",
    ...(timeText(record["started_at"]) === null ? {} : { startedAt: String(record["started_at"]) }),
    charged,
    completedAt,
    endedMs,
    odd,
    ...(urls.length > 0 ? {} : { unusable: endedWithout(record, status) }),
  };
}

const noteCharactersMax = 300;

function asMs(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : null;
}

/** Null without a readable status. */
function statusIn({ status }: Record<string, unknown>): string | null {
  return typeof status === "string" ? status.trim().toLowerCase() : null;
}

/** A time that can be read, as it was sent; null for anything else. */
function timeText(value: unknown): string | null {
  return typeof value === "string" && timeIn(value) !== null ? value : null;
}

/** Why a finished task is of no use, with what its record says. */
function endedWithout(record: Record<string, unknown>, status: string | null): string {
  const error = errorWords(record["error"]);
  const shown = shortText(JSON.stringify(outputsIn(record) ?? null), addressCharactersMax);
  const ended =
    status === "completed" ? "completed" : `ended with status ${JSON.stringify(record["status"])}`;
  return `the task ${ended} without a usable output address (output_urls: ${shown}${followed("; error: ", error)})`;
}

/** When the service answered, by its own clock (UTC ms); null if it does not say. */
export function servedAt({ headers }: Extract<Reply, { kind: "answer" }>): number | null {
  return timeIn(headers.date);
}

/** UTC ms. */
function timeIn(text: string | null | undefined): number | null {
  const time = serviceTime(text ?? "");
  return Number.isNaN(time) ? null : time;
}

function followed(before: string, text: string | null): string {
  return text === null ? "" : `${before}${text}`;
}

function status(code: number | undefined): { status?: number } {
  return code === undefined ? {} : { status: code };
}

type Answer = Extract<Reply, { kind: "answer" }>;

const beginningCharactersMax = 60;
const addressCharactersMax = 100;
const messageCharactersMax = 300;

/** What came where JSON was expected, such as `text/html beginning "<!doctype html>…"`; null if it is JSON. */
export function oddBody({ headers, body }: Pick<Answer, "headers" | "body">): string | null {
  if (body.trim() === "") return "an empty answer";
  if (parseJson(body) !== null || body.trim() === "null") return null;
  const type = shortText(headers["content-type"]?.split(";")[0] ?? "", 40);
  const named = type === "" || /json/i.test(type) ? "text" : type;
  // More text than is shown, but not a whole long page.
  return `${named} beginning "${shortText(body.slice(0, 1_000), beginningCharactersMax)}"`;
}

/** The status, and for a redirect its target: a login page or another address often explains the problem. */
export function answerStatus({ status, headers }: Pick<Answer, "status" | "headers">): string {
  const location = headers["location"];
  if (status < 300 || status >= 400 || !location) return String(status);
  // What follows the path may be a secret, and is of no help.
  const [address = ""] = location.split(/[?#]/);
  return `${status}, a redirect to ${shortText(address, addressCharactersMax)}, which is not followed`;
}

function errorText({ code, message }: ErrorFacts): string | null {
  const said = [code, message].filter((piece) => piece !== null).join(": ");
  return said === "" ? null : shortText(said, messageCharactersMax);
}

/** An error answer in one line: `401 INVALID_API_KEY: The API key does not exist`. */
export function answerText(answer: Answer): string {
  const status = answerStatus(answer);
  const said = errorText(errorFacts(parseJson(answer.body)));
  if (said !== null) return `${status} ${said}`;
  const odd = answer.status < 300 || answer.status >= 400 ? oddBody(answer) : null;
  return odd === null ? status : `${status} with ${odd}`;
}
