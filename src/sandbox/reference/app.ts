import { Hono } from "hono";
import type { SandboxModel } from "../catalogue/model.js";
import { loopbackOnly } from "../http/host-check.js";
import { style } from "./style.js";

const headers = {
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
};

/**
 * The service's reference, for programs at /openapi.json and for people at /docs. Needs no key: it tells no secret. It is
 * loaded when it is asked for, which hardly any process is.
 */
export function referenceApp(models: readonly SandboxModel[]): Hono {
  const app = new Hono();
  app.get("/openapi.json", loopbackOnly, async (context) => {
    const { openApi } = await import("./openapi.js");
    return context.json(openApi());
  });
  app.get("/docs", loopbackOnly, async (context) => {
    const { referencePage } = await import("./page.js");
    return context.html(referencePage(models), 200, headers);
  });
  app.get("/docs/style.css", loopbackOnly, (context) =>
    context.body(style, 200, { ...headers, "Content-Type": "text/css; charset=utf-8" }),
  );
  return app;
}
