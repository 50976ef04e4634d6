import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { Gauge, Registry } from "prom-client";
import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import { toNumber } from "../core/money.js";
import type { Schedules } from "../store/schedules.js";
import type { Daemon } from "./daemon.js";
import { nextDue } from "./due.js";

/** What the daemon tells about itself over HTTP, on loopback: `/healthz` for a watchdog, `/metrics` for Prometheus. */
export interface HealthOptions {
  daemon: Pick<Daemon, "running" | "turnedAt" | "trouble">;
  schedules: Schedules;
  clock: Clock;
  port: number;
}

/** A loop that has not gone round for so long hangs (ms): it sleeps half a minute at most. */
const stalledMs = 120_000;
/** Only names that always mean this machine: a page in its browser could bring any other one here. */
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export interface RunningHealth {
  /** `http://127.0.0.1:<port>` */
  url: string;
  close(): Promise<void>;
}

/** Throws EarlyExit when the port is taken. */
export async function serveHealth(options: HealthOptions): Promise<RunningHealth> {
  const app = healthApp(options);
  const server = serve({ fetch: app.fetch, port: options.port, hostname: "127.0.0.1" });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(new EarlyExit("usage", `--port: expected a free port, got ${options.port}: ${error.message}`)),
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

function healthApp(options: HealthOptions): Hono {
  const app = new Hono();
  app.use(async (context, next) =>
    loopbackHost.test(context.req.header("host") ?? "") ? next() : context.text("loopback names only\n", 421),
  );
  app.get("/healthz", async (context) => {
    const { running, trouble, turnedAt } = options.daemon;
    const ok = options.clock.monotonic() - turnedAt < stalledMs && trouble === null;
    const all = await options.schedules.all();
    const next = all.flatMap((schedule) => {
      const at = nextDue(schedule, options.clock.now());
      return at === null ? [] : [{ schedule: schedule.name, at: new Date(at).toISOString() }];
    });
    const [first] = next.toSorted((a, b) => a.at.localeCompare(b.at));
    const health = { ok, trouble, schedules: all.length, running, next: first ?? null };
    return context.json(health, ok ? 200 : 503);
  });
  app.get("/metrics", async (context) => {
    const registry = await metrics(options);
    return context.body(await registry.metrics(), 200, { "content-type": registry.contentType });
  });
  return app;
}

/** Read from the database at each scrape, so that they survive a restart and count what other commands did. */
async function metrics({ daemon, schedules, clock }: HealthOptions): Promise<Registry> {
  const registry = new Registry();
  const registers = [registry];
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name: `bulkgen_${name}`, help, labelNames, registers });
  const nextDueAt = gauge("schedule_next_due_timestamp_seconds", "When it is due next.", "schedule");
  const running = gauge("schedule_running", "Whether a night of it is at work.", "schedule");
  const nights = gauge("nights", "Its nights on record, by what became of them.", "schedule", "state");
  const exit = gauge("schedule_last_exit_code", "Exit code of its last night.", "schedule");
  const endedAt = gauge("schedule_last_end_timestamp_seconds", "When its last night ended.", "schedule");
  const spent = gauge("schedule_last_credits", "Credits of its last night's run.", "schedule");
  const items = gauge("schedule_last_items", "Items of its last night's run, by state.", "schedule", "state");
  const turned = gauge("daemon_loop_age_seconds", "Since the daemon last looked at its schedules.");
  const refused = gauge("daemon_disk_refuses", "Whether the disk takes no word of some night.");
  refused.set(daemon.trouble === null ? 0 : 1);
  turned.set((clock.monotonic() - daemon.turnedAt) / 1_000);
  for (const schedule of await schedules.all()) {
    const { name } = schedule;
    nextDueAt.set({ schedule: name }, (nextDue(schedule, clock.now()) ?? 0) / 1_000);
    running.set({ schedule: name }, daemon.running.includes(name) ? 1 : 0);
    for (const [state, count] of await schedules.tally(name)) nights.set({ schedule: name, state }, count);
    const last = (await schedules.nights(name, lastMax)).find(({ state }) => state === "ended");
    if (!last) continue;
    if (last.exit !== null) exit.set({ schedule: name }, last.exit);
    if (last.endedAt !== null) endedAt.set({ schedule: name }, last.endedAt / 1_000);
    if (last.credits !== null) spent.set({ schedule: name }, toNumber(last.credits));
    for (const state of ["archived", "failed", "held"] as const) {
      const count = last[state];
      if (count !== null) items.set({ schedule: name, state }, count);
    }
  }
  return registry;
}

/** Newest nights among which the last one that ended is looked for. */
const lastMax = 100;
