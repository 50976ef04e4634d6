import { hash } from "node:crypto";
import type { Endpoint } from "../../api/endpoints.js";
import type { Random } from "../../clock.js";
import {
  errorAnswer,
  refuse,
  ServiceRefusal,
  succeed,
  type WorldRequest,
  type WorldResponse,
} from "../answers/answers.js";
import { type Admission, admit } from "../limiter/admit.js";
import { asOf, type Change, repeatKeysKeptMs, type TaskRecord, type WorldState } from "../state/state.js";
import type { Switches } from "../state/switches.js";
import { type AuthenticatedCaller, authenticate, isGood, requireSubscription } from "./authenticate.js";
import { createTask, type GenerateSettings } from "./generate.js";
import {
  beyondBudget,
  creationView,
  isFinal,
  type KeyBudget,
  listModels,
  meView,
  type ServiceExtras,
  type TaskProgress,
  taskView,
} from "./present.js";
import { endpointOf, route } from "./route.js";
import { checkSignature, parseFilePath, signedPath } from "./signing.js";

export interface WorldSettings extends GenerateSettings {
  /** What this service does beyond the page; null, and nothing else, for one that follows it to the letter. */
  announced?: ServiceExtras | null;
  /** What an answer says of a task beyond the documented fields. */
  progress?: (task: TaskRecord) => TaskProgress;
  /** The budget of a key that leaves it least, if it has any. */
  budget?: (keyId: string, now: number) => KeyBudget | null;
  /** Signs output URLs. */
  secret: string;
  /** What output URLs begin with, without a slash at the end. */
  origin: () => string;
}

export interface Applied {
  response: WorldResponse;
  changes: Change[];
}

/** One request in progress: the changes so far, and the headers of its answer. */
interface Visit {
  now: number;
  request: WorldRequest;
  changes: Change[];
  headers: Record<string, string>;
}

/**
 * The service without its sockets: a request and an instant in, an answer and the changes of the state out. Nothing
 * here touches a clock, a file or the network, so it runs in a simulation as it does behind HTTP. Whoever calls
 * `apply` commits the changes before the answer leaves and before the next call.
 *
 * Errors of a request are checked in this order: its path, its method, no key, the key's form, an unknown or
 * revoked key, the subscription, the limits, and then the request itself.
 */
export class World {
  constructor(
    private readonly settings: WorldSettings,
    private readonly state: WorldState,
    private readonly random: Random,
  ) {}

  /** Answers one API request. Never throws for anything a request can contain. */
  apply(now: number, request: WorldRequest): Applied {
    const visit: Visit = { now, request, changes: [], headers: {} };
    if (this.settings.switches.requestIds) visit.headers["X-Request-Id"] = this.random.uuid();
    const response = this.answerOrError(visit);
    Object.assign(response.headers, visit.headers);
    return { response, changes: visit.changes };
  }

  /**
   * Who sends a request that is not one of the page's: it is authenticated, counted and limited as all are. Its changes are to be
   * committed before the answer leaves.
   */
  enter(
    now: number,
    request: WorldRequest,
  ): { changes: Change[] } & ({ caller: AuthenticatedCaller } | { refused: WorldResponse }) {
    const visit: Visit = { now, request, changes: [], headers: {} };
    try {
      const stored = authenticate(this.state, request);
      visit.changes.push({ kind: "request counted", keyId: stored.key.id });
      const caller = this.asOfNow(visit, stored, "task");
      requireSubscription(this.settings.switches.subscription, "task", caller.account, now);
      this.admit(visit, caller);
      return { caller, changes: visit.changes };
    } catch (error) {
      if (!(error instanceof ServiceRefusal)) throw error;
      return { refused: errorAnswer(error, this.settings.switches.errorShape), changes: visit.changes };
    }
  }

