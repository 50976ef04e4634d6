import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { streamSSE } from "hono/streaming";
import type { z } from "zod";
import type { AlarmClock } from "../clock.js";
import { dayMs } from "../core/quota/quota.js";
import type { AccountOverTime, ProgressOverTime, RefusedAnswer, ScheduleEntry } from "../documents/page.js";
import { requests } from "../documents/page.js";
import { nextStart } from "../schedule/due.js";
import { shownValue } from "../schedule/shown-value.js";
import { type QuotaReader, spentStepMs } from "../store/accounts/quota-reader.js";
import { readSchedules } from "../store/schedules.js";
import type { Environment } from "../text/environment.js";
import { shellWord } from "../text/shell.js";
import type { Workspace } from "../workspace/workspace.js";
import {
  filePage,
  itemPage,
  itemStory,
  numberOf,
  type Reading,
  runDetail,
  runOf,
  runPage,
  waitingPage,
} from "./answers.js";
import { check, modelsFor } from "./check.js";
import { type Commands, wordsOf } from "./commands.js";
import { fileAnswer, thumbnailAnswer } from "./files.js";
import type { FleetWatch } from "./fleet-watch.js";
import { Guard, guarded } from "./guard.js";
import { priceOf } from "./offers.js";
import type { PageFiles } from "./page-files.js";
import { Refused } from "./refused.js";
import { Sheets } from "./sheets.js";
import type { WorkspaceWatch } from "./workspace-watch.js";
import { Zips } from "./zips.js";

export interface DashboardAppOptions {
  workspace: Workspace;
  token: string;
  clock: AlarmClock;
  watch: WorkspaceWatch;
  fleet: FleetWatch;
  commands: Commands;
  page: PageFiles;
  /** Of the workspace; it need not exist. */
  schedulesFile: string;
  /** How buckets are reached. */
  environment: Environment;
  /** Ends what is streamed when the dashboard ends. */
  signal: AbortSignal;
}

const sheetBytesMax = 200 * 1024 * 1024;
const jsonBytesMax = 16 * 1024 * 1024;
/** How often a stream checks for changes (ms), and sends the time in any case. */
const refreshMs = 400;
const atLeastMs = 10_000;
/** How long to wait for an act before the page is answered that it is still in progress (ms). */
const patienceMs = 2_000;
/** The most steps of time in a chart, and the shortest step (ms). */
const stepsMax = 300;
const stepMsMin = 5_000;
const accountMs = 7 * dayMs;
const scheduledRunsShown = 10;

/** The dashboard as an HTTP app: the page, what it reads, and what it asks for. */
export function dashboardApp(options: DashboardAppOptions): Hono {
  const { page, watch } = options;
  const app = new Hono();
  const guard = new Guard(options.token);
  guarded(app, guard);
  app.onError((error, context) => {
    const kind = error instanceof Refused ? error.kind : "broken";
    const status = kind === "missing" ? 404 : kind === "refused" || kind === "exists" ? 422 : 500;
    return refusal(context, kind, error.message, status);
  });
  const reading = async (): Promise<Reading> => {
    const [browser, owner] = await Promise.all([watch.browser(), watch.owner()]);
    const { workspace, clock } = options;
    return { browser, guard, workspace, clock, alive: owner?.run ?? null };
  };
  reads(app, options, reading);
  sheets(app, options);
  acts(app, options);
  files(app, options, guard);
  app.get(
    "/*",
    (context) => page.answer(context.req.path) ?? refusal(context, "missing", "There is no such page.", 404),
  );
  return app;
}

function refusal(
  context: Context,
  kind: RefusedAnswer["error"]["kind"],
  message: string,
  status: 404 | 422 | 500,
) {
  return context.json({ error: { kind, message } } satisfies RefusedAnswer, status);
}

function reads(app: Hono, options: DashboardAppOptions, reading: () => Promise<Reading>): void {
  const { watch, clock } = options;
  app.get("/api/standing", async (context) => context.json(await watch.standing()));
  app.get("/api/events", (context) => events(context, options));
  app.get("/api/runs", async (context) =>
    context.json(await runPage(await reading(), queryOf(context).before ?? null)),
  );
  app.get("/api/runs/:id{[0-9]+}", async (context) =>
    context.json(await runDetail(await reading(), idOf(context))),
  );
  app.get("/api/runs/:id{[0-9]+}/items", async (context) => {
    const { state = null, text, from, limit } = queryOf(context);
    return context.json(await itemPage(await reading(), { runId: idOf(context), state, text, from, limit }));
  });
  app.get("/api/runs/:id{[0-9]+}/progress", async (context) =>
    context.json(await progressOf(await reading(), idOf(context), watch, clock.now())),
  );
  app.get("/api/account", async (context) =>
    context.json(await accountOf(await reading(), watch, clock.now())),
  );
  app.get("/api/items/:id{[0-9]+}", async (context) =>
    context.json(await itemStory(await reading(), idOf(context))),
  );
  app.get("/api/files", async (context) => {
    const { text, before = null, run = null, limit } = queryOf(context);
    return context.json(await filePage(await reading(), { text, before, run, limit }));
  });
  app.get("/api/waiting", async (context) =>
    context.json(await waitingPage(await reading(), queryOf(context).what ?? "approval")),
  );
  app.get("/api/fleet", async (context) => context.json(await options.fleet.standing()));
  app.get("/api/schedules", async (context) => context.json(await schedulesOf(options)));
}

