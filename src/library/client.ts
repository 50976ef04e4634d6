import { setMaxListeners } from "node:events";
import { join } from "node:path";
import PQueue from "p-queue";
import { z } from "zod";
import { exactRequest, type GenerateRequest, type Me, type ModelList, type Task } from "../api/records.js";
import type { GenerateOutcome } from "../client/answer.js";
import { type ModelFilter, ServiceError } from "../client/service.js";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import { offeredPrice, priceGroup } from "../core/identity.js";
import { asCharge, type Credits, credits, noCredits, toNumber } from "../core/money.js";
import type { Log, Ticket } from "../core/ports/send.js";
import { dayMs, type Lane, type Lanes, lanesOf, NoRequestsUntil } from "../core/quota/quota.js";
import type { Host } from "../machine.js";
import { blamed } from "../run/blame.js";
import { conclusionOf, loggedAnswer, loggedEnd } from "../run/conclude.js";
import { type OpenAccount, openAccount } from "../workspace/account.js";
import { accountsIn, sharedFolderOf } from "../workspace/workspace.js";
import { rethrowAsPrinted } from "./printed-errors.js";
import { connectionOf, type ServiceAddress, silentLog } from "./service.js";
import { checkClientSettings } from "./settings.js";

/** A client of the service. Its requests wait for a slot in the account's quota, which all bulkgen processes share. */
export interface Client {
  /** GET models. Retried up to twice after a 5xx, a 429 or a lost connection. Throws ServiceError. */
  models(filter?: ModelFilter): Promise<ModelList>;
  /** GET me, retried in the same way. Throws ServiceError, and EarlyExit if the key is another user's than before. */
  me(): Promise<Me>;
  /**
   * POST generate: **pays**, and is sent once, whatever happens. The first call also makes GET me and GET models, to
   * learn the limits of the plan and the price. The request is in the account's spend log before it leaves, so the caps
   * of later runs count it.
   *
   * Throws ServiceError if nothing was charged (`code` such as `INSUFFICIENT_CREDITS`), and its subclass ChargeUnknown if
   * the request may have been charged although no task is known: do not send it again then. Throws RangeError, and sends
   * nothing, if the request has a wrong field.
   */
  generate(request: GenerateRequest): Promise<Generation>;
  /**
   * GET task, retried like the other GETs. Throws ServiceError; its code is `TASK_NOT_FOUND` if the service does not know
   * the id.
   */
  task(taskId: string): Promise<Task>;
  /**
   * Closes the client, which cannot be used afterwards: paid requests in flight are awaited first, and whatever waits for
   * a slot or sends a free request is interrupted.
   */
  close(): Promise<void>;
}

/** A generation that the service has accepted. */
export interface Generation {
  taskId: string;
  /** The upstream provider's id; null if the service did not say. */
  externalTaskId: string | null;
  /** In credits; null if the service did not say. */
  creditsConsumed: number | null;
  /** The balance after it, in credits; null if the service did not say. */
  creditsRemaining: number | null;
}

/** The paid request may have been charged, and its task is unknown. Find out whether it was before you send it again. */
export class ChargeUnknown extends ServiceError {
  override readonly name = "ChargeUnknown";
}

export interface ClientOptions {
  service: ServiceAddress;
  /** Aborts waits and free requests. A paid request in flight is always awaited. */
  signal?: AbortSignal;
  /** Gets each request with its outcome, but no body and no key. For example a pino logger. Default: none. */
  log?: Log;
  /** When the day's requests are used up: fail with NoRequestsUntil (`stop`, the default), or wait. */
  onDailyLimit?: "stop" | "wait";
}

