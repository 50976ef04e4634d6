import { Hono } from "hono";
import { packageFile } from "../../package-file.js";
import { BuiltPage } from "../http/built-page.js";
import { loopbackOnly } from "../http/http.js";
import type { Reference } from "./guide.js";
import { openApi } from "./openapi.js";

const headers = {
  "Content-Security-Policy":
    // The viewer's icons are in its style sheet, as data. It asks this service alone.
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-cache",
};

/** The service's reference, for programs at /openapi.json and for people at /docs. Needs no key: it has no secrets. */
export function referenceApp(reference: Reference): Hono {
  const app = new Hono();
  const page = new BuiltPage(packageFile("dist/page/reference"));
  app.get("/", loopbackOnly, (context) => context.redirect("/docs"));
  app.get("/openapi.json", loopbackOnly, (context) =>
    context.json(openApi(reference, new URL(context.req.url).origin)),
  );
  app.get("/docs/*", loopbackOnly, (context, next) => {
    const file = page.file(context.req.path.slice("/docs/".length) || "index.html");
    return file ? context.body(file.content, 200, { ...headers, "Content-Type": file.type }) : next();
  });
  return app;
}
