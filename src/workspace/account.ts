import { dirname, join } from "node:path";
import { fingerprint, sandboxKey } from "../api/key.js";
import { limitsOf } from "../api/plans.js";
import type { Model, ModelList } from "../api/records.js";
import { connectService, type MeRead, type Service, ServiceError } from "../client/service.js";
import type { Clock } from "../clock.js";
import { asRequestCount } from "../core/charges/readings.js";
import { EarlyExit, type ExitName } from "../core/exit.js";
import { ownModelsOrigin } from "../core/identity.js";
import { asCharge, credits } from "../core/money.js";
import type { StopOrWait } from "../core/next/options.js";
import { OtherUser } from "../core/ports/accounts.js";
import type { Log } from "../core/ports/send.js";
import type { Lanes } from "../core/quota/quota.js";
import { NoRequestsUntil, narrowed, type OwnLimits } from "../core/quota/quota.js";
import type { Reason } from "../core/reason.js";
import type { Proxies } from "../proxy/variables.js";
import { type AccountReading, countersIn, readAccount } from "../run/gate/balance.js";
import type { Accounts } from "../store/accounts/accounts.js";
import type { SpendLog } from "../store/accounts/spend-log.js";
import { type OpenLanes, openLanes } from "../store/lock.js";
import { count } from "../text/amounts.js";
import { terminalText } from "../text/terminal.js";
import { otherAddresses, useKey } from "../trust/trust.js";
import { type AccountsPlace, loggedWorkspace, openSharedData } from "./state.js";
import { noSharedFolder } from "./workspace.js";

/** Which service, as whom. */
export interface ServiceConnection {
  /** The origin used for item keys and the spend log: the base URL, or `sandbox` for any sandbox port. */
  origin: string;
  baseUrl: string;
  key: string;
  /** Where the key was set, for messages. */
  keyFrom?: string;
  /** Where the address was set, for messages. */
  addressFrom?: string;
  /** This user has agreed that this address gets the key. */
  trustAddress?: boolean;
  sandbox: boolean;
  proxies?: Proxies | null;
}

export interface AccountOptions {
  connection: ServiceConnection;
  /** The workspace, which is named in the spend log, and what it shares with others. */
  place: AccountsPlace;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
  /** The user's own limits, below the plan's. */
  limits?: OwnLimits;
  onDailyLimit: StopOrWait;
  onWait?(reason: Reason): void;
}

/** An account in use: its quota ledger and its service. */
export interface OpenAccount {
  /** The name of the service: its address, or an earlier one if a person has said that it has moved. */
  origin: string;
  /** Its address. */
  baseUrl: string;
  accounts: Accounts;
  service: Service;
  accountId(): number;
  /** Of the key. */
  fingerprint: string;
  /** The key's spend log and its lanes for paid requests. */
  spendLog: SpendLog;
  lanes(count: number): Lanes;
  /** GET me: identifies the account and adopts the limits of its plan; also a counter reading. Throws EarlyExit. */
  identify(): Promise<AccountReading>;
  /** Throws EarlyExit. */
  models(): Promise<UsableModels>;
  close(): Promise<void>;
}

/** Opens the shared data of the accounts. Throws EarlyExit if its folder cannot be made. */
async function openShared({ place, clock }: AccountOptions): Promise<Accounts> {
  const { accountsFile, stateFile } = place;
  try {
    return await openSharedData(place, clock);
  } catch (error) {
    const { syscall, code } = error as NodeJS.ErrnoException;
    if (syscall !== "mkdir") throw error;
    throw new EarlyExit("usage", noSharedFolder(dirname(accountsFile), code, stateFile));
  }
}

/**
 * A key that was used at one address is not sent to another one until the user agrees: the address may be mistyped, or come
 * from somebody else's file. Throws EarlyExit.
 */
export function admitKey(connection: ServiceConnection, accountsFile: string): void {
  if (!isSecret(connection, accountsFile)) return;
  const { key, baseUrl, keyFrom = "BULKGEN_API_KEY", addressFrom = "--base-url" } = connection;
  const [folder, print] = [dirname(accountsFile), fingerprint(key)];
  if (connection.trustAddress) useKey(folder, print, baseUrl);
  const others = otherAddresses(folder, print, baseUrl);
  if (others.length === 0) return;
  throw new EarlyExit(
    "usage",
    `the key from ${keyFrom} has been used at ${others.join(" and ")} until now, and would be sent to ${terminalText(baseUrl)} (from ${addressFrom}). Nothing was sent. If that address is your service too, add --trust-address once, or run \`bulkgen trust\`; otherwise correct the address.`,
  );
}