/** Throws EarlyExit, and RangeError for a setting that has no meaning. */
export async function openClient(on: Host, options: ClientOptions): Promise<Client> {
  checkClientSettings(options);
  const { service, log = silentLog, onDailyLimit = "stop" } = options;
  const closing = new AbortController();
  const signal = options.signal ? AbortSignal.any([closing.signal, options.signal]) : closing.signal;
  // Every request in flight listens to it.
  setMaxListeners(0, signal);
  const connection = connectionOf(service, on.env);
  const sharedFolder = sharedFolderOf(on.env);
  const opening = openAccount({
    connection,
    place: {
      // A sandbox in this process is gone with it, and what is known of its account may go too.
      accountsFile: connection.sandbox ? ":memory:" : accountsIn(sharedFolder),
      // Its requests belong to no workspace, and no workspace may take them for its own.
      stateFile: join(sharedFolder, "client"),
      database: null,
    },
    clock: on.clock,
    log,
    signal,
    onDailyLimit,
  });
  const account = await opening.catch((error: unknown) => rethrowAsPrinted(error, on.cwd));
  return new AccountClient(on.clock, account, { signal, closing }, log);
}

/** What paid requests depend on. */
interface Facts {
  /** As many at once as there are lanes: one that waits for a lane would keep a slot in the quota from the others. */
  turns: PQueue;
  lanes: Lanes;
  /** By model. */
  prices: ReadonlyMap<string, Credits>;
}

const taskEnds = ["completed", "failed"] as const;

/** How often a lane is asked for while other processes have all of them, in ms. */
const laneMs = 200;

class AccountClient implements Client {
  /** Entries in the spend log of the tasks that have not ended. */
  private readonly open = new Map<string, number>();
  /** Calls of generate that have not ended. */
  private readonly paying = new Set<Promise<Generation>>();
  private closed: Promise<void> | null = null;
  private known: Promise<Facts> | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly account: OpenAccount,
    private readonly interrupt: { signal: AbortSignal; closing: AbortController },
    private readonly log: Log,
  ) {}

  async models(filter?: ModelFilter): Promise<ModelList> {
    this.checkOpen();
    return this.account.service.models(filter);
  }

  async me(): Promise<Me> {
    this.checkOpen();
    return (await this.account.identify().catch(refusalItself)).me;
  }

  async generate(request: GenerateRequest): Promise<Generation> {
    this.checkOpen();
    const paying = this.pay(checkedRequest(request));
    this.paying.add(paying);
    try {
      return await paying;
    } finally {
      this.paying.delete(paying);
    }
  }

  private async pay(wanted: GenerateRequest): Promise<Generation> {
    const facts = await this.facts();
    return facts.turns.add(() => this.submit(wanted, facts));
  }

  private async submit(wanted: GenerateRequest, { lanes, prices }: Facts): Promise<Generation> {
    const { account } = this;
    const { spendLog, service, accounts } = account;
    const asked = { model: wanted.model, params: wanted.params ?? {} };
    const group = priceGroup(asked);
    const charges = await accounts.highestCharges(account.accountId());
    const price = offeredPrice(asked, prices.get(wanted.model) ?? noCredits, charges);
    const { lane, ticket } = await this.turn(lanes);
    try {
      const intent = { itemKey: `client:${group}`, price, at: service.time.now.latest };
      const entry = await spendLog.intend(intent).catch(async (error: unknown) => {
        await accounts.release(ticket);
        throw error;
      });
      const answer = await service.generate(JSON.stringify(wanted), ticket);
      const { event, outcome: told } = conclusionOf(answer, this.clock.now());
      await this.noted(spendLog.answered(entry, loggedAnswer(event, told)));
      const reading = {
        accounts,
        accountId: account.accountId(),
        service,
        spendLog,
        lanes,
        clock: this.clock,
      };
      const outcome = await blamed(reading, answer, { id: 0, price: price }, new Set([0]));
      if (outcome.kind !== "accepted") throw errorOf(outcome);
      this.open.set(outcome.taskId, entry);
      if (outcome.charged !== null)
        await this.noted(accounts.charged(account.accountId(), group, outcome.charged));
      return {
        taskId: outcome.taskId,
        externalTaskId: outcome.externalTaskId,
        creditsConsumed: outcome.charged === null ? null : toNumber(outcome.charged),
        creditsRemaining: outcome.remaining === null ? null : toNumber(outcome.remaining),
      };
    } finally {
      lane.release();
    }
  }

  async task(taskId: string): Promise<Task> {
    this.checkOpen();
    const task = await this.account.service.taskRecord(taskId);
    const ended = taskEnds.find((status) => status === task.status);
    if (ended === undefined) return task;
    const entry = this.open.get(taskId) ?? (await this.submittedByAnother(taskId));
    if (entry !== undefined) {
      const facts = { charged: asCharge(task.credits_consumed), completedAt: task.completed_at };
      await this.account.spendLog.polled(entry, loggedEnd(ended, facts));
      this.open.delete(taskId);
    }
    return task;
  }

  /**
   * The entry of an open task that another client of this machine submitted, maybe in an earlier process. Without its end,
   * the key's counters could prove nothing for a day.
   */
  private async submittedByAnother(taskId: string): Promise<number | undefined> {
    const { spendLog, service } = this.account;
    const unended = await spendLog.unended(service.time.now.latest - dayMs);
    return unended.find((attempt) => attempt.taskId === taskId)?.entry;
  }

  close(): Promise<void> {
    this.closed ??= this.end();
    return this.closed;
  }

  /** A paid request whose connection is cut may be charged, and its task would be lost. */
  private async end(): Promise<void> {
    this.interrupt.closing.abort();
    await Promise.allSettled(this.paying);
    await this.account.close();
  }

  private checkOpen(): void {
    if (this.closed !== null) throw new Error("the client is closed; createClient makes a new one");
  }

  /** The caller gets a task's id even if the disk refuses to record the answer; unrecorded, it counts as unknown. */
  private async noted(written: Promise<void>): Promise<void> {
    await written.catch((error: unknown) =>
      this.log.warn({ error: String(error) }, "the answer to a paid request could not be recorded"),
    );
  }

  /** What a paid request depends on, asked for once; again if that failed. */
  private facts() {
    this.known ??= this.read().catch((error: unknown) => {
      this.known = null;
      throw error;
    });
    return this.known;
  }

  private async read(): Promise<Facts> {
    const { me } = await this.account.identify().catch(refusalItself);
    const { models } = await this.account.models().catch(refusalItself);
    const concurrency = lanesOf(me.subscription?.plan ?? "");
    return {
      turns: new PQueue({ concurrency }),
      lanes: this.account.lanes(concurrency),
      prices: new Map(models.map((model) => [model.model_key, credits(model.credits_cost)])),
    };
  }

  /** A lane, with a slot in the quota. Rejects with ServiceError when interrupted. */
  private async turn(lanes: Lanes): Promise<{ lane: Lane; ticket: Ticket }> {
    const { service, accounts } = this.account;
    for (;;) {
      const ticket = await service.slot();
      if (ticket === null) throw new ServiceError("interrupted", "interrupted; nothing was sent");
      const lane = lanes.take();
      if (lane !== null) return { lane, ticket };
      await accounts.release(ticket);
      await this.clock.sleep(laneMs, this.interrupt.signal);
    }
  }
}