/** Sends the standing when it has changed. The loop ends with the page or with the dashboard. */
function events(context: Context, { watch, clock, signal }: DashboardAppOptions): Response {
  return streamSSE(context, async (stream) => {
    const ended = new AbortController();
    stream.onAbort(() => ended.abort());
    const until = AbortSignal.any([ended.signal, signal]);
    let sent = "";
    let sentAt = Number.NEGATIVE_INFINITY;
    while (!until.aborted) {
      const { now, ...standing } = await watch.standing();
      const content = JSON.stringify(standing);
      if (content !== sent || clock.monotonic() - sentAt >= atLeastMs) {
        sent = content;
        sentAt = clock.monotonic();
        await stream.writeSSE({ event: "standing", data: JSON.stringify({ ...standing, now }) });
      }
      await clock.sleep(refreshMs, until);
    }
  });
}

async function progressOf(
  { browser }: Reading,
  id: number,
  watch: WorkspaceWatch,
  now: number,
): Promise<ProgressOverTime> {
  const run = await runOf(browser, id);
  const startedAt = Date.parse(run.startedAt);
  const endedAt = run.endedAt === null ? now : Date.parse(run.endedAt);
  const lasted = endedAt - startedAt;
  const stepMs = Math.max(stepMsMin, Math.ceil(lasted / stepsMax / stepMsMin) * stepMsMin);
  const { archived, credits } = await browser.progress(id, stepMs);
  const requests = await withQuota(
    watch,
    run,
    async (quota) => (await quota?.requests(startedAt, stepMs)) ?? [],
  );
  return {
    stepMs,
    startedAt,
    archived,
    credits: credits.map(({ at, amount }) => ({ at, amount: numberOf(amount) })),
    requests: requests.filter(({ at }) => at <= endedAt),
    forecast: run.forecast
      ? {
          endsAt: startedAt + run.forecast.ms,
          items: Object.values(run.counts).reduce((sum, items) => sum + items, 0),
        }
      : null,
  };
}

async function accountOf({ browser }: Reading, watch: WorkspaceWatch, now: number): Promise<AccountOverTime> {
  const [newest] = await browser.runs(null, 1);
  const since = now - accountMs;
  return withQuota(watch, newest, async (quota) => ({
    stepMs: spentStepMs,
    spent: ((await quota?.spent(since)) ?? []).map(({ at, amount }) => ({ at, amount: numberOf(amount) })),
    requests: (await quota?.requests(now - dayMs, spentStepMs)) ?? [],
  }));
}

/** Opens the quota of a run's account, and closes it again; null without a run, or if it cannot be opened. */
async function withQuota<Result>(
  watch: WorkspaceWatch,
  run: Parameters<WorkspaceWatch["quotaOf"]>[0] | undefined,
  use: (quota: QuotaReader | null) => Promise<Result>,
): Promise<Result> {
  const quota = run === undefined ? null : await watch.quotaOf(run);
  try {
    return await use(quota);
  } finally {
    await quota?.close();
  }
}

async function schedulesOf({ schedulesFile, clock }: DashboardAppOptions): Promise<ScheduleEntry[]> {
  const schedules = readSchedules(schedulesFile);
  if (schedules === null) return [];
  try {
    const all = await schedules.all();
    return await Promise.all(
      all.map(async (schedule) => ({
        name: schedule.name,
        manifest: schedule.manifest,
        cron: schedule.cron,
        zone: schedule.zone,
        flags: schedule.flags.map(([name, value]) =>
          value === undefined ? name : shellWord(`${name}=${shownValue(name.slice("--".length), [value])}`),
        ),
        next: nextStart(schedule, clock.now()),
        pausedAt: schedule.pausedAt,
        runs: (await schedules.scheduledRuns(schedule.name, scheduledRunsShown)).map(
          ({ dueAt, state, exit, note, run }) => ({ dueAt, state, exit, note, run }),
        ),
      })),
    );
  } finally {
    schedules.close();
  }
}

