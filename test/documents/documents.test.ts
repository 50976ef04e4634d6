import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { describe, expect, test, vi } from "vitest";
import type { IndexLine } from "../../src/archive/index-file.js";
import { commandList } from "../../src/cli/command-list.js";
import type { Run } from "../../src/core/ports/store.js";
import {
  type DocumentDefinition,
  type DocumentName,
  type Documents,
  documents,
  jsonSchemaOf,
} from "../../src/documents/documents.js";
import type { RunEvent } from "../../src/documents/run.js";
import type { SameType } from "../../src/documents/same-type.js";
import { openEvents } from "../../src/job/run/events.js";
import type { PlanDocument } from "../../src/plan/plan-json.js";
import { accountJson } from "../../src/report/account.js";
import { fleetJson } from "../../src/report/fleet.js";
import type { Progress } from "../../src/run/loop.js";
import { serveHealth } from "../../src/schedule/health.js";
import { openSqlite } from "../../src/sqlite.js";
import { openSchedules } from "../../src/store/schedules.js";
import { withStore } from "../../src/workspace/state.js";
import { findWorkspace } from "../../src/workspace/workspace.js";
import { s3Server } from "../bucket/s3-server.js";
import { allCommands } from "../cli/all-commands.js";
import { type Ended, newPlace, type Place, run, started } from "../e2e/command.js";
import type { InProcess } from "../e2e/in-process.js";
import { failedTask, type Script, type Scripted, startService } from "../e2e/service.js";
import { cheapModel, sheet } from "../e2e/sheet.js";
import { startPostgres } from "../fleet/postgres.js";
import { ManualClock } from "../manual-clock.js";
import { startHook } from "../notify/receivers.js";
import { me } from "../report/facts.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { Coverage } from "./coverage.js";
import { exampleOf } from "./example.js";
import { documentsOf, printedBy } from "./printed.js";

/**
 * What is written elsewhere than by `print` of the command line is compared with its schema here: this does not compile
 * where they differ.
 */
const written: {
  plan: SameType<PlanDocument, Documents["plan"]>;
  index: SameType<IndexLine, Documents["index"]>;
} = { plan: true, index: true };
/** Documents of no command. */
const ofNoCommand = ["event", "notification", "health", "manifest", "refusal"];

const seen = new Coverage();
/**
 * Of each document the first that is not empty, as docs/json.md shows it. Of each kind of event the first of the item that
 * comes last in the sheet, and of the ends one by a cap: which item is first to fail, and how far a run came that was paused
 * depends on how fast the machine is.
 */
const examples = new Map<string, unknown>();

function check(name: DocumentName, value: unknown, { folder }: Pick<Place, "folder">): void {
  seen.add(name, value);
  const key = name === "event" ? `event ${(value as RunEvent).event}` : name;
  if (value === null || (Array.isArray(value) && value.length === 0)) return;
  if (examples.has(key) && !(name === "event" && rankOf(value) > rankOf(examples.get(key)))) return;
  examples.set(key, exampleOf(value, folder));
}

function rankOf(event: unknown): string {
  const { rowId, exitName } = event as { rowId?: string; exitName?: string };
  return rowId ?? (exitName === "cap" ? "last" : "");
}

/** Runs a command, and checks what it prints against the schema that `bulkgen schema` prints. */
async function call(place: Place, line: string, how: InProcess = {}): Promise<Ended> {
  const args = line.split(" ");
  const end = await run(place, args, how);
  for (const { name, value } of printedBy(args, end.stdout)) check(name, value, place);
  return end;
}

/** The same, for a command that is to end with this code. */
async function called(code: number, place: Place, line: string, how: InProcess = {}): Promise<Ended> {
  const end = await call(place, line, how);
  expect(end, end.stderr).toMatchObject({ code });
  return end;
}

