import { Hono } from "hono";
import type { SandboxModel } from "../catalogue.js";
import { loopbackOnly } from "../host-check.js";
import { openApi } from "./openapi.js";
import { referencePage } from "./page.js";
import { style } from "./style.js";

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/** The service's reference, for programs at /openapi.json and for people at /docs. Needs no key: it tells no secret. */
export function referenceApp(models: readonly SandboxModel[]): Hono {
  const app = new Hono();
  const document = openApi();
  app.get("/openapi.json", loopbackOnly, (context) => context.json(document));
  app.get("/docs", loopbackOnly, (context) => context.html(referencePage(models), 200, headers));
  app.get("/docs/style.css", loopbackOnly, (context) =>
    context.body(style, 200, { ...headers, "Content-Type": "text/css; charset=utf-8" }),
  );
  return app;
}
