import { dirname, join } from "node:path";
import { fingerprint } from "../../api/key.js";
import { limitsOf } from "../../api/plans.js";
import type { ModelList } from "../../api/records.js";
import { openHttp } from "../../client/http.js";
import { openService, type Service, ServiceError } from "../../client/service.js";
import type { Clock } from "../../clock.js";
import { requestsTold } from "../../core/charges/foreign.js";
import { EarlyExit } from "../../core/exit.js";
import { type Accounts, OtherUser } from "../../core/ports/accounts.js";
import type { Log, Send } from "../../core/ports/send.js";
import type { SpendLog } from "../../core/ports/spend-log.js";
import type { Lanes } from "../../core/quota/lanes.js";
import { NoRequestsUntil, narrowed, type OwnLimits } from "../../core/quota/quota.js";
import { type AccountReading, countersIn, readAccount } from "../../run/account-reading.js";
import { openAccounts } from "../../store/accounts/accounts.js";
import { openLanes } from "../../store/lanes.js";

/** Which service, as whom. */
export interface ServiceConnection {
  /** The origin that identity and books are kept under: the base URL, or `sandbox` whatever its port. */
  origin: string;
  baseUrl: string;
  key: string;
  sandbox: boolean;
}

export interface AccountOptions {
  connection: ServiceConnection;
  accountsFile: string;
  /** The workspace that writes in the account's books. */
  stateFile: string;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** The user's own limits, below the plan's. */
  limits?: OwnLimits;
  onDailyLimit: "stop" | "wait";
  onWait?(what: "minute" | "day" | "service", until: number): void;
}

/** An account in use: its ledger, and the service behind it. */
export interface OpenAccount {
  accounts: Accounts;
  service: Service;
  accountId(): number;
  /** Of the key. */
  fingerprint: string;
  /** The books of its key, and the lanes through which paid requests go. */
  books: SpendLog;
  lanes(count: number): Lanes;
  /** GET me: names the account and takes the limits of its plan; for the books as well. Throws EarlyExit. */
  identify(): Promise<AccountReading>;
  /** Throws EarlyExit. */
  models(): Promise<ModelList>;
  close(): Promise<void>;
}

export async function openAccount(options: AccountOptions): Promise<OpenAccount> {
  const { connection, clock, log } = options;
  const accounts = openAccounts(options.accountsFile, clock);
  const keyPrint = fingerprint(connection.key);
  let account = await accounts.accountOf(connection.origin, keyPrint);
  await accounts.narrowLimits(account.id, options.limits ?? {});
  const books = accounts.books({
    origin: connection.origin,
    fingerprint: keyPrint,
    workspace: options.stateFile,
  });
  const caller = () => ({ accountId: account.id, fingerprint: keyPrint });
  const lanes = (count: number) => lanesOfAccount(options.accountsFile, account.id, keyPrint, count);
  const http = openHttp({ baseUrl: connection.baseUrl, key: connection.key, clock });
  let isWarned = false;
  const untold = (wrong: string) => {
    if (!isWarned)
      log.warn(
        { wrong },
        "the service does not tell the key's counters: what becomes of a request without an answer cannot be found out",
      );
    isWarned = true;
  };
  /** The service tells how many requests the key has made: what is beyond ours, somebody else's, counts too. */
  const me: Service["me"] = async () => {
    const told = await opened.me();
    const counters = countersIn(told.me);
    if (typeof counters === "string") untold(counters);
    const requests = requestsTold(told.me.api_key.requests_count);
    if (requests === null) return told;
    const foreign = await accounts.counted(caller(), { requests, over: told.over });
    if (foreign > 0) {
      log.warn(
        { requests: foreign },
        "another machine or program uses this key too: its requests since the last look are counted; --share leaves it a part",
      );
    }
    return told;
  };
  const opened = openService(withoutKey(http.send, connection.key), {
    accounts,
    caller,
    clock,
    log,
    signal: options.signal,
    onDailyLimit: options.onDailyLimit,
    ...(options.onWait ? { onWait: options.onWait } : {}),
    onSlowed: (gait) =>
      log.warn(
        { gait },
        "refused within the limits: requests now follow one another more slowly, which is remembered",
      ),
  });
  const service: Service = { ...opened, me };

  return {
    accounts,
    service,
    accountId: () => account.id,
    fingerprint: keyPrint,
    books,
    lanes,
    async identify() {
      const reading = await readAccount({ service, books, lanes: lanes(1) }).catch((error: unknown) =>
        explain(error, connection),
      );
      const { me } = reading;
      account = await accounts.name(account.id, me.user.id).catch(refuseOther);
      const plan = limitsOf(me.subscription?.plan ?? "Starter");
      if (!plan.known)
        log.warn({ plan: me.subscription?.plan }, "unknown plan: the smallest limits are kept");
      const limits = narrowed(plan, options.limits ?? {});
      if (limits.perDay !== null && limits.perDay < 3) {
        throw new EarlyExit(
          "usage",
          `--share leaves ${limits.perDay} of the day's requests: expected 3 or more. Nothing was submitted.`,
        );
      }
      await accounts.setLimits(account.id, limits);
      return reading;
    },
    models: () => service.models().catch((error: unknown) => explain(error, connection)),
    async close() {
      await http.close();
      accounts.close();
    },
  };
}

