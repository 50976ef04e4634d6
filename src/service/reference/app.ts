import { Hono } from "hono";
import { loopbackOnly } from "../http/http.js";
import { openApi } from "./openapi.js";
import { type Reference, referencePage, style } from "./page.js";

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/** The service's reference, for programs at /openapi.json and for people at /docs. Needs no key: it has no secrets. */
export function referenceApp(reference: Reference): Hono {
  const app = new Hono();
  app.get("/", loopbackOnly, (context) => context.redirect("/docs"));
  app.get("/openapi.json", loopbackOnly, (context) => context.json(openApi()));
  app.get("/docs", loopbackOnly, (context) => {
    const { origin } = new URL(context.req.url);
    return context.html(referencePage({ ...reference, origin }), 200, headers);
  });
  app.get("/docs/style.css", loopbackOnly, (context) =>
    context.body(style, 200, { ...headers, "Content-Type": "text/css; charset=utf-8" }),
  );
  return app;
}
