import { createHmac, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import { getCookie, setCookie } from "hono/cookie";
import { isLoopbackHost } from "../http/host-check.js";

/**
 * Who may see the dashboard: whoever was given the link that holds its token. The link is exchanged for a cookie, so
 * that the token does not stay in the address bar. Cookie and form tokens are made of the link's token and cannot be
 * turned back into it.
 *
 * The server is bound to the loopback interface, but every page in this machine's browser can reach that. So each
 * request has to name this machine as its host, which no name can that was bent to mean 127.0.0.1; to come, if it says
 * from where, from this very origin; and, if it changes anything, to carry a token that only our own pages hold.
 */
export class Access {
  private readonly cookieValue: string;
  /** What every form carries. */
  readonly formToken: string;

  /** `token` is to be random and long: it is all that stands between the dashboard and the machine's other users. */
  constructor(private readonly token: string) {
    this.cookieValue = derived(token, "cookie");
    this.formToken = derived(token, "form");
  }

  /** Why a request may not be answered whatever it asks for; null when it may. */
  objection(context: Context): string | null {
    const host = context.req.header("host") ?? "";
    if (!isLoopbackHost(host)) return "This page answers on loopback names only.";
    const origin = context.req.header("origin");
    if (origin !== undefined && origin !== `http://${host}`)
      return "This page takes no requests of other sites.";
    const changes = context.req.method !== "GET" && context.req.method !== "HEAD";
    if (changes && origin === undefined) return "A form has to say where it was sent from.";
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

/** Cookies do not tell ports apart: with the port in its name, the sandboxes of one machine keep theirs. */
function cookieName(context: Context): string {
  const port = /:(\d+)$/.exec(context.req.header("host") ?? "")?.[1] ?? "80";
  return `bulkgen_dashboard_${port}`;
}

function derived(token: string, purpose: string): string {
  return createHmac("sha256", token).update(purpose).digest("base64url");
}

/** Compares in a time that tells nothing about where two texts begin to differ. */
function same(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(derived(given, "compare")), Buffer.from(derived(expected, "compare")));
}