/** The line that a server prints when it listens. */
async function served(place: Place, line: string, use: (document: Record<string, string>) => Promise<void>) {
  const args = line.split(" ");
  const running = started(place, args, { serves: true });
  const [text] = await running.prints(/^\{.*\}\n/);
  for (const { name, value } of printedBy(args, text)) check(name, value, place);
  await use(JSON.parse(text)).finally(running.interrupt);
  await running.ended;
}

const picture = "plain-image";
const refused = (message: string): Scripted => ({
  status: 400,
  json: { error: { code: "CONTENT_POLICY", message } },
});

describe("documents", () => {
  test("of a picked file that was replaced", { timeout: 240_000 }, async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2));
    await called(0, place, "run set.csv --sandbox --json --yes");
    await called(0, place, "pick a01 a02 --sandbox --json");
    place.write("set.csv", sheet(2).replace("picture of a01", "drawing of a01"));
    await called(0, place, "run set.csv --sandbox --json --yes");
    await called(0, place, "pick --sandbox --json");
    await called(0, place, "gallery --picked --sandbox --json");
  });

  test("of a rehearsal from its plan to its archive", { timeout: 240_000 }, async () => {
    const place = newPlace();
    place.write("set.csv", sheet(4));
    await called(0, place, "status --sandbox --json");
    await called(0, place, "status --all --sandbox --json");
    await called(0, place, "plan set.csv --sandbox --json --max-credits 3 --first 3");
    await called(6, place, "run set.csv --sandbox --json --yes --sidecars --max-credits 2");
    await called(0, place, "resume --sandbox --json --max-credits 4");
    await called(0, place, "plan set.csv --sandbox --json");
    for (const line of [
      "status",
      "status --all",
      "find a01",
      "find picture",
      "find nothing",
      "gallery",
      "verify",
      "pick a01",
      "pick",
      "report",
    ])
      await called(0, place, `${line} --sandbox --json`);
    await called(0, place, "pick a02 --also --sandbox --json");
    await called(0, place, "pick a02 --undo --sandbox --json");
    await called(0, place, "export --sandbox --json");
    for (const rows of [4, 12]) {
      // The items of job set, in a sheet with another name: all of them, or the smaller part.
      place.write(`next-${rows}.csv`, sheet(rows));
      await called(2, place, `plan next-${rows}.csv --sandbox --json`);
    }
    place.write("headings.csv", `${sheet(1)}\nKitchen,,\n`);
    await called(2, place, "plan headings.csv --sandbox --json");
    await called(0, place, "redo a01 --yes --sandbox --json");
    await called(0, place, "pick a01-v2 --sandbox --json");
    place.write(
      "said.yaml",
      `rows: [{ id: a, prompt: hello }]
steps:
  - { name: voice, model: voice-clear }
  - { name: picture, model: aurora-image-mini }
  - { name: clip, model: reel-image, image_url: "@picture" }
`,
    );
    await called(0, place, "run said.yaml --sandbox --json --yes");
    const said = readFileSync(join(place.folder, "sandbox-outputs", "said", "index.jsonl"), "utf8");
    // Which is done first is chance, and the first one is the example.
    for (const line of said.trim().split("\n").toSorted()) check("index", JSON.parse(line), place);
    await called(0, place, "redo a-picture --yes --sandbox --json");
    await called(0, place, "pick a-picture-v2 --sandbox --json");
    await called(0, place, "report --by model --sandbox --json");
    const outputs = join(place.folder, "sandbox-outputs", "set");
    check("index", JSON.parse(readFileSync(join(outputs, "a01.json"), "utf8")), place);
    for (const line of readFileSync(join(outputs, "index.jsonl"), "utf8").trim().split("\n"))
      check("index", JSON.parse(line), place);
    writeFileSync(join(outputs, "a02.png"), "damaged");
    writeFileSync(join(outputs, ".bulkgen-left.part"), "left");
    writeFileSync(join(outputs, "stranger.txt"), "unknown");
    await called(5, place, "verify --read-data --sandbox --json");
    await called(0, place, "verify --read-data --repair --clean --yes --sandbox --json");
    rmSync(join(outputs, "a03.png"));
    await called(5, place, "gallery 1 --final --sandbox --json");
    await called(0, place, "plan set.csv --sandbox --json");
    await called(0, place, "doctor --rebuild --yes --sandbox --json");
  });

  test("of outputs that a bucket alone keeps", { timeout: 120_000 }, async () => {
    const env = await s3Server();
    const place = newPlace();
    place.write("set.csv", sheet(1));
    const flags = "--archive s3://inputs/team --archive-only";
    for (const edition of ["", " --edition web"])
      await called(0, place, `run set.csv --sandbox --json --yes ${flags}${edition}`, { env });
    for (const line of ["status", "find a01", "verify", "gallery"])
      await called(0, place, `${line} --sandbox --json`, { env });
    const lines = readFileSync(join(place.folder, "sandbox-outputs", "set", "index.jsonl"), "utf8");
    for (const line of lines.trim().split("\n")) check("index", JSON.parse(line), place);
  });

  test("of plans with everything that a plan can say", { timeout: 240_000 }, async () => {
    const place = newPlace();
    place.write(
      "bad.csv",
      `id,model,prompt,params.aspect_ratio\na,aurora-imagi,x,\nb,${cheapModel},x,16:09\nc,${cheapModel},,\n`,
    );
    await called(2, place, "plan bad.csv --sandbox --json");
    await called(5, place, "run bad.csv --sandbox --json --yes --skip-invalid --prompt [[moderation]]");
    place.write(
      "bad.yaml",
      `name: bad\nmatrix:\n  lang: [de, fr]\nrows:\n  - id: r-{{lang}}\n    model: aurora-imagi\n    prompt: "{{lang}}"\n`,
    );
    await called(2, place, "plan bad.yaml --sandbox --json");
    const photo = sharp({ create: { width: 8, height: 8, channels: 3, background: "#356" } }).png();
    writeFileSync(join(place.folder, "photo.png"), await photo.toBuffer());
    place.write(
      "chain.yaml",
      `name: chain
publish: {to: "https://files.example/", for: 48h}
rows:
  - {id: cup, prompt: a cup}
steps:
  - {name: picture, model: ${cheapModel}, approve: true}
  - {name: clip, model: reel-image, image_url: "@picture"}
`,
    );
    await called(0, place, "plan chain.yaml --sandbox --json --graph");
    place.write("own.csv", `id,model,prompt,image_url\nown,reel-image,a clip,photo.png\n`);
    await called(0, place, "plan own.csv --sandbox --json");
    place.write("set.csv", `${sheet(3)}\na04,${cheapModel},a picture of a01`);
    await called(0, place, "run set.csv --sandbox --json --yes");
    place.write(
      "set.csv",
      sheet(3).replace("a picture of a02", "another picture").replace("a03,", "renamed,"),
    );
    await called(0, place, "plan set.csv --sandbox --json");
    await called(0, place, "run set.csv --sandbox --json --yes");
    await called(0, place, "status 2 --sandbox --json");
    place.write(
      "set.csv",
      `${sheet(3)}\na04,${cheapModel},a picture of a01\na05,${cheapModel},a picture of a01`,
    );
    await called(0, place, "plan set.csv --sandbox --json");
    await called(0, place, "run own.csv --sandbox --json --yes");
    writeFileSync(join(place.folder, "photo.png"), await photo.negate().toBuffer());
    await called(0, place, "plan own.csv --sandbox --json");
    const poor = await startService({ balance: 3, plan: "Starter" });
    place.write("many.csv", sheet(60, picture));
    await called(7, place, "plan many.csv --json", poor);
  });

  test("of a run with failures, holds and lost answers, and of decisions about them", {
    timeout: 240_000,
  }, async () => {
    const place = newPlace();
    const service = await startService();
    place.write("set.csv", sheet(6, picture));
    service.script(troubled(service));
    await call(place, "run set.csv --json --yes --lanes 1", service);
    await call(place, "resume --settle wait --json", service);
    await called(0, place, "status --json");
    await called(0, place, "status --all --json");
    await called(0, place, "report --json");
    await called(0, place, "export --json");
    service.script(() => "serve");
    await called(2, place, "resolve a02 --adopt no-task --json", service);
    await called(10, place, "resolve a02 --resubmit --yes --json", service);
    await called(0, place, "status --json");
    await called(0, place, "resolve --all --skip --json", service);
    await called(0, place, "retry --yes --json", service);
  });

  test("of a prune", { timeout: 240_000 }, async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    await called(0, place, "run set.csv --sandbox --yes --json");
    const db = openSqlite(join(place.folder, ".bulkgen", "sandbox", "state.db"));
    db.exec("UPDATE outputs SET saved_at = saved_at - 100 * 86400000");
    db.close();
    await called(0, place, "prune --older-than 90d --dry-run --sandbox --json");
    await called(0, place, "prune --older-than 90d --yes --sandbox --json");
  });

  test("of several runs that are continued, and of one that is not", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    for (const job of ["a", "b"]) {
      place.write(`${job}.csv`, sheet(2, picture).replaceAll("a0", `${job}0`));
      await called(6, place, `run ${job}.csv --yes --json --max-credits 2`, service);
    }
    await called(6, place, "resume --all --json", service);
    service.script(() => ({ status: 401, json: { error: { code: "INVALID_API_KEY", message: "revoked" } } }));
    await called(3, place, "resume --all --json", service);
  });

  test("of a run that is watched, ordered and paused by others", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    place.write("set.csv", sheet(4, picture));
    service.script(async ({ what, before }): Promise<Scripted> => {
      if (what !== "POST generate" || before !== 1) return "serve";
      await called(0, place, "status --json");
      await called(0, place, "status --all --json");
      await called(0, place, "report --json");
      await called(0, place, "pause --json");
      return "serve";
    });
    const env = {
      ...service.env,
      BULKGEN_SCHEDULED_BY: "night",
      BULKGEN_SCHEDULED_FOR: "2026-11-21T02:00:00.000Z",
    };
    await called(8, place, "run set.csv --yes --lanes 1 --events", { env });
    service.script(() => "serve");
    await called(0, place, "status --json");
    await called(0, place, "cancel --json");
    await called(0, place, "status --all --json");
  });

  test("of a run that cannot reach the service", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    place.write("set.csv", sheet(4, picture));
    const words = ["run", "set.csv", "--yes", "--lanes", "1", "--unreachable-wait", "10h"];
    const going = started(place, words, service);
    await service.wasAsked("POST generate", 1);
    await service.down();
    await going.prints(/service unreachable/);
    for (const line of ["status", "status --all", "report"]) await called(0, place, `${line} --json`);
    const env = { ...service.env, BULKGEN_API_KEY: "svc_short" };
    await called(3, place, "account --json", { env });
    await service.up();
    await going.ended;
  });

  test("of a repair that has no requests left for all files", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    place.write("set.csv", sheet(2, picture));
    await called(0, place, "run set.csv --yes --json --rpd 8", service);
    rmSync(join(place.folder, "outputs", "set", "a01.png"));
    await called(5, place, "verify --repair --json", service);
  });

  test("of chains and approval", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    place.write(
      "set.yaml",
      `name: set
rows:
  - {id: cup, prompt: a cup}
  - {id: mug, prompt: a mug}
steps:
  - {name: draft, model: ${picture}, approve: true}
  - {name: final, model: ${picture}, prompt: "{{prompt}} again", image_url: "@draft"}
`,
    );
    await called(10, place, "run set.yaml --yes --json", service);
    await called(0, place, "status --json");
    await called(0, place, "approve cup-draft --json");
    await called(0, place, "reject mug-draft --json");
    await call(place, "resume --json", service);
    await called(10, place, "redo cup-draft --yes --json", service);
    await called(0, place, "approve cup-draft-v2 --json");
    await called(10, place, "gallery --final --json");
  });

  test("of tasks that are overdue, and requests that never arrived", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    place.write("late.csv", sheet(1, picture));
    service.script(({ what, path }) =>
      what === "GET task"
        ? {
            json: {
              ...failedTask({ task: path.split("/").at(-1) ?? "", body: {} }),
              status: "processing",
              error: null,
              completed_at: null,
            },
          }
        : "serve",
    );
    await called(8, place, "run late.csv --yes --json", service);
    await called(0, place, "status --json");
    place.write("day.csv", sheet(3, picture).replaceAll("a picture", "a day's picture"));
    await called(8, place, "run day.csv --yes --json --rpd 4 --lanes 1", service);
    for (const line of ["status", "status --all", "report"]) await called(0, place, `${line} --json`);
    place.write("lost.csv", sheet(2, picture).replaceAll("a picture", "another picture"));
    service.script(({ what, before }) => (what === "POST generate" && before === 1 ? "cut" : "serve"));
    await call(place, "run lost.csv --yes --json --lanes 1", service);
    await called(0, place, "status --json");
  });

  test("of the archive: adopted files, a copied workspace, a rebuilt database", {
    timeout: 240_000,
  }, async () => {
    const place = newPlace();
    place.write("one/set.csv", sheet(2));
    const one = { cwd: join(place.folder, "one") };
    await called(0, place, "run set.csv --sandbox --yes --json", one);
    const stock = join(place.folder, "one", "stock");
    mkdirSync(stock);
    cpSync(join(place.folder, "one", "sandbox-outputs", "set", "a01.png"), join(stock, "b01.png"));
    writeFileSync(join(stock, "b02.png"), "<html>");
    writeFileSync(join(stock, "stranger.png"), "x");
    place.write("one/new.csv", sheet(2).replaceAll("a0", "b0"));
    await call(place, "adopt stock new.csv --sandbox --json --dry-run", one);
    await called(5, place, "adopt stock new.csv --sandbox --json", one);
    const service = await startService();
    place.write("one/paid.csv", sheet(1, picture));
    await called(0, place, "run paid.csv --yes --json", { ...one, ...service });
    cpSync(join(place.folder, "one"), join(place.folder, "two"), { recursive: true });
    await called(0, place, "doctor --separate --json", { cwd: join(place.folder, "two") });
    await called(0, place, "doctor --rebuild --yes --json", one);
  });

  test("of the service: account, models, doctor", { timeout: 240_000 }, async () => {
    const place = newPlace();
    await called(0, place, "models --sandbox --json");
    await called(0, place, "account --sandbox --json");
    await called(0, place, "doctor --sandbox --json");
    await called(2, place, "doctor --json");
    const now = Date.now();
    const window = { limit: 60, used: 1, nextFreeAt: now, nextReleaseAt: now };
    const pacing = { spacingMs: 0, nextAt: now };
    const quota = { minute: window, day: window, releases: [], pacing, owedElsewhere: 0, blockedUntil: now };
    seen.add("account", accountJson({ me, quota }));
  });

  test("of a sandbox and its accounts and keys", { timeout: 240_000 }, async () => {
    const place = newPlace();
    await served(place, "sandbox --json --state service.db", async () => {
      await called(0, place, "sandbox keys create mine --json --state service.db");
      await called(0, place, "sandbox keys list --json --state service.db");
      await called(0, place, "sandbox keys revoke mine --json --state service.db");
      await called(0, place, "sandbox account --name Ada --json --state service.db");
      await called(0, place, "sandbox account --subscription none --json --state service.db");
      await called(0, place, "sandbox account --all --json --state service.db");
    });
    place.write(".bulkgen/.keep", "");
    await served(place, "dashboard --json --sandbox", async () => {});
  });

  test("of a served models file, its keys and its jobs", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const upstream = await new OpenAiUpstream().start();
    place.write(
      "models.yaml",
      `providers: { vendor: { kind: openai, base_url: "${upstream.url}/v1", key_env: VENDOR_KEY } }
models:
  - { key: hero, provider: vendor, category: image, credits: 4, request: { model: gpt-image-2 } }
  - { key: lost, provider: { kind: command }, category: image, command: [no-such-program, "--", "{{ prompt }}"] }
`,
    );
    const how = { env: { VENDOR_KEY: upstream.key } };
    await called(0, place, "trust --models models.yaml --yes", how);
    await called(2, place, "serve check --json", how);
    const budgets = "--credits 100 --credits-per-month 50 --credits-per-day 20";
    await called(0, place, `serve keys create anna ${budgets} --json`);
    upstream.next("submit", { after: "drop" });
    place.write("set.csv", "id,model,prompt\na,hero,A\n");
    const running = started(place, ["run", "set.csv", "--models", "models.yaml", "--yes", "--quiet"], {
      ...how,
      serves: true,
    });
    const jobs = async () =>
      // One that has another stage each time is no example.
      JSON.parse((await run(place, ["serve", "jobs", "--json"])).stdout) as {
        task_id: string;
        stage: string;
      }[];
    await vi.waitUntil(async () => (await run(place, ["serve", "jobs", "--json"])).code === 0, {
      timeout: 60_000,
    });
    await vi.waitUntil(async () => (await jobs())[0]?.stage === "unknown", { timeout: 60_000 });
    const [job] = await jobs();
    await called(0, place, "serve jobs --json");
    await called(0, place, `serve jobs resolve ${job?.task_id} --found its-id --json`);
    running.interrupt();
    await running.ended;
    await called(0, place, "serve keys list --json");
    await called(0, place, "serve keys edit anna --credits-per-day 30 --json");
    await called(0, place, "serve keys revoke anna --json");
    await called(0, place, "serve keys list --json");
    await served(place, "serve models.yaml --json --state other", async () => {});
    await upstream.stop();
  });

  test("of schedules", { timeout: 240_000 }, async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    await called(
      0,
      place,
      "schedule add nightly set.csv --cron @daily --until 06:00 --fresh --sandbox --json",
    );
    place.write("gone.csv", sheet(1));
    await called(0, place, "schedule add gone gone.csv --cron @daily --json");
    rmSync(join(place.folder, "gone.csv"));
    await called(0, place, "schedule run nightly --json");
    await called(2, place, "schedule run gone --json");
    const schedules = openSchedules(join(place.folder, ".bulkgen", "schedules.db"), new ManualClock());
    await schedules.claim("gone", Date.now() - 3_600_000, {
      state: "waiting",
      resumeAt: Date.now(),
      note: "the day's requests are used up",
    });
    schedules.close();
    for (const line of ["schedule list", "schedule show", "schedule show nightly", "schedule print"])
      await called(0, place, `${line} --json`, { env: { PATH: "/usr/local/bin:/usr/bin:/bin" } });
    await called(0, place, "report --json");
    await served(place, "schedule start --json --metrics 0", async ({ url }) => {
      check("health", await (await fetch(`${url}/healthz`)).json(), place);
    });
    await called(0, place, "schedule pause nightly --json");
    await called(0, place, "schedule list --json");
    await called(0, place, "schedule resume nightly --json");
    await called(0, place, "schedule edit nightly --max-credits 5 --json");
    await called(0, place, "schedule remove gone --json");
  });

  test("of a state that moves to a database, and of the queue there", { timeout: 240_000 }, async () => {
    const postgres = await startPostgres();
    try {
      const place = newPlace();
      place.write("set.csv", sheet(1));
      await called(0, place, "run set.csv --sandbox --yes --quiet");
      const url = postgres.newWorkspace();
      const moved = `migrate --sandbox --from .bulkgen/sandbox/state.db --to ${url}`;
      await called(0, place, `${moved} --json`);
      await called(0, place, `fleet rebuild --sandbox --database-url ${url} --json`);
    } finally {
      await postgres.close();
    }
  });

  test("of a fleet while a run is in progress", () => {
    const at = Date.UTC(2026, 10, 24, 9);
    const worker = { host: "studio-2", pid: 4711, version: "0.1.0", downloads: 8, busy: 3, done: 41 };
    const lock = { host: "studio-1", pid: 4242, since: at, run: 7 };
    const workers = [{ ...worker, does: "archive" as const, startedAt: at }];
    check("fleet", fleetJson({ workers, waiting: 12, longestWaitMs: 1_500, active: 3, lock }), newPlace());
  });

  test("of the daemon's health when it is in trouble", async () => {
    const clock = new ManualClock();
    const daemon = { running: ["nightly"], turnedAt: 0, trouble: "the disk is full" };
    const schedules = openSchedules(join(newPlace().folder, "schedules.db"), clock);
    const { url, close } = await serveHealth({ daemon, schedules, clock, port: 0 });
    seen.add("health", await (await fetch(`${url}/healthz`)).json());
    await close();
    schedules.close();
  });

  test("of commands after files and the set that fail", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const row = `rows: [{ id: cup, model: ${cheapModel}, prompt: a cup }]`;
    place.write("after.yaml", `${row}\nafter: { file: exit 3, set: exit 4, timeout: 2m }\n`);
    await called(0, place, "plan after.yaml --sandbox --json");
    await called(0, place, "trust after.yaml --yes");
    const documents = async (ending: string) => {
      const { stdout } = await called(5, place, `run after.yaml --sandbox --json --yes${ending}`);
      await called(0, place, "status --sandbox --json");
      await called(0, place, "status --all --sandbox --json");
      await called(0, place, "report --since 1h --sandbox --json");
      return JSON.parse(stdout).folder as string;
    };
    await documents("");
    const folder = await documents(" --after-file true");
    for (const name of readdirSync(folder)) if (name.startsWith("cup.")) rmSync(join(folder, name));
    await documents(" --after-file true --after-set true");
  });

  test("of a set that lacks an approved file", { timeout: 240_000 }, async () => {
    const place = newPlace();
    place.write("set.yaml", `approve: true\nrows: [{ id: cup, model: ${cheapModel}, prompt: a cup }]\n`);
    await called(10, place, "run set.yaml --sandbox --yes");
    await called(0, place, "reject cup --sandbox");
    await called(0, place, "run set.yaml --sandbox --json --yes --after-set true");
  });
});