  /** The task and output that a signed URL names, or the answer that refuses it. Needs no key. */
  file(now: number, path: string, query: Readonly<Record<string, string>>): FileLookup {
    const verdict = checkSignature(this.settings.secret, path, query, now);
    if (verdict === "expired") return { refused: this.expired() };
    if (verdict === "wrong")
      return this.refusedFile(403, "URL_INVALID", "The signature of this URL is wrong.");
    const name = parseFilePath(path);
    const task = name ? this.found(now, name.taskId) : undefined;
    const extension = name ? task?.outputs[name.number - 1] : undefined;
    if (!name || !task || extension !== name.extension || task.outcome !== "completed") {
      return this.refusedFile(404, "FILE_NOT_FOUND", "There is no such file.");
    }
    return { task, number: name.number };
  }

  /** The answer to a signed URL whose time is over. */
  expired(): WorldResponse {
    const refusal = new ServiceRefusal(
      403,
      "URL_EXPIRED",
      "This URL has expired: GET the task for a new one.",
    );
    return errorAnswer(refusal, this.settings.switches.errorShape);
  }

  /** The answer to a request that could not be carried out, for example because the disk is full. */
  failed(request: WorldRequest): WorldResponse {
    const refusal =
      endpointOf(request.path) === "generate"
        ? refuse("GENERATION_ERROR", "Internal error while processing the generation.")
        : refuse("INTERNAL_ERROR", "Internal server error.");
    return errorAnswer(refusal, this.settings.switches.errorShape);
  }

  /** The next state of a task whose inputs were judged at `now`: `error` says what was wrong with them, or null. */
  decide(
    now: number,
    { id: taskId, dueAt }: Pick<TaskRecord, "id" | "dueAt">,
    error: string | null,
    outputs?: string[],
  ): Change {
    const outcome = error === null ? "completed" : "failed";
    const made = outputs === undefined ? {} : { outputs };
    return { kind: "outcome decided", taskId, outcome, error, dueAt: Math.max(dueAt, now), ...made };
  }

  /** The refunds that an account's next request would apply. */
  refundsDue(now: number, accountId: string): Change[] {
    return dueRefunds(this.state, this.settings.switches.refund, accountId, now);
  }

  private answerOrError(visit: Visit): WorldResponse {
    try {
      return this.answer(visit);
    } catch (error) {
      if (!(error instanceof ServiceRefusal)) throw error;
      const answer = errorAnswer(error, this.settings.switches.errorShape);
      return { ...answer, headers: { ...answer.headers } };
    }
  }

  private answer(visit: Visit): WorldResponse {
    const { now, request, changes } = visit;
    const { switches } = this.settings;
    const { endpoint, taskId } = route(request);
    const stored = authenticate(this.state, request);
    const count: Change = { kind: "request counted", keyId: stored.key.id };
    const counts = switches.requestsCount;
    if (counts === "all" || (counts === "generates" && endpoint === "generate")) changes.push(count);
    const caller = this.asOfNow(visit, stored, endpoint);
    requireSubscription(switches.subscription, endpoint, caller.account, now);
    this.admit(visit, caller);
    if (counts === "admitted") changes.push(count);
    if (request.fault?.kind === "internal-error") throw refuse("INTERNAL_ERROR", "Internal server error.");
    const response = this.endpoint(visit, endpoint, caller, taskId);
    if (counts === "succeeded" && response.status === 200) changes.push(count);
    return response;
  }

  private endpoint(
    visit: Visit,
    endpoint: Endpoint,
    caller: AuthenticatedCaller,
    taskId: string,
  ): WorldResponse {
    const { models, switches } = this.settings;
    switch (endpoint) {
      case "generate":
        return this.generate(visit, caller);
      case "task":
        return this.task(visit, caller, taskId);
      case "models":
        return succeed(listModels([...models.values()], visit.request.query, switches));
      case "me": {
        const { shownWhenNotGood } = switches.subscription;
        const shown = shownWhenNotGood || isGood(switches.subscription, caller.account, visit.now);
        const budget = this.settings.budget?.(caller.key.id, visit.now) ?? null;
        const binding = budget && budget.leftMicro < caller.account.balanceMicro ? budget : null;
        const balanceMicro = binding?.leftMicro ?? caller.account.balanceMicro;
        const within = { ...caller, account: { ...caller.account, balanceMicro } };
        return succeed(meView(within, shown, this.settings.announced ?? null, binding));
      }
    }
  }

