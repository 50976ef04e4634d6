import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Context, Hono } from "hono";

/**
 * Who is let in. The page itself is public and knows nothing; everything about the workspace needs the token, which
 * comes in the fragment of the printed link and then in a header, so that no other site can make the browser send it:
 * there is no cookie to ride on. A picture cannot carry a header, so the address of a file holds a key derived from the token.
 * Host is checked because a name of another site may be pointed at this machine, Origin because its pages may ask.
 */
export class Guard {
  private readonly expected: Buffer;
  private readonly fileKey: string;

  constructor(token: string) {
    this.expected = digest(token);
    this.fileKey = createHmac("sha256", token).update("files").digest("hex").slice(0, 32);
  }

  /** The address of a file for the page. */
  fileAddress(itemId: number, number: number): string {
    return `/files/${this.fileKey}/${itemId}/${number}`;
  }

  /** The address of a ZIP for the page. */
  zipAddress(id: number): string {
    return `/zips/${this.fileKey}/${id}`;
  }

  hasFileKey(key: string): boolean {
    return timingSafeEqual(digest(key), digest(this.fileKey));
  }

  hasToken(context: Context): boolean {
    const [, token] = /^Bearer (\S+)$/.exec(context.req.header("authorization") ?? "") ?? [];
    return token !== undefined && timingSafeEqual(digest(token), this.expected);
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

const headers = {
  "Content-Security-Policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "media-src 'self'",
    "connect-src 'self'",
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
};

/** Puts the guard in front of everything that the app answers. */
export function guarded(app: Hono, guard: Guard): void {
  app.use(async (context, next) => {
    await next();
    for (const [name, value] of Object.entries(headers)) context.res.headers.set(name, value);
    if (context.req.path.startsWith("/api/")) context.res.headers.set("Cache-Control", "no-store");
  });
  app.use(async (context, next) => {
    const objection = objectionTo(context);
    if (objection !== null) return context.json({ error: { kind: "refused", message: objection } }, 403);
    if (!context.req.path.startsWith("/api/") || guard.hasToken(context)) return next();
    const message = "Open the link that `bulkgen dashboard` printed when it started.";
    return context.json({ error: { kind: "token", message } }, 401);
  });
}

const loopbackNames = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Why a request is refused, whatever it asks for; null if it may come from this page. */
function objectionTo(context: Context): string | null {
  const host = context.req.header("host") ?? "";
  const [, name = ""] = /^(.*?)(?::\d+)?$/.exec(host) ?? [];
  if (!loopbackNames.has(name.toLowerCase())) return "This address is not the dashboard's.";
  const origin = context.req.header("origin");
  if (origin !== undefined && origin !== `http://${host}`) return "This request comes from another site.";
  const site = context.req.header("sec-fetch-site");
  // A link that is clicked or typed opens the page itself, and nothing else.
  const opensPage = context.req.method === "GET" && context.req.header("sec-fetch-mode") === "navigate";
  if (site !== undefined && site !== "same-origin" && site !== "none" && !opensPage)
    return "This request comes from another site.";
  return null;
}
