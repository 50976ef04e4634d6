import { Hono } from "hono";
import type { SandboxModel } from "../catalogue/model.js";
import { loopbackOnly } from "../http/http.js";
import { openApi } from "./openapi.js";
import { referencePage } from "./page.js";
import { style } from "./style.js";

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

export interface Reference {
  models: readonly SandboxModel[];
  /** How long a signed output URL is good, in milliseconds. */
  urlMs: number;
}

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
