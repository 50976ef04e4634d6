import { type Announced, announcedIn, inputsPath, nothingAnnounced, readInput } from "../api/announced.js";
import { endpoints, taskPath } from "../api/endpoints.js";
import { errorFacts } from "../api/error-words.js";
import { type ErrorCode, meaningOf, rowOf } from "../api/errors.js";
import { type RecordReading, readMe, readModels, readTask } from "../api/reading.js";
import type { Category, Me, ModelList, Task } from "../api/records.js";
import { parseJson } from "../api/values.js";
import type { Clock } from "../clock.js";
import { askedPauseMs, backoffMs, readTriesMax } from "../core/again.js";
import type { Past, QuotaLedger } from "../core/ports/accounts.js";
import type { ApiRequest, Log, Reply, Send, Ticket } from "../core/ports/send.js";
import { timeoutMs } from "../core/quota/quota.js";
import type { Proxies } from "../proxy/variables.js";
import { wait } from "../text/amounts.js";
import { shortText } from "../text/terminal.js";
import {
  answerText,
  type GenerateOutcome,
  generateOutcome,
  oddBody,
  servedAt,
  type TaskOutcome,
  taskOutcome,
} from "./answer.js";
import { openHttp } from "./http.js";
import { ServiceClock, timed, type Wait } from "./service-clock.js";
import { announced, logged, type PacingOptions, paced, withoutKey } from "./wrappers.js";

/** The service, as typed calls. */
export interface Service {
  /**
   * A paid request: sent once, whatever happens. A service that announces it answers one with a repeat key that it knows with the
   * same task.
   */
  generate(body: string, ticket: Ticket, repeatKey: string): Promise<GenerateOutcome>;
  task(taskId: string, ticket: Ticket): Promise<TaskOutcome>;
  /** The whole record of a task. Throws ServiceError. */
  taskRecord(taskId: string): Promise<Task>;
  /**
   * Puts a file where the service can read it, if it announces that; `until` is when its address expires (UTC ms; null for never).
   * Throws ServiceError.
   */
  putInput(file: { path: string; type: string }): Promise<{ url: string; until: number | null }>;
  /** Asks the service to stop a task, if it announces that; whether it has, the task tells. Throws ServiceError. */
  cancelTask(taskId: string): Promise<void>;
  /** Throws ServiceError. */
  models(filter?: ModelFilter): Promise<ModelList>;
  /** Throws ServiceError. */
  me(how?: MeRequest): Promise<MeRead>;
  /** GET me once, with the slot that was reserved for it. Returns the answer as it came. */
  probe(ticket: Ticket): Promise<Reply>;
  /** What it can do beyond its page, by its last answer to GET me. */
  announced(): Announced;
  /** The service's time, known from its answers. */
  readonly time: ServiceClock;
  /** Until when the service has asked, with a refusal or a failure, to be left alone (UTC ms); 0 if it has not. */
  pausedUntil(): number;
}

export interface MeRequest {
  /** False: if the service asks for a pause, the caller gets the error now, and not another answer after the pause. */
  waits?: boolean;
}

/** What GET me returned, and which earlier requests of the key its counters certainly include. */
export interface MeRead extends Past {
  me: Me;
  /** When the service answered, by its own clock (UTC ms); null if it does not say. */
  servedAt: number | null;
}

