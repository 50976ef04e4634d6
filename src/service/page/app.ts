import { createHmac, timingSafeEqual } from "node:crypto";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getCookie, setCookie } from "hono/cookie";
import { AdminProblem, changeAccount, type Desk, findAccount, listAccounts } from "../admin/accounts.js";
import { createKey, listKeys, type NewKey, revokeKey } from "../admin/keys.js";
import { isLoopbackHost } from "../http/http.js";
import { type AccountRecord, asOf } from "../state/state.js";
import { icon, notice, style } from "./document.js";
import { dashboardPage } from "./page.js";
import { recentTasks } from "./recent-tasks.js";

export interface DashboardOptions extends Desk {
  /** The token in the dashboard's link. */
  token: string;
  /** Credits the refunds of an account that are due, so that its balance is right. */
  settle(accountId: string): void;
}

const formBytesMax = 16 * 1024;

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  // The sender's origin distinguishes our forms from those of other sites.
  "Referrer-Policy": "same-origin",
  // A key is shown once, so the browser must not cache it.
  "Cache-Control": "no-store",
};

/** The user's dashboard, to be mounted at /dashboard. */
export function dashboardApp(options: DashboardOptions): Hono {
  const app = new Hono();
  const access = new Access(options.token);
  guard(app, access);
  app.get("/style.css", (context) => context.body(style, 200, { "Content-Type": "text/css; charset=utf-8" }));
  app.get("/icon.svg", (context) => context.body(icon, 200, { "Content-Type": "image/svg+xml" }));
  app.use(async (context, next) => {
    if (access.isAdmitted(context)) return next();
    return context.html(
      notice("Open the link", "This page is opened by the link that the sandbox printed."),
      401,
    );
  });
  pages(app, options, access);
  app.all("*", (context) => context.html(notice("Not found", "There is no such page."), 404));
  return app;
}

function guard(app: Hono, access: Access): void {
  app.use(async (context, next) => {
    for (const [name, value] of Object.entries(headers)) context.header(name, value);
    const objection = access.objection(context);
    return objection === null ? next() : context.html(notice("Refused", objection), 403);
  });
  app.get("/", async (context, next) => {
    const token = context.req.query("token");
    if (token === undefined || !access.admitByLink(context, token)) return next();
    return context.redirect("/dashboard", 303);
  });
  const onError = (context: Context) => context.html(notice("Too large", "This form is too large."), 413);
  app.use(bodyLimit({ maxSize: formBytesMax, onError }));
}

interface Form {
  token: string;
  user: string;
  name: string;
}

/** Does what a form asks for and returns what the address of the next page says about it. Throws AdminProblem. */
type FormAct = (account: AccountRecord, form: Form, keyId: string) => Record<string, string>;

/** Answers with the dashboard of an account, and with why its last form was refused. */
type Show = (
  context: Context,
  account: AccountRecord,
  refused: { why: string; name: string } | null,
) => Response | Promise<Response>;

/** After a form comes a page with an address of its own, so that reloading it sends nothing a second time. */
function onForm(options: DashboardOptions, access: Access, show: Show, act: FormAct) {
  return async (context: Context) => {
    const form = await readForm(context);
    if (!access.isOwnForm(form.token)) return strange(context);
    const account = accountOf(options, form.user);
    try {
      const next = act(account, form, context.req.param("id") ?? "");
      return context.redirect(`/dashboard?${new URLSearchParams({ user: account.id, ...next })}`, 303);
    } catch (error) {
      if (!(error instanceof AdminProblem)) throw error;
      return show(context, account, { why: error.message, name: form.name });
    }
  };
}

function pages(app: Hono, options: DashboardOptions, access: Access): void {
  // The value of the key made last, until a page has shown it.
  let unseen: NewKey | null = null;

  const show: Show = (context, account, refused) => {
    const made = context.req.query("made") === unseen?.id ? unseen : null;
    if (made) unseen = null;
    const page = dashboardPage({
      account,
      accounts: listAccounts(options),
      made,
      refused,
      keys: listKeys(options, account.id),
      tasks: recentTasks(options, account.id, wholeNumber(context.req.query("before"))),
      formToken: access.formToken,
      origin: `http://${context.req.header("host")}`,
      now: options.clock.now(),
    });
    return context.html(page, refused ? 400 : 200);
  };

  app.get("/", (context) => show(context, accountOf(options, context.req.query("user")), null));

  app.post(
    "/keys",
    onForm(options, access, show, (account, form) => {
      unseen = createKey(options, account.id, form.name);
      return { made: unseen.id };
    }),
  );
  app.post(
    "/activate",
    onForm(options, access, show, (account) => {
      changeAccount(options, account.id, { subscription: "active" });
      return {};
    }),
  );
  app.post(
    "/keys/:id/revoke",
    onForm(options, access, show, (account, _, keyId) => {
      revokeKey(options, account.id, keyId);
      return {};
    }),
  );
}

function strange(context: Context) {
  return context.html(
    notice("Refused", "This form does not belong to this page. Open the dashboard again."),
    403,
  );
}

/** The account with this id, or the sandbox's own, as of now. */
function accountOf(options: DashboardOptions, id: string | undefined): AccountRecord {
  const own = findAccount(options, undefined);
  const wanted = id && options.state.account(id) ? id : own.id;
  options.settle(wanted);
  return asOf(options.state.account(wanted) ?? own, options.clock.now());
}

async function readForm(context: Context): Promise<Form> {
  const fields = await context.req.parseBody().catch(() => ({}) as Record<string, unknown>);
  const text = (name: string) => (typeof fields[name] === "string" ? fields[name] : "");
  return { token: text("token"), user: text("user"), name: text("name") };
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/**
 * Access to the dashboard: by the link that contains its token. The link is exchanged for a cookie, so
 * that the token does not stay in the address bar. Cookie and form tokens are made of the link's token and cannot be
 * turned back into it.
 *
 * The server is bound to the loopback interface, but every page in this machine's browser can reach that. So each
 * request must name this machine as its host, which rules out other names that resolve to 127.0.0.1. If it has an
 * origin, that must be ours; if it changes anything, it must carry a token that only our own pages hold.
 */
class Access {
  private readonly cookieValue: string;
  /** What every form carries. */
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
    if (changes && origin === undefined) return "A form must state its origin.";
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