/** Records where a key is used, once the service there has answered: a mistyped address is not the key's. */
export function noteKeyUse(connection: ServiceConnection, accountsFile: string): void {
  if (isSecret(connection, accountsFile))
    useKey(dirname(accountsFile), fingerprint(connection.key), connection.baseUrl);
}

/**
 * Everybody knows the key of the sandbox, what is kept in memory is gone with the process, and the key of a workspace's own service
 * opens nothing else.
 */
function isSecret({ origin, sandbox, key }: ServiceConnection, accountsFile: string): boolean {
  return !sandbox && origin !== ownModelsOrigin && key !== sandboxKey && accountsFile !== ":memory:";
}

export async function openAccount(options: AccountOptions): Promise<OpenAccount> {
  const { connection, clock, log } = options;
  admitKey(connection, options.place.accountsFile);
  const accounts = await openShared(options);
  const keyPrint = fingerprint(connection.key);
  const origin = await accounts.serviceAt(connection.origin);
  const workspace = loggedWorkspace(options.place);
  await accounts.usedIn(workspace);
  let account = await accounts.accountOf(origin, keyPrint);
  // A percentage needs the plan.
  const { share: _, ...inNumbers } = options.limits ?? {};
  await accounts.narrowLimits(account.id, inNumbers);
  const spendLog = accounts.spendLog({
    origin,
    fingerprint: keyPrint,
    workspace: workspace.name,
  });
  const caller = () => ({ accountId: account.id, fingerprint: keyPrint });
  const opened: OpenLanes[] = [];
  const lanes = (count: number) => {
    const some = lanesOfAccount(options.place.accountsFile, account.id, keyPrint, count);
    opened.push(some);
    return some;
  };
  let isWarned = false;
  const onMe = async ({ me, over }: MeRead) => {
    const counters = countersIn(me);
    if (typeof counters === "string" && !isWarned) {
      isWarned = true;
      log.warn(
        { wrong: counters },
        "the service does not report the key's counters, so an unanswered request cannot be settled",
      );
    }
    const requests = asRequestCount(me.api_key.requests_count);
    if (requests === null) return;
    // Requests from elsewhere use up the same quota.
    const foreign = await accounts.counted(caller(), { requests, over });
    if (foreign > 0) {
      log.warn(
        {},
        `${count(foreign, "request")} with this key ${foreign === 1 ? "was" : "were"} not made from here: another machine or program uses the key, or you tried another address of the service. If others use it, leave them a part of the quota: --share 50%`,
      );
    }
  };
  const { service, close } = connectService(connection.baseUrl, {
    accounts,
    key: connection.key,
    proxies: connection.proxies ?? null,
    caller,
    clock,
    log,
    signal: options.signal,
    onDailyLimit: options.onDailyLimit,
    ...(options.onWait ? { onWait: options.onWait } : {}),
    onSlowed: (pacing) =>
      log.warn(
        { pacing },
        "the service refused a request within the limits: requests are spaced more widely from now on",
      ),
    onMe,
  });

  return {
    origin,
    baseUrl: connection.baseUrl,
    accounts,
    service,
    accountId: () => account.id,
    fingerprint: keyPrint,
    spendLog,
    lanes,
    async identify() {
      const reading = await readAccount({ service, spendLog, lanes: lanes(1) }).catch((error: unknown) =>
        explain(error, connection),
      );
      const { me } = reading;
      noteKeyUse(connection, options.place.accountsFile);
      if (me.user.id !== "")
        account = await accounts
          .name(account.id, me.user.id)
          .catch((error: unknown) => refuseOther(error, connection.sandbox));
      const plan = limitsOf(me.subscription?.plan ?? "Starter");
      if (!plan.known) log.warn({ plan: me.subscription?.plan }, "unknown plan: the smallest limits apply");
      const { perDay } = narrowed(plan, options.limits ?? {});
      if (perDay !== null && perDay < 3) {
        throw new EarlyExit(
          "usage",
          `--share leaves ${perDay} of the day's requests: expected 3 or more. Nothing was submitted.`,
        );
      }
      await accounts.setLimits(account.id, plan);
      await accounts.narrowLimits(account.id, options.limits ?? {});
      // A service that does not name the user names the same one as before with this key.
      const id = me.user.id === "" ? (account.userId ?? `key ${keyPrint}`) : me.user.id;
      return { ...reading, me: { ...me, user: { ...me.user, id } } };
    },
    models: async () => {
      const list = await service.models().catch((error: unknown) => explain(error, connection));
      noteKeyUse(connection, options.place.accountsFile);
      const usable = usableModels(list, log);
      const prices = usable.models.map(
        ({ model_key: key, credits_cost: cost }) => [key, credits(cost)] as const,
      );
      await accounts.listed(account.id, new Map(prices));
      return usable;
    },
    async close() {
      await close();
      for (const some of opened) some.close();
      await accounts.close();
    },
  };
}