/**
 * Why a request got no result. `status` and `code` are those of the answer, such as 404 and `TASK_NOT_FOUND`; null if none
 * came.
 */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly status: number | null;
  readonly code: ErrorCode | (string & {}) | null;
  constructor(
    /**
     * What it means: the key or the subscription was refused; the request is wrong (`request`); no answer, a 5xx or a 429
     * (`unreachable`); an answer that is not the service's (`unreadable`); or the caller interrupted it.
     */
    readonly kind: "key" | "subscription" | "request" | "unreachable" | "unreadable" | "interrupted",
    message: string,
    { status = null, code = null }: { status?: number | null; code?: string | null } = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Which models to list: only those of a category; without their parameters, which makes the list shorter. */
export interface ModelFilter {
  category?: Category;
  /** True by default. */
  includeParameters?: boolean;
}

export interface ServiceOptions extends PacingOptions {
  accounts: QuotaLedger;
  /** The API key, which is removed from every answer. */
  key: string;
  /** Of the service. */
  baseUrl?: string;
  proxies?: Proxies | null;
  clock: Clock;
  log: Log;
  /** Ends waits and free requests. A paid request in flight is always awaited. */
  signal: AbortSignal;
  /** Told what of a record was not understood. */
  onOdd?(odd: readonly string[]): void;
  /** Awaited with each record of GET me, before the caller gets it. */
  onMe?(read: MeRead): Promise<void>;
}

/** Connects to the service over HTTP. No other function opens a connection to it. */
export function connectService(
  baseUrl: string,
  options: ServiceOptions,
): { service: Service; close(): Promise<void> } {
  const { key, clock, proxies = null } = options;
  const { send, close } = openHttp({ baseUrl, key, clock, proxies });
  return { service: openService(send, { ...options, baseUrl }), close };
}

/**
 * The client, composed in one place. From the wire outwards: the key is removed from the answer, the service's time is
 * read from it, the quota is kept, and the request is logged. So no later wrapper, log or caller ever sees the key.
 */
export function openService(send: Send, options: ServiceOptions): Service {
  const time = new ServiceClock(options.clock);
  let able = nothingAnnounced;
  const redacted = announced(withoutKey(send, options.key), options.log, options.clock);
  const pause = new AskedPause(time, options.clock);
  const heeded = pause.heeded(timed(redacted, time));
  const request = logged(paced(heeded, options), options.log, options.clock);
  const reading = { ...options, tell: tellOnce(options) };
  return {
    time,
    pausedUntil() {
      return pause.until;
    },
    announced() {
      return able;
    },
    generate: async (body, ticket, repeatKey) =>
      generateOutcome(
        await request({
          endpoint: "generate",
          ...endpoints.generate,
          body,
          repeatKey,
          timeoutMs: timeoutMs.generate,
          ticket,
        }),
      ),
    task: async (taskId, ticket) =>
      taskOutcome(
        await request({
          endpoint: "task",
          method: "GET",
          path: taskPath(taskId),
          timeoutMs: timeoutMs.task,
          ticket,
        }),
        options.baseUrl,
      ),
    taskRecord: async (taskId) => {
      const path = taskPath(taskId);
      const asked: ApiRequest = { endpoint: "task", method: "GET", path, timeoutMs: timeoutMs.task };
      return (await read(asked, (body) => readTask(body, taskId, options.baseUrl), request, reading)).record;
    },
    cancelTask: async (taskId) => {
      const path = `${taskPath(taskId)}/cancel`;
      const asked: ApiRequest = { endpoint: "task", method: "POST", path, timeoutMs: timeoutMs.task };
      await read(asked, (body) => ({ record: body, odd: [] }), request, reading);
    },
    putInput: async (file) => {
      // It counts as a request that costs nothing, like a look at the models.
      const asked: ApiRequest = {
        endpoint: "models",
        method: "PUT",
        path: inputsPath,
        file,
        timeoutMs: putMs,
      };
      return (await read(asked, readInput, request, reading)).record;
    },
    models: async (filter = {}) => {
      const { method, path } = endpoints.models;
      const asked: ApiRequest = {
        endpoint: "models",
        method,
        path: path + queryOf(filter),
        timeoutMs: timeoutMs.models,
      };
      return (await read(asked, readModels, request, reading)).record;
    },
    me: async ({ waits = true } = {}) => {
      let past: Past = { over: 0, seq: 0 };
      const onSlot = async () => {
        past = await options.accounts.past(options.caller());
      };
      const asked: ApiRequest = { endpoint: "me", ...endpoints.me, timeoutMs: timeoutMs.me, onSlot };
      const { record, servedAt } = await read(asked, readMe, request, reading, waits);
      able = announcedIn(record);
      const found = { me: record, servedAt, ...past };
      await options.onMe?.(found);
      return found;
    },
    probe: (ticket) =>
      request({ endpoint: "me", ...endpoints.me, timeoutMs: timeoutMs.me, ticket }, options.signal),
  };
}

/** How long a file may take to be sent (ms). */
const putMs = 600_000;

/** Remembers for how long an answer has asked to be left alone. */
class AskedPause {
  private pause: Wait | null = null;

  constructor(
    private readonly time: ServiceClock,
    private readonly clock: Clock,
  ) {}

  get until(): number {
    return this.pause === null || this.pause.isOver ? 0 : this.pause.until;
  }

  heeded(send: Send): Send {
    return async (request, signal) => {
      const reply = await send(request, signal);
      const ms = reply.kind === "answer" ? askedPauseMs(reply, this.clock.now()) : null;
      if (ms !== null && this.clock.now() + ms > this.until) this.pause = this.time.wait(ms);
      return reply;
    };
  }
}

/** A person waits for what is read: a longer pause is reported, not waited for. */
const pauseWaitedMsMax = 60_000;

function queryOf({ category, includeParameters }: ModelFilter): string {
  const query = new URLSearchParams({
    ...(category === undefined ? {} : { category }),
    ...(includeParameters === undefined ? {} : { include_parameters: String(includeParameters) }),
  }).toString();
  return query === "" ? "" : `?${query}`;
}

type Reader<Read> = (body: unknown) => RecordReading<Read> | null;

interface ReadOptions extends ServiceOptions {
  /** Told what of an answer was not understood. */
  tell(path: string, odd: readonly string[]): void;
}

const oddShown = 5;

/** Names what of the service's records was not understood, in one warning each time that it is something else. */
function tellOnce({ log, onOdd }: ServiceOptions): ReadOptions["tell"] {
  const reported = new Map<string, string>();
  return (path, odd) => {
    onOdd?.(odd);
    const text = odd.slice(0, oddShown).join("; ");
    const more = odd.length > oddShown ? `; and ${odd.length - oddShown} more` : "";
    if (odd.length === 0 || reported.get(path) === text) return;
    reported.set(path, text);
    log.warn({}, `GET ${path}: not understood: ${text}${more}. Everything else is used`);
  };
}

/** Reads a record; retries after no connection, a 5xx or, if it may wait, a 429. Throws ServiceError. */
async function read<Read>(
  request: ApiRequest,
  reader: Reader<Read>,
  send: Send,
  { clock, signal, tell }: ReadOptions,
  waits = true,
): Promise<{ record: Read; servedAt: number | null }> {
  for (let tries = 1; ; tries++) {
    const reply = await send(request, signal);
    if (signal.aborted) throw new ServiceError("interrupted", "interrupted");
    if (reply.kind === "answer" && reply.status === 200) {
      const { record, odd } = parsed(request, reader, reply);
      tell(request.path, odd);
      return { record, servedAt: servedAt(reply) };
    }
    const error = refusal(request, reply);
    const pauseMs = reply.kind === "answer" ? (askedPauseMs(reply, clock.now()) ?? 0) : 0;
    const isLong = pauseMs > pauseWaitedMsMax || (pauseMs > 0 && !waits);
    if (error.kind !== "unreachable" || tries === readTriesMax || isLong || (isPause(error) && !waits))
      throw pauseMs > 0 ? asksForPause(error, pauseMs) : error;
    await clock.sleep(Math.max(backoffMs(tries), pauseMs), signal);
  }
}

function asksForPause({ kind, message, status, code }: ServiceError, ms: number): ServiceError {
  return new ServiceError(kind, `${message}; it asks to be left alone for ${wait(ms)}`, { status, code });
}

function parsed<Read>(
  request: ApiRequest,
  reader: Reader<Read>,
  answer: Extract<Reply, { kind: "answer" }>,
): RecordReading<Read> {
  const body = parseJson(answer.body);
  const found = reader(body);
  if (found !== null) return found;
  const { status } = answer;
  const { code, message } = errorFacts(body);
  const said = [code, message].filter((piece) => piece !== null).join(": ");
  const odd = oddBody(answer);
  const what = odd === null ? "the documented record" : "JSON";
  const got = odd ?? (said === "" ? "something else" : shortText(said, saidMax));
  throw new ServiceError("unreadable", `GET ${request.path}: expected ${what}, got ${got}`, { status });
}

const saidMax = 300;

/** Whether the service asks for a pause: the quota ledger delays all requests for a while. */
export function isPause({ status }: ServiceError): boolean {
  return status !== null && meaningOf(status).stop === "pause";
}

function refusal(request: ApiRequest, reply: Reply): ServiceError {
  if (reply.kind !== "answer") return new ServiceError("unreachable", `GET ${request.path}: ${reply.reason}`);
  const message = `GET ${request.path}: the service answered ${answerText(reply)}`;
  const { stop } = meaningOf(reply.status);
  const { code } = errorFacts(parseJson(reply.body));
  const answer = { status: reply.status, code };
  if (stop === "key" || stop === "subscription") return new ServiceError(stop, message, answer);
  if (stop === "pause" || reply.status >= 500) return new ServiceError("unreachable", message, answer);
  return new ServiceError(rowOf(code) ? "request" : "unreadable", message, answer);
}