  /** The caller after due refunds, and with this request counted if it counts. */
  private asOfNow(
    { now, changes }: Visit,
    { key, account }: AuthenticatedCaller,
    endpoint: Endpoint,
  ): AuthenticatedCaller {
    const { switches } = this.settings;
    let { balanceMicro } = account;
    let { usedMicro } = key;
    for (const refund of dueRefunds(this.state, switches.refund, account.id, now)) {
      changes.push(refund);
      balanceMicro += refund.micro;
      if (refund.lowersUsed && refund.keyId === key.id) usedMicro -= refund.micro;
    }
    const counted = endpoint === "generate" || switches.requestsCount !== "generates" ? 1 : 0;
    return {
      key: { ...key, usedMicro, requestsCount: key.requestsCount + counted },
      account: asOf({ ...account, balanceMicro }, now),
    };
  }

  private admit(visit: Visit, { account }: AuthenticatedCaller): void {
    const { switches } = this.settings;
    const { now, changes, headers, request } = visit;
    const admission = admit(this.state, account, switches.limiter, now);
    changes.push(...admission.changes);
    if (switches.rateLimitHeaders) Object.assign(headers, limitHeaders(admission));
    const waitMs = request.fault?.kind === "spurious-429" ? spuriousWaitMs : admission.waitMs;
    if (waitMs === null) return;
    const why = `More requests than the ${account.plan} plan allows: see its limits per minute and per day.`;
    throw tooMany(switches.tooMany, waitMs, now, why);
  }

  private generate({ now, request, changes }: Visit, caller: AuthenticatedCaller): WorldResponse {
    const { settings, random } = this;
    const repeatKey = settings.announced ? request.headers["idempotency-key"] : undefined;
    const sha256 = repeatKey === undefined ? "" : hash("sha256", request.body ?? "");
    const before = repeatKey === undefined ? undefined : this.repeated(caller, repeatKey, sha256, now);
    if (before) return succeed(creationView(before, caller.account.balanceMicro));
    const budget = settings.budget?.(caller.key.id, now);
    const task = createTask(settings, random, caller, request, now);
    const { accountId, keyId, costMicro: micro } = task;
    const made: Change[] = [
      { kind: "task created", task },
      { kind: "task charged", accountId, keyId, micro },
    ];
    const failing = request.fault?.kind === "generation-error";
    if (budget && task.costMicro > budget.leftMicro)
      throw refuse("INSUFFICIENT_CREDITS", beyondBudget(task, budget));
    if (!failing || settings.switches.errorIsCharged) changes.push(...made);
    if (repeatKey !== undefined)
      changes.push({ kind: "repeat key kept", accountId, repeatKey, taskId: task.id, sha256, at: now });
    if (failing) throw refuse("GENERATION_ERROR", "Internal error while processing the generation.");
    return succeed(creationView(task, caller.account.balanceMicro - micro));
  }

  /** The task that was made for this repeat key. Throws a refusal if it was sent with something else. */
  private repeated({ account }: AuthenticatedCaller, key: string, sha256: string, now: number) {
    const kept = this.state.repeated(account.id, key);
    if (!kept || now >= kept.at + repeatKeysKeptMs) return undefined;
    if (kept.sha256 !== sha256)
      throw new ServiceRefusal(
        409,
        "IDEMPOTENCY_KEY_REUSED",
        "This Idempotency-Key was sent with another request.",
      );
    return this.state.task(kept.taskId);
  }