const keysShown = 5;

/** The models that can be planned with, and the keys of those that have no price, if there are any. */
export interface UsableModels extends ModelList {
  unpriced?: readonly string[];
}

/** Leaves out models whose price is not an amount. If several models have the same key, the first counts. */
export function usableModels(list: ModelList, log: Log): UsableModels {
  const models = new Map<string, Model>();
  const unpriced = new Map<string, string>();
  const repeated: string[] = [];
  for (const model of list.models) {
    const { model_key: key, credits_cost: price } = model;
    if (models.has(key)) repeated.push(key);
    else if (asCharge(price) === null)
      unpriced.set(key, Number.isNaN(price) ? key : `${key} (${price} credits)`);
    else models.set(key, model);
  }
  const some = (of: readonly string[]) =>
    of.slice(0, keysShown).join(", ") + (of.length > keysShown ? ` and ${of.length - keysShown} more` : "");
  if (unpriced.size > 0) log.warn({}, `price cannot be used: ${some([...unpriced.values()])}; left out`);
  if (repeated.length > 0) log.warn({}, `listed twice: ${some(repeated)}; the first counts`);
  return {
    ...list,
    models: [...models.values()],
    ...(unpriced.size > 0 ? { unpriced: [...unpriced.keys()] } : {}),
  };
}

/** Lane locks are kept beside the account's data. In-memory data is not shared, so neither are its lanes. */
function lanesOfAccount(accountsFile: string, accountId: number, keyPrint: string, count: number): OpenLanes {
  const free = { take: () => ({ release() {} }), bracket: () => ({ release() {} }), close() {} };
  if (accountsFile === ":memory:") return free;
  const shared = join(dirname(accountsFile), "lanes");
  return openLanes({
    folder: join(shared, String(accountId)),
    count,
    gateFile: join(shared, `key-${keyPrint}.lock`),
  });
}

function refuseOther(error: unknown, sandbox: boolean): never {
  if (!(error instanceof OtherUser)) throw error;
  if (sandbox)
    throw new EarlyExit(
      "usage",
      "the rehearsals of this workspace were made with another sandbox, whose tasks this one does not know. Nothing was submitted. Use another folder as the workspace, or remove .bulkgen/sandbox and sandbox-outputs from this one.",
    );
  throw new EarlyExit(
    "usage",
    `${error.message}. Nothing was submitted. Set a key of user ${error.expected}, or make a new key for user ${error.got}.`,
  );
}

/** Throws a failure of the service as an EarlyExit whose message says what to do next; other errors as they are. */
function explain(error: unknown, connection: ServiceConnection): never {
  if (error instanceof NoRequestsUntil)
    throw new EarlyExit(
      "unfinished",
      `${error.message}. Nothing was submitted. Give the command again then; run and resume wait for it with --on-daily-limit wait.`,
      null,
      { cause: error },
    );
  if (!(error instanceof ServiceError)) throw error;
  // The service's message may already end with a full stop.
  const reason = error.message.replace(/\.$/, "");
  const [exit, message] = explained(error.kind, reason, connection);
  throw new EarlyExit(exit, message, null, { cause: error });
}

function explained(
  kind: ServiceError["kind"],
  reason: string,
  { baseUrl, keyFrom = "BULKGEN_API_KEY" }: ServiceConnection,
): [ExitName, string] {
  switch (kind) {
    case "key":
      return ["key", `the service refused the API key: ${reason}. Set a valid one in ${keyFrom}.`];
    case "subscription":
      return ["key", `no active subscription: ${reason}. Activate a plan, then run again.`];
    case "unreachable":
      return [
        "unreachable",
        `the service at ${baseUrl} cannot be reached: ${reason}. Nothing was submitted.`,
      ];
    case "interrupted":
      return ["interrupted", "interrupted; nothing was submitted"];
    default:
      return ["unreachable", `${baseUrl} does not answer like the service: ${reason}. Check the base URL.`];
  }
}
