import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { sandboxKey } from "../api/key.js";
import { answerClientErrors, headerBytesMax, httpApp, unreadable } from "../service/http/http.js";
import { referenceApp } from "../service/reference/app.js";
import { Gateway } from "./faults/gateway.js";
import { type FaultPlan, type FaultPlanSettings, FaultScript } from "./faults/plan.js";
import { Sandbox, type SandboxOptions } from "./sandbox.js";

export interface RunningSandbox {
  /** `http://127.0.0.1:<port>`, to be used as base URL. */
  url: string;
  /** The key of the default account. */
  key: string;
  /** The link to the user's dashboard, which grants access. */
  dashboard: string;
  /** Resolves when all inputs that tasks have requested so far are fetched and judged. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Serves the sandbox on the loopback interface. Rejects when the port is taken or the state file cannot be used.
 */
export async function serveSandbox(options: SandboxOptions): Promise<RunningSandbox> {
  let origin = "";
  const script = new FaultScript(await planOf(options.faults));
  const sandbox = new Sandbox(options, () => origin);
  const { clock, random } = options;
  const gateway = new Gateway(sandbox, script, clock);
  const token = `${random.uuid()}${random.uuid()}`.replaceAll("-", "");
  const settle = (accountId: string) => sandbox.settle(accountId);
  const dashboard = loadedOnce(async () => {
    const { dashboardApp } = await import("../service/page/app.js");
    return new Hono().route(
      "/dashboard",
      dashboardApp({ state: sandbox.state, clock, random, token, settle }),
    );
  });
  const reference = referenceApp({ models: [...sandbox.models.values()], urlMs: sandbox.urlMs });
  const app = new Hono().all("/dashboard/*", dashboard).route("/", reference).route("/", httpApp(gateway));
  const listener = getRequestListener(app.fetch, { errorHandler: unreadable });
  const server = createServer({ maxHeaderSize: headerBytesMax, requireHostHeader: false }, listener);
  answerClientErrors(server);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(options.port ?? 0, "127.0.0.1", () => resolve());
    });
  } catch (error) {
    await sandbox.close();
    throw error;
  }
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  sandbox.resume();
  return {
    url: origin,
    key: sandboxKey,
    dashboard: `${origin}/dashboard?token=${token}`,
    settled: () => sandbox.settled(),
    close: async () => {
      gateway.close();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      await sandbox.close();
    },
  };
}

async function planOf(settings: FaultPlanSettings | undefined): Promise<FaultPlan> {
  if (settings === undefined) return { seed: "1", rules: [] };
  const { faultPlan } = await import("./faults/plan.js");
  return faultPlan.parse(settings);
}

/** Loads an app at its first request: a rehearsal never sends one. */
function loadedOnce(load: () => Promise<Hono>): (context: Context) => Promise<Response> {
  let app: Promise<Hono> | undefined;
  return async (context) => {
    app ??= load();
    return (await app).fetch(context.req.raw, context.env);
  };
}