describe("lines", () => {
  test("of the events of a run with retries, failures and holds", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    place.write("set.csv", sheet(6, picture));
    service.script(troubled(service));
    await called(10, place, "run set.csv --events --yes --lanes 1 --settle wait", service);
  });

  test("of the events of a run that waits for its quota, and whose cap is lifted", {
    timeout: 240_000,
  }, async () => {
    // The end of one that waits shows a balance only if the minute has a request left for it.
    const other = newPlace();
    other.write("set.csv", sheet(3));
    await called(6, other, "run set.csv --events --yes --sandbox --max-credits 2");
    const place = newPlace();
    place.write("set.csv", sheet(3));
    await called(6, place, "run set.csv --events --yes --sandbox --max-credits 2 --rpm 4");
    // A cap that leaves room again.
    const workspace = findWorkspace({ cwd: place.folder, env: place.env, sandbox: true });
    const clock = new ManualClock();
    const newest = await withStore(workspace, clock, (store) => store.run("newest"));
    const events = openEvents(workspace, clock, (event) => seen.add("event", event));
    await events.begin(newest as Run);
    for (const stops of [[{ kind: "cap", message: "the credit cap is reached" }], []])
      events.progress({ reason: null, stops } as unknown as Progress);
    await events.close();
  });

  test("that a webhook gets", { timeout: 240_000 }, async () => {
    const place = newPlace();
    const service = await startService();
    const hook = await startHook(200);
    place.write("set.csv", sheet(3, picture));
    service.script(({ body }) => (body.includes("a01") ? refused("content policy") : "serve"));
    const env = {
      ...service.env,
      BULKGEN_SCHEDULED_BY: "night",
      BULKGEN_SCHEDULED_FOR: "2026-11-21T02:00:00.000Z",
    };
    await called(6, place, `run set.csv --yes --json --max-credits 2 --lanes 1 --notify ${hook.url}`, {
      env,
    });
    await called(2, place, `run none.csv --yes --json --notify ${hook.url}`, { env });
    for (const { body } of hook.received) check("notification", JSON.parse(body), place);
    expect(hook.received.length).toBeGreaterThan(0);
  });
});

