import { setMaxListeners } from "node:events";
import { join } from "node:path";
import type { Me, ModelList, Task } from "../api/records.js";
import { type ModelFilter, ServiceError } from "../client/service.js";
import { EarlyExit } from "../core/exit.js";
import type { Log } from "../core/ports/send.js";
import { NoRequestsUntil } from "../core/quota/quota.js";
import type { Host } from "../machine.js";
import { type OpenAccount, openAccount } from "../workspace/account.js";
import { accountsIn, sharedFolderOf } from "../workspace/workspace.js";
import { rethrowAsPrinted } from "./printed-errors.js";
import { connectionOf, type ServiceAddress, silentLog } from "./service.js";
import { checkClientSettings } from "./settings.js";

/**
 * A client that reads from the service and never pays; `run` does. Its requests wait for a slot in the account's quota,
 * which all bulkgen processes share. Each is retried up to twice after a 5xx, a 429 or a lost connection.
 */
export interface Client {
  /** GET models. Throws ServiceError. */
  models(filter?: ModelFilter): Promise<ModelList>;
  /** GET me. Throws ServiceError, and EarlyExit if the key is another user's than before. */
  me(): Promise<Me>;
  /** GET task. Throws ServiceError; its code is `TASK_NOT_FOUND` if the service does not know the id. */
  task(taskId: string): Promise<Task>;
  /** Closes the client, which cannot be used afterwards, and interrupts its requests. */
  close(): Promise<void>;
}

export interface ClientOptions {
  service: ServiceAddress;
  /** Interrupts waits and requests. */
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
      // A client has no workspace, and this is the name of none.
      stateFile: join(sharedFolder, "client"),
      database: null,
    },
    clock: on.clock,
    log,
    signal,
    onDailyLimit,
  });
  const account = await opening.catch((error: unknown) => rethrowAsPrinted(error, on.cwd));
  return new AccountClient(account, closing);
}

class AccountClient implements Client {
  private closed: Promise<void> | null = null;

  constructor(
    private readonly account: OpenAccount,
    private readonly closing: AbortController,
  ) {}

  async models(filter?: ModelFilter): Promise<ModelList> {
    this.checkOpen();
    return this.account.service.models(filter);
  }

  async me(): Promise<Me> {
    this.checkOpen();
    return (await this.account.identify().catch(refusalItself)).me;
  }

  async task(taskId: string): Promise<Task> {
    this.checkOpen();
    return this.account.service.taskRecord(taskId);
  }

  close(): Promise<void> {
    this.closing.abort();
    this.closed ??= this.account.close();
    return this.closed;
  }

  private checkOpen(): void {
    if (this.closed !== null) throw new Error("the client is closed; createClient makes a new one");
  }
}

/** The refusal itself, of the service or of the quota, without the advice for people at a command line. */
function refusalItself(error: unknown): never {
  const cause = error instanceof EarlyExit ? error.cause : undefined;
  throw cause instanceof ServiceError || cause instanceof NoRequestsUntil ? cause : error;
}