/** A refusal or an open question, as an error. */
function errorOf(outcome: Exclude<GenerateOutcome, { kind: "accepted" }>): ServiceError {
  switch (outcome.kind) {
    case "not_sent":
      return new ServiceError("unreachable", `POST generate was not sent: ${outcome.reason}`);
    case "unknown":
      return new ChargeUnknown("unreachable", `POST generate may have been charged: ${outcome.reason}`, {
        status: outcome.status ?? null,
        code: outcome.code ?? null,
      });
    default: {
      const { status, code, message } = outcome;
      const said = [code, message].filter((piece) => piece !== null).join(": ");
      const stop = outcome.kind === "refused" ? outcome.stop : null;
      const kind = stop === null ? "request" : stop === "pause" ? "unreachable" : stop;
      return new ServiceError(kind, `POST generate was refused: ${status} ${said}`.trimEnd(), {
        status,
        code,
      });
    }
  }
}

/** The refusal itself, of the service or of the quota, without the advice for people at a command line. */
function refusalItself(error: unknown): never {
  const cause = error instanceof EarlyExit ? error.cause : undefined;
  throw cause instanceof ServiceError || cause instanceof NoRequestsUntil ? cause : error;
}

function checkedRequest(request: GenerateRequest): GenerateRequest {
  const read = exactRequest.safeParse(request);
  if (read.success) return read.data;
  throw new RangeError(`the request is not valid; nothing was sent\n${z.prettifyError(read.error)}`);
}