describe("every", () => {
  const withJson = allCommands(commandList).filter(([, { flags }]) => "json" in (flags ?? {}));

  test.each(withJson.map(([path]) => path.join(" ")))("command with --json has a schema: %s", (path) => {
    expect(documentsOf(path)).not.toEqual([]);
  });

  test("schema is of a command with --json, or one of those named above", () => {
    const paths = withJson.map(([path]) => path.join(" "));
    const all: [string, DocumentDefinition][] = Object.entries(documents);
    for (const [name, { commands }] of all)
      if (commands === undefined) expect([...Object.keys(written), ...ofNoCommand]).toContain(name);
    expect(new Set(paths.flatMap(documentsOf)).size).toBe(all.filter(([, { commands }]) => commands).length);
  });

  test("schema has a document that was checked, and every field of it a value", () => {
    const never = Object.keys(documents).filter(
      (name) => name !== "manifest" && !seen.names.has(name as DocumentName),
    );
    expect([...never, ...seen.missing()]).toEqual([]);
  });
});

test("the examples of docs/json.md are what the commands print; `vitest -u` writes them, and `npm run docs` the page", async () => {
  const sorted = [...examples].toSorted(([one], [other]) => one.localeCompare(other));
  const text = `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`;
  await expect(text).toMatchFileSnapshot("examples.txt");
});

