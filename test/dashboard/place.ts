import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { z } from "zod";
import { dashboardApp } from "../../src/dashboard/app.js";
import { Commands } from "../../src/dashboard/commands.js";
import { FleetWatch } from "../../src/dashboard/fleet-watch.js";
import { PageFiles } from "../../src/dashboard/page-files.js";
import { WorkspaceWatch } from "../../src/dashboard/workspace-watch.js";
import type { Act, RefusedAnswer, Standing, StartedCommand } from "../../src/documents/page.js";
import { answers } from "../../src/documents/page.js";
import { systemClock } from "../../src/system.js";
import { findWorkspace } from "../../src/workspace/workspace.js";
import { afterThisFile } from "../after-file.js";
import { newPlace, type Place, started } from "../e2e/command.js";
import { type ScriptedService, startService } from "../e2e/service.js";

export const token = "0123456789abcdef";

/** The dashboard of a place, asked without a port. The commands that it starts run in this process. */
export interface OpenDashboard {
  place: Place;
  service: ScriptedService;
  /** Asks as the page does, or with other headers. */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** The answer to a GET. */
  get<Answer>(path: string): Promise<Answer>;
  post<Answer>(path: string, body: unknown): Promise<Answer>;
  /** Why a request was refused, with its status. */
  refusal(path: string, init?: RequestInit): Promise<[status: number, message: string]>;
  /** Acts, and waits until its command has ended. */
  act(act: Act): Promise<StartedCommand>;
}

export async function openDashboard({
  databaseUrl,
  environment = {},
  ...options
}: Parameters<typeof startService>[0] & {
  databaseUrl?: string;
  /** Of the dashboard and of the commands that it starts. */
  environment?: Record<string, string>;
} = {}): Promise<OpenDashboard> {
  const service = await startService(options);
  const place = newPlace();
  const hints = { cwd: place.folder, named: place.folder, sandbox: false, env: place.env };
  const workspace = findWorkspace(databaseUrl === undefined ? hints : { ...hints, databaseUrl });
  const database = databaseUrl === undefined ? {} : { BULKGEN_DATABASE_URL: databaseUrl };
  const running = new Set<Promise<unknown>>();
  const commands = new Commands(
    (words) => {
      const command = started(place, words, { env: { ...service.env, ...database, ...environment } });
      const ended = command.ended.then(({ code }) => code);
      running.add(ended);
      return { stdout: command.stdout, stderr: command.stderr, ended };
    },
    { sandbox: false, now: () => systemClock.now() },
  );
  const schedulesFile = join(workspace.markerFolder, "schedules.db");
  const watch = new WorkspaceWatch({
    workspace,
    schedulesFile,
    sandbox: false,
    version: "1.2.3",
    commands,
    clock: systemClock,
  });
  const fleet = new FleetWatch(workspace, systemClock);
  const pageFolder = mkdtempSync(join(tmpdir(), "bulkgen-page-"));
  writeFileSync(join(pageFolder, "index.html"), "<!doctype html><title>bulkgen</title>");
  const end = new AbortController();
  afterThisFile(async () => {
    end.abort();
    await Promise.allSettled(running);
    await watch.close();
    await fleet.close();
  });
  const app = dashboardApp({
    workspace,
    token,
    clock: systemClock,
    watch,
    fleet,
    commands,
    page: new PageFiles(pageFolder),
    schedulesFile,
    environment,
    signal: end.signal,
  });
  const ask: OpenDashboard["ask"] = async (path, init = {}) =>
    app.request(path, {
      ...init,
      headers: { host: "127.0.0.1:4000", authorization: `Bearer ${token}`, ...init.headers },
    });
  const json = async <Answer>(path: string, init?: RequestInit): Promise<Answer> => {
    const answer = await ask(path, init);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${answer.status} ${text}`);
    return schemaOf(init?.method ?? "GET", path).parse(JSON.parse(text)) as Answer;
  };
  const post = <Answer>(path: string, body: unknown) =>
    json<Answer>(path, { method: "POST", body: JSON.stringify(body) });
  return {
    place,
    service,
    ask,
    get: json,
    post,
    async refusal(path, init) {
      const answer = await ask(path, init);
      return [answer.status, ((await answer.json()) as RefusedAnswer).error.message];
    },
    async act(act) {
      const command = await post<StartedCommand>("/api/act", act);
      await Promise.allSettled(running);
      const { commands: all } = await json<Standing>("/api/standing");
      return all.find(({ id }) => id === command.id) ?? command;
    },
  };
}

/** What the server says that it answers there. */
function schemaOf(method: string, path: string): z.ZodType {
  const address = (path.split("?")[0] ?? "").replace(/runs\/\d+/, "runs/N").replace(/items\/\d+/, "items/ID");
  const schema = (answers as Readonly<Record<string, z.ZodType>>)[`${method} ${address}`];
  if (schema === undefined) throw new Error(`${method} ${address} is not in the answers of the page`);
  return schema;
}
