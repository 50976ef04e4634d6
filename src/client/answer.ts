import { z } from "zod";
import { meaningOf, type Refusal, rowOf } from "../api/errors.js";
import { asRecord, type ErrorFacts, errorFacts, parseJson } from "../api/records.js";
import { serviceTime } from "../api/times.js";
import { type Credits, chargeTold, creditsTold, noCredits } from "../core/money.js";
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
  | ({ kind: "refused"; status: number; stop: Refusal } & ErrorFacts)
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
  if (reply.status >= 200 && reply.status < 300) {
    const fields = asRecord(body);
    const taskId = fields.task_id;
    if (!isShort(taskId) || taskId === "") {
      const odd =
        typeof taskId === "string" && taskId !== "" ? `it has ${taskId.length} characters` : oddBody(reply);
      return {
        kind: "unknown",
        reason: `answer ${reply.status} without a readable task_id${followed(": ", odd)}`,
        status: reply.status,
      };
    }
    return {
      kind: "accepted",
      status: reply.status,
      taskId,
      externalTaskId: isShort(fields.external_task_id) ? fields.external_task_id : null,
      charged: chargeTold(fields.credits_consumed),
      remaining: creditsTold(fields.credits_remaining),
    };
  }
  const facts = errorFacts(body);
  const { submit, stop } = meaningOf(reply.status);
  if (submit === "rejected") return { kind: "rejected", status: reply.status, ...facts };
  if (submit === "refused" && stop !== null) return { kind: "refused", status: reply.status, stop, ...facts };
  return {
    kind: "unknown",
    reason: `answer ${answerStatus(reply)}${followed(" ", facts.code)}`,
    status: reply.status,
    ...(facts.code === null ? {} : { code: facts.code }),
  };
}

/** Ids are kept in receipts and databases and sent in addresses; the service's are UUIDs. */
const taskIdCharactersMax = 1_024;

function isShort(value: unknown): value is string {
  return typeof value === "string" && value.length <= taskIdCharactersMax;
}

/** What an answer to a poll means. An answer that says nothing about the task leaves it alive. */
export type TaskOutcome =
  /** `ageMs` is the time since the task was created, by the service's clock; null if the service does not say. */
  | { kind: "processing"; ageMs: number | null }
  | {
      kind: "completed";
      urls: string[];
      /** Null if the service does not say. */
      charged: Credits | null;
      createdAt: string;
      completedAt: string | null;
      /** Malformed fields, which were ignored. */
      odd: string[];
    }
  | { kind: "failed"; message: string; charged: Credits; completedAt: string | null }
  | ({ kind: "refused"; stop: Refusal } & ErrorFacts)
  /**
   * `missing`: the status says that there is no such task. `statedMissing`: the service's own error code says so, so it was
   * not a proxy that answered.
   */
  | { kind: "unclear"; reason: string; missing: boolean; statedMissing: boolean; reached: boolean };

const finished = z.looseObject({
  status: z.string(),
  output_urls: z.array(z.string()).nullish(),
  // A finished task is accepted whatever else is odd about it: it was paid for.
  error: z.string().nullish().catch(null),
  credits_consumed: z.unknown().optional(),
  created_at: z.string().nullish().catch(null),
  completed_at: z.string().nullish().catch(null),
});

export function taskOutcome(reply: Reply): TaskOutcome {
  if (reply.kind !== "answer")
    return { kind: "unclear", reason: reply.reason, missing: false, statedMissing: false, reached: false };
  const body = parseJson(reply.body);
  const { poll, stop } = meaningOf(reply.status);
  if (poll === "refused" && stop !== null) return { kind: "refused", stop, ...errorFacts(body) };
  const missing = poll === "missing";
  const { code } = errorFacts(body);
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
  const read = finished.safeParse(body);
  if (!read.success) return unclear(oddBody(reply) ?? "an answer that is not a task record");
  return (
    outcomeOf(read.data, servedAt(reply), asRecord(body)) ?? unclear("completed without output addresses")
  );
}

function outcomeOf(
  task: z.infer<typeof finished>,
  servedAt: number | null,
  sent: Record<string, unknown>,
): TaskOutcome | null {
  const charged = chargeTold(task.credits_consumed);
  const completedAt = task.completed_at ?? null;
  if (task.status === "failed") {
    const message = task.error ?? "no reason was given";
    // A failed task costs nothing, unless the service says otherwise.
    return { kind: "failed", message, charged: charged ?? noCredits, completedAt };
  }
  if (task.status !== "completed") {
    const createdAt = timeIn(task.created_at);
    return {
      kind: "processing",
      ageMs: servedAt === null || createdAt === null ? null : servedAt - createdAt,
    };
  }
  const urls = task.output_urls ?? [];
  if (urls.length === 0) return null;
  const odd = [
    ...(["created_at", "completed_at"] as const).filter(
      (field) => sent[field] != null && timeIn(task[field]) === null,
    ),
    ...(sent["credits_consumed"] != null && charged === null ? ["credits_consumed"] : []),
  ];
  const createdAt = odd.includes("created_at") ? "" : (task.created_at ?? "");
  return {
    kind: "completed",
    urls,
    createdAt,
    charged,
    completedAt: odd.includes("completed_at") ? null : completedAt,
    odd,
  };
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

/** An error answer in one line: `401 INVALID_API_KEY: The API key does not exist`. */
export function answerText(answer: Answer): string {
  const { code, message } = errorFacts(parseJson(answer.body));
  const status = answerStatus(answer);
  const said = [code, message].filter((piece) => piece !== null).join(": ");
  if (said !== "") return `${status} ${shortText(said, messageCharactersMax)}`;
  const odd = answer.status < 300 || answer.status >= 400 ? oddBody(answer) : null;
  return odd === null ? status : `${status} with ${odd}`;
}
