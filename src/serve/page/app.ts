import type { Context, Hono } from "hono";
import type { z } from "zod";
import {
  type NewServedKey,
  type ServedCheck,
  type ServedSpend,
  type ServedStanding,
  servedPageRequests,
} from "../../api/served-page.js";
import type { Clock } from "../../clock.js";
import { packageFile } from "../../package-file.js";
import { AdminProblem } from "../../service/admin/accounts.js";
import { attempt, guardedPage } from "../../service/page/guarded.js";
import { checkProviders } from "../check.js";
import type { OwnService } from "../own-service.js";
import { settleUnknown } from "../works/person.js";
import { spendOf } from "./spend.js";
import { standingOf } from "./standing.js";

export interface ServedPageOptions {
  service: OwnService;
  clock: Clock;
  /** What clients use as base URL. */
  url: string;
  /** The token in the page's link. */
  token: string;
}

/** The page of a served models file, to be mounted at /dashboard. */
export function servedPageApp({ token, ...parts }: ServedPageOptions): Hono {
  const page = { token, folder: packageFile("dist/page/serve"), printedBy: "`bulkgen serve`" };
  return guardedPage(page, (app, formToken) => {
    addAnswers(app, parts, formToken);
    addChanges(app, parts);
  });
}

type PageParts = Omit<ServedPageOptions, "token">;

/** What the page asks for. */
function addAnswers(app: Hono, { service, clock, url }: PageParts, formToken: string): void {
  app.get("/api/standing", (context) =>
    context.json({ ...standingOf(service, clock.now()), url, formToken } satisfies ServedStanding),
  );
  app.get("/api/spend", (context) => context.json(spendOf(service.state, clock.now()) satisfies ServedSpend));
  // Several pages that ask at once cause one check.
  let checking: Promise<ServedCheck> | null = null;
  app.get("/api/check", async (context) => {
    checking ??= check(service).finally(() => {
      checking = null;
    });
    return context.json(await checking);
  });
}

async function check(service: OwnService): Promise<ServedCheck> {
  const checked = await checkProviders(service);
  return checked.map(({ provider, problem }) => ({ provider, problem }));
}

/** What a person changes. */
function addChanges(app: Hono, { service, clock }: PageParts): void {
  app.post("/api/keys", async (context) => {
    const newKey = await bodyOf(context, servedPageRequests.newKey);
    return attempt(context, (): NewServedKey => {
      const { name: askedFor, ...settings } = given(newKey);
      const name = service.keys.freeName(askedFor);
      return { name, value: service.keys.create({ name, ...settings }, clock.now()) };
    });
  });
  app.post("/api/keys/:id/revoke", (context) =>
    attempt(context, () => {
      if (!service.keys.revoke(context.req.param("id"), clock.now()))
        throw new AdminProblem("this key is revoked already");
      return {};
    }),
  );
  app.post("/api/jobs/:id/resolve", async (context) => {
    const word = await bodyOf(context, servedPageRequests.word);
    return attempt(context, () => {
      const problem = settleUnknown(service, context.req.param("id"), given(word), clock.now());
      if (problem !== null) throw new AdminProblem(problem.replace(/\.$/, ""));
      return {};
    });
  });
}

/** The request's body; undefined if it is not what was asked for. */
async function bodyOf<T>(context: Context, schema: z.ZodType<T>): Promise<T | undefined> {
  const body: unknown = await context.req.json().catch(() => null);
  return schema.safeParse(body).data;
}

function given<T>(body: T | undefined): T {
  if (body === undefined) throw new AdminProblem("this request cannot be read; reload the page");
  return body;
}