/** Lanes lie beside the account's data. Data that is kept in memory only is nobody else's, so nothing is shared. */
function lanesOfAccount(accountsFile: string, accountId: number, keyPrint: string, count: number): Lanes {
  const free = { take: () => ({ release() {} }), bracket: () => ({ release() {} }) };
  if (accountsFile === ":memory:") return free;
  const shared = join(dirname(accountsFile), "lanes");
  return openLanes({
    folder: join(shared, String(accountId)),
    count,
    gateFile: join(shared, `key-${keyPrint}.lock`),
  });
}

/** A service that repeats the key in an answer must not get it logged, stored or printed (P21). */
function withoutKey(send: Send, key: string): Send {
  return async (request, signal) => {
    const reply = await send(request, signal);
    if (reply.kind !== "answer") return reply;
    const clean = (text: string) => text.replaceAll(key, "[API key]");
    const headers = Object.entries(reply.headers).map(([name, value]) => [name, clean(value)] as const);
    return { ...reply, headers: Object.fromEntries(headers), body: clean(reply.body) };
  };
}

function refuseOther(error: unknown): never {
  if (!(error instanceof OtherUser)) throw error;
  throw new EarlyExit(
    "usage",
    `${error.message}. Nothing was submitted. Set a key of user ${error.expected}, or make a new key for user ${error.got}.`,
  );
}

/** The same failure in words for the person at the terminal, with what to do next. */
function explain(error: unknown, { baseUrl }: ServiceConnection): never {
  if (error instanceof NoRequestsUntil)
    throw new EarlyExit("unfinished", `${error.message}. Nothing was submitted.`);
  if (!(error instanceof ServiceError)) throw error;
  // The service's own words may end a sentence already.
  const reason = error.message.replace(/\.$/, "");
  switch (error.kind) {
    case "key":
      throw new EarlyExit(
        "key",
        `the service refused the API key: ${reason}. Set a valid one in BULKGEN_API_KEY.`,
      );
    case "subscription":
      throw new EarlyExit("key", `no active subscription: ${reason}. Activate a plan, then run again.`);
    case "unreachable":
      throw new EarlyExit(
        "unreachable",
        `the service at ${baseUrl} cannot be reached: ${reason}. Nothing was submitted.`,
      );
    case "unreadable":
      throw new EarlyExit(
        "unreachable",
        `${baseUrl} does not answer like the service: ${reason}. Check the base URL.`,
      );
    case "interrupted":
      throw new EarlyExit("interrupted", "interrupted; nothing was submitted");
  }
}
