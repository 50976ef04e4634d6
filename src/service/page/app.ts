import { createHmac, timingSafeEqual } from "node:crypto";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getCookie, setCookie } from "hono/cookie";
import { endpoints } from "../../api/endpoints.js";
import { sandboxKey } from "../../api/key.js";
import type { AccountAnswer, PageRefusal } from "../../api/service-page.js";
import { packageFile } from "../../package-file.js";
import { AdminProblem, changeAccount, type Desk, findAccount, listAccounts } from "../admin/accounts.js";
import { createKey, listKeys, revokeKey } from "../admin/keys.js";
import { BuiltPage } from "../http/built-page.js";
import { isLoopbackHost } from "../http/http.js";
import { type AccountRecord, asOf, fromMicro } from "../state/state.js";
import { recentTasks } from "./recent-tasks.js";

export interface DashboardOptions extends Desk {
  /** The token in the dashboard's link. */
  token: string;
  /** Credits the refunds of an account that are due, so that its balance is right. */
  settle(accountId: string): void;
}

const bodyBytesMax = 16 * 1024;

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  // The sender's origin distinguishes our page from other sites.
  "Referrer-Policy": "same-origin",
  // A key is shown once, so the browser must not cache it.
  "Cache-Control": "no-store",
};

/** The user's dashboard, to be mounted at /dashboard: the page, which shows nothing by itself, and what it asks for. */
export function dashboardApp(options: DashboardOptions): Hono {
  const app = new Hono();
  const access = new Access(options.token);
  const page = new BuiltPage(packageFile("dist/page/service"));
  guard(app, access);
  app.get("/*", async (context, next) => {
    const path = context.req.path.slice("/dashboard/".length);
    const file = page.file(path || "index.html");
    if (file === undefined) return next();
    const status = path === "" && !access.isAdmitted(context) ? 401 : 200;
    return context.body(file.content, status, { "Content-Type": file.type });
  });
  app.use(async (context, next) => {
    if (access.isAdmitted(context)) return next();
    return refusal(context, 401, "This page is opened by the link that the sandbox printed.");
  });
  answers(app, options, access);
  app.all("*", (context) => refusal(context, 404, "There is no such page."));
  return app;
}

function refusal(context: Context, status: 400 | 401 | 403 | 404 | 413, message: string) {
  return context.json({ error: { message } } satisfies PageRefusal, status);
}

function guard(app: Hono, access: Access): void {
  app.use(async (context, next) => {
    for (const [name, value] of Object.entries(headers)) context.header(name, value);
    const objection = access.objection(context);
    return objection === null ? next() : refusal(context, 403, objection);
  });
  app.get("/", async (context, next) => {
    const token = context.req.query("token");
    if (token === undefined || !access.admitByLink(context, token)) return next();
    return context.redirect("/dashboard", 303);
  });
  const onError = (context: Context) => refusal(context, 413, "This request is too large.");
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError }));
}

function answers(app: Hono, options: DashboardOptions, access: Access): void {
  app.get("/api/account", (context) => {
    const account = accountOf(options, context.req.query("user"));
    const before = wholeNumber(context.req.query("before"));
    const { formToken } = access;
    const origin = `http://${context.req.header("host")}`;
    return context.json({ ...accountAnswer(options, account, before, origin), formToken });
  });
  app.post("*", async (context, next) => {
    if (access.isOwnForm(context.req.header("x-form-token") ?? "")) return next();
    return refusal(context, 403, "This request does not come from this page. Open the dashboard again.");
  });
  app.post("/api/keys", async (context) => {
    const { user, name } = await readBody(context);
    return attempt(context, () => createKey(options, accountOf(options, user).id, name ?? ""));
  });
  app.post("/api/keys/:id/revoke", async (context) => {
    const { user } = await readBody(context);
    return attempt(context, () => revokeKey(options, accountOf(options, user).id, context.req.param("id")));
  });
  app.post("/api/activate", async (context) => {
    const { user } = await readBody(context);
    return attempt(context, () => {
      changeAccount(options, accountOf(options, user).id, { subscription: "active" });
      return {};
    });
  });
}

/** Answers with what an act returns, or with why it cannot be done. */
function attempt(context: Context, act: () => object) {
  try {
    return context.json(act());
  } catch (error) {
    if (!(error instanceof AdminProblem)) throw error;
    return refusal(context, 400, `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`);
  }
}

