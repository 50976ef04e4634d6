import { createHmac, timingSafeEqual } from "node:crypto";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getCookie, setCookie } from "hono/cookie";
import type { PageRefusal } from "../../api/service-page.js";
import { AdminProblem } from "../admin/accounts.js";
import { BuiltPage } from "../http/built-page.js";
import { isLoopbackHost } from "../http/http.js";

export interface GuardedPageOptions {
  /** The token in the page's link. */
  token: string;
  /** The folder with the page as it was built. */
  folder: string;
  /** What printed the link, for people. */
  printedBy: string;
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

/**
 * A page that only its link opens, to be mounted at /dashboard. The page shows nothing by itself; `answers` adds what it asks
 * for, and gets the token that its forms carry.
 */
export function guardedPage(
  { token, folder, printedBy }: GuardedPageOptions,
  answers: (app: Hono, formToken: string) => void,
): Hono {
  const app = new Hono();
  const access = new Access(token);
  const page = new BuiltPage(folder);
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
    return refusal(context, 401, `This page is opened by the link that ${printedBy} printed.`);
  });
  app.post("*", async (context, next) => {
    if (access.isOwnForm(context.req.header("x-form-token") ?? "")) return next();
    return refusal(context, 403, "This request does not come from this page. Open the dashboard again.");
  });
  answers(app, access.formToken);
  app.onError(({ message }, context) => refusal(context, 500, `This could not be done: ${message}.`));
  app.all("*", (context) => refusal(context, 404, "There is no such page."));
  return app;
}

function refusal(context: Context, status: 400 | 401 | 403 | 404 | 413 | 500, message: string) {
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

/** Answers with what an act returns, or with why it cannot be done. */
export function attempt(context: Context, act: () => object) {
  try {
    return context.json(act());
  } catch (error) {
    if (!(error instanceof AdminProblem)) throw error;
    return refusal(context, 400, `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`);
  }
}

/**
 * Access to a page: by the link that contains its token. The link is exchanged for a cookie, so
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

  /** `token` is to be random and long: it is all that stands between the page and the machine's other users. */
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

/** Cookies ignore ports, so the port is part of the name: each service on a machine has its own cookie. */
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
