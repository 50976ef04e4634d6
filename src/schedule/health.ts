import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import type { Clock } from "../clock.js";
import { EarlyExit, exitNameOf } from "../core/exit.js";
import type { Health } from "../documents/schedules.js";
import type { Schedules } from "../store/schedules.js";
import { iso } from "../text/times.js";
import type { Daemon } from "./daemon.js";
import { nextStart } from "./due.js";
import type { MetricsSource } from "./metrics.js";

/** The state of the daemon over HTTP on loopback, for a watchdog: `/healthz`. */
export interface HealthOptions {
  daemon: Pick<Daemon, "running" | "turnedAt" | "trouble">;
  schedules: Schedules;
  clock: Clock;
  port: number;
}

/** The loop sleeps at most half a minute; after this long without a turn (ms) it hangs. */
const stalledMs = 120_000;
/** Only names that always mean this machine: a page in a browser can point any other name here. */
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export interface RunningHealth {
  /** `http://127.0.0.1:<port>` */
  url: string;
  close(): Promise<void>;
}

/** Throws EarlyExit when the port is taken. */
export function serveHealth(options: HealthOptions): Promise<RunningHealth> {
  return onLoopback(healthApp(options), options.port, "--port");
}

/** Serves `/metrics`. Throws EarlyExit when the port is taken. */
export function serveMetrics(source: MetricsSource, port: number): Promise<RunningHealth> {
  const app = loopbackApp();
  app.get("/metrics", async (context) => {
    const { metricsText } = await import("./metrics.js");
    const { text, type } = await metricsText(source);
    return context.body(text, 200, { "content-type": type });
  });
  return onLoopback(app, port, "--metrics");
}

async function onLoopback(app: Hono, port: number, flag: string): Promise<RunningHealth> {
  const server = serve({ fetch: app.fetch, port, hostname: "127.0.0.1" });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new EarlyExit("usage", `${flag}: expected a free port, got ${port}: ${error.message}`)),
    );
    server.once("listening", () => resolve());
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      }),
  };
}

async function lastRun(
  schedules: Pick<Schedules, "scheduledRunsIn">,
): Promise<NonNullable<Health["last"]> | null> {
  const ended = await schedules.scheduledRunsIn("ended");
  const last = ended.toSorted((a, b) => (a.endedAt ?? 0) - (b.endedAt ?? 0)).at(-1);
  if (last === undefined) return null;
  const { schedule, dueAt, endedAt, exit, note } = last;
  return {
    schedule,
    dueAt: iso(dueAt),
    endedAt: iso(endedAt ?? dueAt),
    exit,
    exitName: exitNameOf(exit),
    note,
  };
}

function loopbackApp(): Hono {
  const app = new Hono();
  app.use(async (context, next) =>
    loopbackHost.test(context.req.header("host") ?? "") ? next() : context.text("loopback names only\n", 421),
  );
  return app;
}

function healthApp(options: HealthOptions): Hono {
  const app = loopbackApp();
  app.get("/healthz", async (context) => {
    const { running, trouble, turnedAt } = options.daemon;
    const ok = options.clock.monotonic() - turnedAt < stalledMs && trouble === null;
    const all = await options.schedules.all();
    const next = all.flatMap((schedule) => {
      const at = nextStart(schedule, options.clock.now());
      return at === null ? [] : [{ schedule: schedule.name, dueAt: iso(at) }];
    });
    const [first] = next.toSorted((a, b) => a.dueAt.localeCompare(b.dueAt));
    const health: Health = {
      ok,
      trouble,
      schedules: all.length,
      paused: all.filter(({ pausedAt }) => pausedAt !== null).map(({ name }) => name),
      running,
      next: first ?? null,
      last: await lastRun(options.schedules),
    };
    return context.json(health, ok ? 200 : 503);
  });
  return app;
}