describe("bulkgen schema", () => {
  test("lists the documents, and prints the schema of each", async () => {
    const place = newPlace();
    const list = await run(place, ["schema"]);
    for (const name of Object.keys(documents)) {
      expect(list.stdout).toContain(`\n${name} `);
      expect(JSON.parse((await run(place, ["schema", name])).stdout)).toEqual(
        jsonSchemaOf(name as DocumentName),
      );
    }
  });

  test("says which name is nearest to one that does not exist", async () => {
    expect(await run(newPlace(), ["schema", "statsu"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Did you mean status?"),
    });
  });
});

/** The first item fails and is retried, the second's answer is lost, the third is rejected, the fourth gets a 500. */
function troubled(service: Awaited<ReturnType<typeof startService>>): Script {
  return ({ what, path, body }): Scripted => {
    if (what === "POST generate" && body.includes("a02")) return "serve and cut";
    if (what === "POST generate" && body.includes("a03")) return refused("content policy");
    if (what === "POST generate" && body.includes("a04"))
      return { status: 500, json: { error: { code: "GENERATION_ERROR", message: "no" } } };
    const made = service.made.find(({ task }) => path.endsWith(task));
    if (what === "GET task" && made?.prompt.includes("a01")) return { json: failedTask(made) };
    if (
      what === "GET file" &&
      path.includes(service.made.find(({ prompt }) => prompt.includes("a05"))?.task ?? "-")
    )
      return { status: 404, text: "" };
    return "serve";
  };
}