  private task({ now, changes }: Visit, caller: AuthenticatedCaller, taskId: string): WorldResponse {
    const task = this.found(now, taskId);
    if (task?.accountId !== caller.account.id) throw refuse("TASK_NOT_FOUND", "There is no such task.");
    if (isFinal(task, now) && !task.seenFinal) changes.push({ kind: "final state seen", taskId });
    const { refund } = this.settings.switches;
    const owed = task.outcome === "failed" && !task.refunded && isFinal(task, now);
    if (refund.at === "seen" && owed) changes.push(refundOf(task, refund));
    const progress = this.settings.progress?.(task);
    return succeed(taskView(task, now, () => this.outputUrls(now, task), progress));
  }

  private found(now: number, taskId: string): TaskRecord | undefined {
    const task = this.state.task(taskId);
    return task && (task.goneAt === null || now < task.goneAt) ? task : undefined;
  }

  private outputUrls(now: number, task: TaskRecord): string[] {
    const { secret, switches, origin } = this.settings;
    const signedAt = switches.signing === "once" ? task.dueAt : now;
    return task.outputs.map((extension, index) => {
      const name = { taskId: task.id, number: index + 1, extension };
      return origin() + signedPath(secret, name, signedAt + switches.urlMs);
    });
  }

  private refusedFile(status: number, code: string, message: string): FileLookup {
    return {
      refused: errorAnswer(new ServiceRefusal(status, code, message), this.settings.switches.errorShape),
    };
  }
}

export type FileLookup = { task: TaskRecord; number: number } | { refused: WorldResponse };

/** How long a 429 without a reason asks to wait. */
const spuriousWaitMs = 5_000;

function limitHeaders({ minute }: Admission): Record<string, string> {
  const standing = minute();
  if (!standing) return {};
  return {
    "RateLimit-Limit": String(standing.limit),
    "RateLimit-Remaining": String(standing.remaining),
    "RateLimit-Reset": String(Math.ceil(standing.resetMs / 1_000)),
  };
}

type Refund = Extract<Change, { kind: "task refunded" }>;

/**
 * The refunds of an account that are due at `now`. Failed tasks are refunded with the first request of the account
 * at or after the moment when the refund is due, of any kind: the balance cannot be seen earlier.
 */
function dueRefunds(
  state: WorldState,
  switches: Switches["refund"],
  accountId: string,
  now: number,
): Refund[] {
  if (switches.at === "seen") return [];
  const delayMs = switches.at === "delayed" ? switches.delayMs : 0;
  return state.refundsDue(accountId, now - delayMs).map((task) => refundOf(task, switches));
}

/** The credits of a failed task given back. */
function refundOf(task: TaskRecord, { lowersUsed }: Switches["refund"]): Refund {
  const { id: taskId, accountId, keyId, costMicro: micro } = task;
  return { kind: "task refunded", taskId, accountId, keyId, micro, lowersUsed };
}

/** The 429 of a request that may pass in `waitMs` milliseconds, in the form that the switches give it. */
function tooMany(switches: Switches["tooMany"], waitMs: number, now: number, why: string): ServiceRefusal {
  const { status, code } = refuse("RATE_LIMITED", why);
  const headers = retryAfter(switches.retryAfter, waitMs, now);
  return new ServiceRefusal(status, code, why, headers, switches.body);
}

function retryAfter(
  form: Switches["tooMany"]["retryAfter"],
  waitMs: number,
  now: number,
): Record<string, string> {
  if (form === "none") return {};
  if (form === "seconds") return { "Retry-After": String(Math.ceil(waitMs / 1_000)) };
  // A date has whole seconds: rounded up, or the client would come too early. It is relative to our own Date.
  const at = Math.ceil((now + waitMs) / 1_000) * 1_000;
  return { Date: new Date(now).toUTCString(), "Retry-After": new Date(at).toUTCString() };
}
