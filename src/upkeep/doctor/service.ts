import { announcedIn } from "../../api/announced.js";
import { meaningOf } from "../../api/errors.js";
import { fingerprint } from "../../api/key.js";
import { limitsOf } from "../../api/plans.js";
import { readMe } from "../../api/reading.js";
import type { Me } from "../../api/records.js";
import { parseJson } from "../../api/values.js";
import { answerText, oddBody } from "../../client/answer.js";
import { connectService, type Service, ServiceError } from "../../client/service.js";
import type { Clock } from "../../clock.js";
import { budgetText } from "../../core/budget.js";
import { EarlyExit } from "../../core/exit.js";
import { asBalance, showCredits } from "../../core/money.js";
import { type Account, type Caller, OtherUser } from "../../core/ports/accounts.js";
import type { Log, Reply } from "../../core/ports/send.js";
import type { Window } from "../../core/quota/quota.js";
import type { Accounts } from "../../store/accounts/accounts.js";
import { count } from "../../text/amounts.js";
import { admitKey, noteKeyUse, type ServiceConnection } from "../../workspace/account.js";
import { type AccountsPlace, openSharedData } from "../../workspace/state.js";
import { type Check, fine, problem, unchecked, warning } from "./machine.js";

export interface ServiceCheckOptions {
  connection: ServiceConnection;
  /** Where requests are counted. */
  place: Pick<AccountsPlace, "accountsFile" | "database">;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** Milliseconds that the clocks may differ; the service reports whole seconds. */
const skewMsMax = 30_000;

const expectations = {
  service: "an answer to GET me",
  key: "a key accepted by the service",
  subscription: "an active subscription",
  credits: "a balance above 0",
  models: "models that this version understands",
  limits: "requests left in the minute and the day",
  clock: "within 30 s of the service's",
} as const;

type Name = keyof typeof expectations;

/** A pause that is longer (ms) keeps whole nights from being made. */
const longPauseMs = 60 * 60_000;

/** Checks made with one GET me, which counts against the quota like any other and is not repeated. */
export async function examineService(options: ServiceCheckOptions): Promise<Check[]> {
  const { connection, place } = options;
  try {
    admitKey(connection, place.accountsFile);
  } catch (error) {
    if (!(error instanceof EarlyExit)) throw error;
    const todo = "add --trust-address once, or run `bulkgen trust`, if it is your service";
    return [
      problem("address", {
        expected: "an address at which this key was used before",
        got: error.message,
        todo,
      }),
      ...serviceUnchecked("the key is not sent to a new address"),
    ];
  }
  const accounts = await openSharedData(place, options.clock);
  try {
    const { origin, key } = connection;
    const account = await accounts.accountOf(await accounts.serviceAt(origin), fingerprint(key));
    const caller = { accountId: account.id, fingerprint: fingerprint(key) };
    const slot = await accounts.reserve(caller, "me");
    if (!slot.ticket) {
      const until = new Date(slot.waitUntil).toISOString().slice(0, 16).replace("T", " ");
      const { blockedUntil } = await accounts.quota(account.id);
      const isLong = blockedUntil !== null && blockedUntil - options.clock.now() > longPauseMs;
      const spent = {
        expected: expectations.limits,
        got: `none until ${until} UTC${blockedUntil === null ? "" : ", because the service asked for a pause"}`,
        todo:
          blockedUntil === null
            ? "ask again then"
            : "wait until then; if the service was wrong, `bulkgen account --forget-pause` asks it again now",
      };
      const limits = isLong ? problem("limits", spent, "unreachable") : warning("limits", spent);
      return [
        limits,
        ...rest(["service", "key", "subscription", "credits", "models", "clock"], "no request is left"),
      ];
    }
    const asked = await ask(options, accounts, caller, slot.ticket);
    if (meOf(asked.reply)) noteKeyUse(connection, place.accountsFile);
    return [
      ...judge(options.connection, asked.reply),
      ...(await details(accounts, account.id, asked.reply)),
      asked.models,
      clockCheck(asked),
    ];
  } finally {
    await accounts.close();
  }
}

/** The checks of the service when it cannot be asked. */
export function serviceUnchecked(why: string): Check[] {
  return rest(["service", "subscription", "credits", "limits", "models", "clock"], why);
}

interface Asked {
  reply: Reply;
  /** UTC ms of this machine, before and after. */
  sentAt: number;
  answeredAt: number;
  models: Check;
}

async function ask(
  { connection, clock, log, signal }: ServiceCheckOptions,
  accounts: Accounts,
  caller: Caller,
  ticket: { id: number },
): Promise<Asked> {
  const odd: string[] = [];
  const { service, close } = connectService(connection.baseUrl, {
    onOdd: (lines) => odd.push(...lines),
    accounts,
    key: connection.key,
    proxies: connection.proxies ?? null,
    caller: () => caller,
    clock,
    log,
    signal,
    onDailyLimit: "stop",
  });
  try {
    const sentAt = clock.now();
    const reply = await service.probe(ticket);
    const answeredAt = clock.now();
    if (reply.kind === "answer") odd.push(...(readMe(parseJson(reply.body))?.odd ?? []));
    const models = await modelsCheck(service, accounts, caller, reply, odd);
    return { reply, sentAt, answeredAt, models };
  } finally {
    await close();
  }
}

/** Reads the models, if the account was answered and a request is left; `odd` collects what was not understood. */
async function modelsCheck(
  service: Service,
  accounts: Accounts,
  { accountId }: Caller,
  reply: Reply,
  odd: readonly string[],
): Promise<Check> {
  const expected = expectations.models;
  if (meOf(reply) === null) return unchecked("models", expected, "the service did not say");
  const { minute, day } = await accounts.quota(accountId);
  if ([minute, day].some(({ limit, used }) => limit !== null && used >= limit))
    return unchecked("models", expected, "no request is left");
  const found = await service.models().catch((error: unknown) => {
    if (error instanceof ServiceError) return error;
    throw error;
  });
  if (found instanceof ServiceError) {
    const todo = found.kind === "unreadable" ? "check the base URL" : "ask again later";
    return problem("models", { expected, got: found.message, todo }, "unreachable");
  }
  const got = count(found.models.length, "model");
  if (odd.length === 0) return fine("models", expected, got);
  const todo = "no action if your rows do not use them; otherwise tell the people who run the service";
  return warning("models", { expected, got: `${got}, and not understood: ${odd.join("; ")}`, todo });
}

/** Whether the service answered, and whether it accepts the key. */
function judge({ baseUrl }: ServiceConnection, reply: Reply): Check[] {
  const reach = (got: string, todo: string) => [
    problem("service", { expected: expectations.service, got, todo }, "unreachable"),
    unchecked("key", expectations.key, "the service was not reached"),
  ];
  if (reply.kind !== "answer") {
    return reach(`${reply.reason} (${baseUrl})`, "check the network, the proxy and the base URL");
  }
  const said = answerText(reply);
  const reached = fine("service", expectations.service, baseUrl);
  if (reply.status === 200) {
    if (meOf(reply)) return [reached, fine("key", expectations.key, "accepted")];
    return reach(`200 with ${oddBody(reply) ?? "something else"} (${baseUrl})`, "check the base URL");
  }
  switch (meaningOf(reply.status).stop) {
    case "key": {
      const refused = {
        expected: expectations.key,
        got: said,
        todo: "set a valid key in BULKGEN_API_KEY or .env",
      };
      return [reached, problem("key", refused, "key")];
    }
    case "subscription":
      return [reached, fine("key", expectations.key, "known to the service")];
    case "pause": {
      const silent = { expected: expectations.service, got: said, todo: "wait a minute and ask again" };
      return [
        warning("service", silent),
        unchecked("key", expectations.key, "the service asked for a pause"),
      ];
    }
    default:
      return reply.status >= 500
        ? reach(said, "the service has trouble: ask again later")
        : reach(`${said} (${baseUrl})`, "check the base URL");
  }
}

async function details(accounts: Accounts, accountId: number, reply: Reply): Promise<Check[]> {
  if (reply.kind === "answer" && meaningOf(reply.status).stop === "subscription") {
    return [
      noSubscription(`none: the service answered ${reply.status}`),
      ...rest(["credits", "limits"], "there is no plan"),
    ];
  }
  const me = meOf(reply);
  if (!me) return rest(["subscription", "credits", "limits"], "the service did not say");
  const account = await named(accounts, accountId, me.user.id);
  if (account instanceof OtherUser)
    return [
      otherUser(account),
      ...rest(["subscription", "credits", "limits"], "they belong to another user"),
    ];
  const plan = limitsOf(me.subscription?.plan ?? "Starter");
  await accounts.setLimits(account.id, plan);
  return [subscription(me.subscription), balance(me), await limits(accounts, account.id, me, plan.known)];
}

function named(accounts: Accounts, accountId: number, user: string): Promise<Account | OtherUser> {
  return accounts.name(accountId, user).catch((error: unknown) => {
    if (error instanceof OtherUser) return error;
    throw error;
  });
}

function otherUser({ expected, got }: OtherUser): Check {
  const todo = `set a key of user ${expected}, or make a new key for user ${got}`;
  return problem("user", { expected: `user ${expected}, as before with this key`, got: `user ${got}`, todo });
}

function subscription(found: Me["subscription"]): Check {
  if (found === null) return noSubscription("none");
  const { plan, status, current_period_end: end, cancel_at_period_end: ends } = found;
  const got = `${plan}, ${status}, ${ends || status === "canceled" ? "ends" : "renews"} ${end.slice(0, 10)}`;
  const expected = expectations.subscription;
  if (status === "past_due")
    return problem("subscription", { expected, got, todo: "pay the open invoice" }, "key");
  if (status === "active" && !ends) return fine("subscription", expected, got);
  const known = status === "active" || status === "canceled";
  const todo = known
    ? "renew it before it ends"
    : "no action if requests work: bulkgen does not know this status";
  return warning("subscription", { expected, got, todo });
}

function noSubscription(got: string): Check {
  const todo = "activate a plan in the service's dashboard";
  return problem("subscription", { expected: expectations.subscription, got, todo }, "key");
}

function balance(me: Me): Check {
  const balance = asBalance(me.credits.balance);
  if (balance === null) return unchecked("credits", expectations.credits, "the service did not say");
  const { budget } = announcedIn(me);
  const got = budget ? budgetText(budget) : `${showCredits(balance)} left`;
  if (balance > 0) return fine("credits", expectations.credits, got);
  const todo = budget
    ? "continue when the budget of this key is renewed, or ask who keeps the service for a larger one"
    : "top up before the next run";
  return warning("credits", { expected: expectations.credits, got, todo });
}

async function limits(accounts: Accounts, accountId: number, me: Me, known: boolean): Promise<Check> {
  const { minute, day } = await accounts.quota(accountId);
  const got = `${free(minute)} this minute, ${free(day)} in 24 hours, as far as this machine knows`;
  if (!known && me.subscription !== null) {
    const todo = "update bulkgen; until then the smallest limits apply";
    return warning("limits", {
      expected: "a plan that bulkgen knows",
      got: `${me.subscription.plan}: ${got}`,
      todo,
    });
  }
  if (day.limit === null || day.used < day.limit) return fine("limits", expectations.limits, got);
  return warning("limits", {
    expected: expectations.limits,
    got,
    todo: "wait until requests of the last 24 hours expire",
  });
}

function free({ limit, used }: Window): string {
  return limit === null ? "any number" : `${Math.max(0, limit - used)} of ${limit} left`;
}

/** Compares the service's Date header with the middle of the request. */
function clockCheck({ reply, sentAt, answeredAt }: Asked): Check {
  const date = reply.kind === "answer" ? Date.parse(reply.headers["date"] ?? "") : Number.NaN;
  if (Number.isNaN(date))
    return unchecked("clock", expectations.clock, "no answer carried the service's time");
  // The header drops fractions of a second: half a second on average.
  const apart = (sentAt + answeredAt) / 2 - (date + 500);
  const seconds = Math.round(Math.abs(apart) / 1_000);
  const got = seconds === 0 ? "the same second" : `${seconds} s ${apart > 0 ? "ahead" : "behind"}`;
  if (Math.abs(apart) <= skewMsMax) return fine("clock", expectations.clock, got);
  return warning("clock", { expected: expectations.clock, got, todo: "synchronise the system clock (NTP)" });
}

function meOf(reply: Reply): Me | null {
  if (reply.kind !== "answer" || reply.status !== 200) return null;
  return readMe(parseJson(reply.body))?.record ?? null;
}

function rest(names: readonly Name[], why: string): Check[] {
  return names.map((name) => unchecked(name, expectations[name], why));
}