function accountAnswer(
  options: DashboardOptions,
  account: AccountRecord,
  before: number | null,
  origin: string,
): Omit<AccountAnswer, "formToken"> {
  const { id, email, name, plan, creditsPerMonth, periodEnd, cancelAtPeriodEnd } = account;
  const { balanceMicro, subscriptionStatus: subscription } = account;
  const balance = fromMicro(balanceMicro);
  const keys = listKeys(options, id);
  const publicKey = keys.some((key) => key.isPublic) ? sandboxKey : null;
  return {
    account: { id, email, name, balance, creditsPerMonth, plan, subscription, periodEnd, cancelAtPeriodEnd },
    accounts: listAccounts(options).map(({ id, name, email }) => ({ id, name, email })),
    keys,
    publicKey,
    firstCommand: firstCommand(origin, publicKey),
    ...recentTasks(options, id, before),
    now: options.clock.now(),
  };
}

function firstCommand(origin: string, key: string | null): string {
  const body = JSON.stringify({ model: "aurora-image-mini", prompt: "A lighthouse at dawn" });
  return `curl ${origin}${endpoints.generate.path} \\
  -H "Authorization: Bearer ${key ?? "YOUR_API_KEY"}" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;
}

/** The account with this id, or the sandbox's own, as of now. */
function accountOf(options: DashboardOptions, id: string | undefined): AccountRecord {
  const own = findAccount(options, undefined);
  const wanted = id && options.state.account(id) ? id : own.id;
  options.settle(wanted);
  return asOf(options.state.account(wanted) ?? own, options.clock.now());
}

/** The fields of a request that are text. */
async function readBody(context: Context): Promise<{ user?: string; name?: string }> {
  const body: unknown = await context.req.json().catch(() => null);
  const fields = Object.entries(body ?? {}).filter(([, value]) => typeof value === "string");
  return Object.fromEntries(fields);
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/**
 * Access to the dashboard: by the link that contains its token. The link is exchanged for a cookie, so
 * that the token does not stay in the address bar. Cookie and form token are made of the link's token and cannot be
 * turned back into it.
 *
 * The server is bound to the loopback interface, but every page in this machine's browser can reach that. So each
 * request must name this machine as its host, which rules out other names that resolve to 127.0.0.1. If it has an
 * origin, that must be ours; if it changes anything, it must carry a token that only our own pages hold.
 */
class Access {
  private readonly cookieValue: string;
  /** What every request that changes something carries. */
  readonly formToken: string;

  /** `token` is to be random and long: it is all that stands between the dashboard and the machine's other users. */
  constructor(private readonly token: string) {
    this.cookieValue = derived(token, "cookie");
    this.formToken = derived(token, "form");
  }

  /** Why a request must be refused; null if it may be answered. */
  objection(context: Context): string | null {
    const host = context.req.header("host") ?? "";
    if (!isLoopbackHost(host)) return "This page answers on loopback names only.";
    const origin = context.req.header("origin");
    if (origin !== undefined && origin !== `http://${host}`)
      return "This page takes no requests from other sites.";
    const changes = context.req.method !== "GET" && context.req.method !== "HEAD";
    if (changes && origin === undefined) return "A request that changes something must state its origin.";
    return null;
  }

  /** Whether the link's token is right; the answer then carries the cookie. */
  admitByLink(context: Context, given: string): boolean {
    if (!same(given, this.token)) return false;
    setCookie(context, cookieName(context), this.cookieValue, {
      httpOnly: true,
      sameSite: "Strict",
      path: "/dashboard",
    });
    return true;
  }

  /** Whether the request carries the cookie. */
  isAdmitted(context: Context): boolean {
    return same(getCookie(context, cookieName(context)) ?? "", this.cookieValue);
  }

  isOwnForm(given: string): boolean {
    return same(given, this.formToken);
  }
}

/** Cookies ignore ports, so the port is part of the name: each sandbox on a machine has its own cookie. */
function cookieName(context: Context): string {
  const port = /:(\d+)$/.exec(context.req.header("host") ?? "")?.[1] ?? "80";
  return `bulkgen_dashboard_${port}`;
}

function derived(token: string, purpose: string): string {
  return createHmac("sha256", token).update(purpose).digest("base64url");
}

/** Compares in constant time. */
function same(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(derived(given, "compare")), Buffer.from(derived(expected, "compare")));
}
