import type { Context, Hono } from "hono";
import { endpoints } from "../../api/endpoints.js";
import { sandboxKey } from "../../api/key.js";
import type { AccountAnswer } from "../../api/service-page.js";
import { packageFile } from "../../package-file.js";
import { changeAccount, type Desk, findAccount, listAccounts } from "../admin/accounts.js";
import { createKey, listKeys, revokeKey } from "../admin/keys.js";
import { type AccountRecord, asOf, fromMicro } from "../state/state.js";
import { attempt, guardedPage } from "./guarded.js";
import { recentTasks } from "./recent-tasks.js";

interface AccountDesk extends Desk {
  /** Credits the refunds of an account that are due, so that its balance is right. */
  settle(accountId: string): void;
}

export interface DashboardOptions extends AccountDesk {
  /** The token in the dashboard's link. */
  token: string;
}

/** The user's dashboard, to be mounted at /dashboard. */
export function dashboardApp({ token, ...options }: DashboardOptions): Hono {
  const page = { token, folder: packageFile("dist/page/service"), printedBy: "the sandbox" };
  return guardedPage(page, (app, formToken) => answers(app, options, formToken));
}

function answers(app: Hono, options: AccountDesk, formToken: string): void {
  app.get("/api/account", (context) => {
    const account = accountOf(options, context.req.query("user"));
    const before = wholeNumber(context.req.query("before"));
    const origin = `http://${context.req.header("host")}`;
    return context.json({ ...accountAnswer(options, account, before, origin), formToken });
  });
  app.post("/api/keys", async (context) => {
    const { user, name } = await readBody(context);
    return attempt(context, () => createKey(options, accountOf(options, user).id, name ?? ""));
  });
  app.post("/api/keys/:id/revoke", async (context) => {
    const { user } = await readBody(context);
    return attempt(context, () => revokeKey(options, accountOf(options, user).id, context.req.param("id")));
  });
  app.post("/api/activate", async (context) => {
    const { user } = await readBody(context);
    return attempt(context, () => {
      changeAccount(options, accountOf(options, user).id, { subscription: "active" });
      return {};
    });
  });
}

function accountAnswer(
  options: AccountDesk,
  account: AccountRecord,
  before: number | null,
  origin: string,
): Omit<AccountAnswer, "formToken"> {
  const { id, email, name, plan, creditsPerMonth, periodEnd, cancelAtPeriodEnd } = account;
  const { balanceMicro, subscriptionStatus: subscription } = account;
  const balance = fromMicro(balanceMicro);
  const keys = listKeys(options, id);
  const publicKey = keys.some((key) => key.isPublic) ? sandboxKey : null;
  return {
    account: { id, email, name, balance, creditsPerMonth, plan, subscription, periodEnd, cancelAtPeriodEnd },
    accounts: listAccounts(options).map(({ id, name, email }) => ({ id, name, email })),
    keys,
    publicKey,
    firstCommand: firstCommand(origin, publicKey),
    ...recentTasks(options, id, before),
    now: options.clock.now(),
  };
}

function firstCommand(origin: string, key: string | null): string {
  const body = JSON.stringify({ model: "aurora-image-mini", prompt: "A lighthouse at dawn" });
  return `curl ${origin}${endpoints.generate.path} \\
  -H "Authorization: Bearer ${key ?? "YOUR_API_KEY"}" \\
  -H "Content-Type: application/json" \\
  -d '${body}'`;
}

/** The account with this id, or the sandbox's own, as of now. */
function accountOf(options: AccountDesk, id: string | undefined): AccountRecord {
  const own = findAccount(options, undefined);
  const wanted = id && options.state.account(id) ? id : own.id;
  options.settle(wanted);
  return asOf(options.state.account(wanted) ?? own, options.clock.now());
}

/** The fields of a request that are text. */
async function readBody(context: Context): Promise<{ user?: string; name?: string }> {
  const body: unknown = await context.req.json().catch(() => null);
  const fields = Object.entries(body ?? {}).filter(([, value]) => typeof value === "string");
  return Object.fromEntries(fields);
}

function wholeNumber(text: string | undefined): number | null {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