function sheets(app: Hono, options: DashboardAppOptions): void {
  const { workspace, commands, watch } = options;
  const all = new Sheets(workspace.root);
  const tooLarge = (context: Context) =>
    refusal(context, "refused", "The file is too large for the page.", 422);
  app.get("/api/sheets", async (context) => context.json(all.list(await usedSheets(watch))));
  app.post("/api/sheets", bodyLimit({ maxSize: sheetBytesMax, onError: tooLarge }), async (context) => {
    const { name, replace } = queryOf(context);
    const bytes = new Uint8Array(await context.req.arrayBuffer());
    return context.json(await all.drop(name, bytes, replace !== undefined));
  });
  app.get("/api/sheet", async (context) => context.json(await all.open(queryOf(context))));
  app.get("/api/sheet/rows", async (context) => {
    const { from, limit, ...asked } = queryOf(context);
    return context.json(await all.rows(asked, from, limit));
  });
  app.post("/api/sheet/cells", bodyLimit({ maxSize: jsonBytesMax, onError: tooLarge }), async (context) => {
    const { version, ...sheet } = queryOf(context);
    return context.json(await all.change(sheet, await bodyOf(context, requests.cellChanges), version));
  });
  app.post("/api/check", bodyLimit({ maxSize: jsonBytesMax, onError: tooLarge }), async (context) => {
    const choices = await bodyOf(context, requests.startChoices);
    all.pathOf(choices.file);
    return context.json(await check(choices, commands));
  });
  app.get("/api/models", async (context) => context.json(await modelsFor(commands)));
}

/** A workspace without runs has used none. */
async function usedSheets(watch: WorkspaceWatch): Promise<string[]> {
  try {
    const runs = await (await watch.browser()).runs(null, 50);
    return runs.map(({ manifest }) => manifest);
  } catch (error) {
    if (error instanceof Refused) return [];
    throw error;
  }
}

function acts(app: Hono, { commands, clock, signal, workspace }: DashboardAppOptions): void {
  const small = bodyLimit({
    maxSize: jsonBytesMax,
    onError: (context) => refusal(context, "refused", "This request is too large.", 422),
  });
  app.post("/api/offer", small, async (context) =>
    context.json(await priceOf(await bodyOf(context, requests.act), workspace, clock)),
  );
  app.post("/api/act", small, async (context) => {
    const act = await bodyOf(context, requests.act);
    return context.json(await commands.start(wordsOf(act), clock.sleep(patienceMs, signal)));
  });
}

function files(app: Hono, { watch, environment, workspace, clock }: DashboardAppOptions, guard: Guard): void {
  const zips = new Zips(watch, workspace, clock);
  const small = bodyLimit({
    maxSize: jsonBytesMax,
    onError: (context) => refusal(context, "refused", "This request is too large.", 422),
  });
  app.post("/api/zip", small, async (context) => {
    const { id, ...ready } = await zips.prepare(await bodyOf(context, requests.zipped));
    return context.json({ src: guard.zipAddress(id), ...ready });
  });
  app.get("/zips/:key/:id{[0-9]+}", async (context) =>
    guard.hasFileKey(context.req.param("key"))
      ? zips.answer(idOf(context))
      : refusal(context, "missing", "There is no such file.", 404),
  );
  app.get("/files/:key/:id{[0-9]+}/:number{[0-9]+}", async (context) => {
    const { key, number } = context.req.param();
    const file = guard.hasFileKey(key)
      ? await (await watch.browser()).file(idOf(context), Number(number))
      : null;
    if (file === null) return refusal(context, "missing", "There is no such file.", 404);
    return context.req.query("small") === undefined
      ? fileAnswer(file, context.req.header("range"), environment)
      : thumbnailAnswer(file, environment);
  });
}

function idOf(context: Context): number {
  return Number(context.req.param("id"));
}

function queryOf(context: Context): z.infer<typeof requests.query> {
  return parsed(requests.query, context.req.query());
}

async function bodyOf<Body>(context: Context, shape: z.ZodType<Body>): Promise<Body> {
  let body: unknown;
  try {
    body = await context.req.json();
  } catch {
    throw new Refused("expected JSON");
  }
  return parsed(shape, body);
}

function parsed<Value>(shape: z.ZodType<Value>, value: unknown): Value {
  const { success, data, error } = shape.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  throw new Refused(`${issue?.path.join(".") ?? ""}: ${issue?.message ?? "not understood"}`);
}
