import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type Ended,
  eventually,
  newPlace,
  type Place,
  type Running,
  type Started,
  start,
  started,
} from "./command.js";
import { masked } from "./mask.js";
import { me, type Script, type Scripted, type ScriptedService, startService, taskId } from "./service.js";
import { sheet } from "./sheet.js";
import { archivedItems, backdate, isStopped } from "./state.js";

/**
 * What a person sees, word for word, when something goes wrong: a file for each case, to be read. They are written
 * again with UPDATE_TRANSCRIPTS=1; then read what has changed as somebody would who does not know bulkgen.
 */
interface Case {
  name: string;
  /** The files in the folder, besides a good `set.csv` of three rows. */
  files?: Record<string, string>;
  service?: { balance?: number; plan?: string };
  /** What the service does; and what happens around the running command. */
  script?: (stage: Stage) => Script;
  /** The commands are processes, which can be stopped. */
  isProcess?: boolean;
  /** In order; `run set.csv --yes` when not given. A function changes the world between two commands. */
  commands?: readonly (readonly string[] | ((stage: Stage) => void | Promise<void>))[];
}

interface Stage {
  place: Place;
  service: ScriptedService;
  /** The running process, where the commands are processes. */
  running(): Running;
  /** Does what Ctrl-C does, and waits until the command has said so. */
  interrupted(): Promise<unknown>;
}

const run = ["run", "set.csv", "--yes"] as const;
const refused = (status: number, code: string, message: string) => ({
  status,
  json: { error: { code, message } },
});
const html = "<!doctype html><title>Sign in</title><h1>Sign in to the network</h1>";
const page = { text: html, headers: { "content-type": "text/html" } };
const noSubscription = refused(403, "SUBSCRIPTION_REQUIRED", "An active subscription is required.");

const cases: readonly Case[] = [
  {
    name: "revoked-key",
    script: () => () => refused(401, "INVALID_API_KEY", "The API key does not exist or was revoked."),
  },
  {
    name: "revoked-key-in-mid-run",
    files: { "set.csv": sheet(2, "plain-image") },
    script:
      ({ place }) =>
      async (asked) => {
        if (asked.what !== "GET task" || asked.path.endsWith(taskId(1))) return "serve";
        await eventually(() => (archivedItems(place) === 1 ? true : null));
        return refused(401, "INVALID_API_KEY", "The API key does not exist or was revoked.");
      },
    commands: [run, ({ service }) => service.script(() => "serve"), ["resume"]],
  },
  {
    name: "subscription-null",
    script: () => (asked) =>
      asked.what === "GET me" ? { json: { ...me({ balance: 100 }), subscription: null } } : "serve",
  },
  {
    name: "subscription-past-due",
    script: () => (asked) => (asked.what === "GET me" ? { json: subscribed("past_due") } : "serve"),
  },
  { name: "me-answers-403", script: () => (asked) => (asked.what === "GET me" ? noSubscription : "serve") },
  { name: "manifest-of-0-bytes", files: { "set.csv": "" } },
  { name: "manifest-with-nul-bytes", files: { "set.csv": "id,model,prompt\na01,plain-image,a\0b\n" } },
  {
    name: "manifest-with-duplicate-ids",
    files: { "set.csv": `${sheet(3, "plain-image")}\na02,plain-image,another picture` },
  },
  { name: "manifest-with-200-wrong-rows", files: { "set.csv": wrongRows() } },
  {
    name: "output-folder-removed-in-mid-run",
    script: onceTheFirstIsArchived(({ place }) =>
      rmSync(join(place.folder, "outputs"), { recursive: true, force: true }),
    ),
    commands: [run, ["status"]],
  },
  { name: "service-answers-html", script: () => () => page },
  {
    name: "service-answers-html-in-mid-run",
    script: () => (asked) => (asked.what === "POST generate" ? { ...page, status: 502 } : "serve"),
  },
  {
    name: "service-answers-302",
    script: () => () => ({ status: 302, text: "", headers: { location: "https://login.example/" } }),
  },
  {
    name: "service-answers-302-in-mid-run",
    script: () => (asked) =>
      asked.what === "POST generate"
        ? { status: 302, text: "", headers: { location: "https://login.example/" } }
        : "serve",
  },
  { name: "empty-200", script: () => () => ({ text: "" }) },
  {
    name: "empty-200-to-a-paid-request",
    script: () => (asked) => (asked.what === "POST generate" && asked.before === 1 ? { text: "" } : "serve"),
    commands: [run, ["status"], ["resume"]],
  },
  {
    name: "task-of-unknown-status",
    script: () => {
      const polled = new Set<string>();
      return ({ what, path }) => {
        if (what !== "GET task" || polled.has(path)) return "serve";
        polled.add(path);
        return { json: { task_id: path.slice(-36), status: "moderating", output_urls: null, error: null } };
      };
    },
  },
  {
    name: "task-that-vanishes",
    script: vanishing,
    commands: [run, ({ place }) => backdate(place, 11 * 60_000), ["resume"], ["status"]],
  },
  {
    name: "closed-laptop",
    isProcess: true,
    files: { "set.csv": sheet(1, "plain-image") },
    script: closedLaptop,
  },
];

describe.concurrent("what a person sees", () => {
  test.each(cases)("$name", async (given) => {
    const text = await play(given);
    const file = new URL(`./transcripts/${given.name}.txt`, import.meta.url);
    if (process.env["UPDATE_TRANSCRIPTS"] === "1") writeFileSync(file, text);
    expect(text).toBe(readFileSync(file, "utf8"));
  });
});

async function play({
  files = {},
  service: options,
  script,
  isProcess,
  commands = [run],
}: Case): Promise<string> {
  const service = await startService({ plan: "Starter", ...options });
  const place = newPlace();
  place.write("set.csv", sheet(3, "plain-image"));
  for (const [name, text] of Object.entries(files)) place.write(name, text);
  let running: Running | null = null;
  let own: Started | null = null;
  const stage: Stage = {
    place,
    service,
    running() {
      if (!running) throw new Error("no process is under way");
      return running;
    },
    async interrupted() {
      own?.interrupt();
      await own?.prints(/interrupted: /);
    },
  };
  if (script) service.script(script(stage));
  const texts: string[] = [];
  for (const command of commands) {
    if (typeof command === "function") {
      await command(stage);
      continue;
    }
    if (isProcess) running = start(place, command, service);
    else own = started(place, command, service);
    texts.push(told(command, await (running ?? (own as Started)).ended));
  }
  return masked(texts.join("\n"), place, service);
}

function told(command: readonly string[], { code, signal, stdout, stderr }: Ended): string {
  return [
    `$ bulkgen ${command.join(" ")}`,
    stderr.trimEnd(),
    stdout.trimEnd(),
    `[exit ${signal ?? code}]`,
    "",
  ]
    .filter((piece, index) => piece !== "" || index === 4)
    .join("\n");
}

function subscribed(status: string) {
  const record = me({ balance: 100 });
  return { ...record, subscription: { ...record.subscription, status } };
}

function wrongRows(): string {
  const models = ["plain-image", "plane-image", "plain-img"];
  const rows = Array.from({ length: 300 }, (_, n) => `r${n + 1},${models[n % 3]},a picture`);
  return `id,model,prompt\n${rows.join("\n")}\n`;
}

/** Lets the first task finish and keeps the others back until it is archived; then does something. */
function onceTheFirstIsArchived(act: (stage: Stage) => void): (stage: Stage) => Script {
  return (stage) => {
    let done = false;
    return async ({ what, path }): Promise<Scripted> => {
      if (what !== "GET task" || path.endsWith(taskId(1)) || done) return "serve";
      await eventually(() => (done || archivedItems(stage.place) === 1 ? true : null));
      if (!done) act(stage);
      done = true;
      return "serve";
    };
  };
}

/** The service knows nothing of a task that it made. The run is interrupted where it would wait for it. */
function vanishing({ interrupted }: Stage): Script {
  let looks = 0;
  return async ({ what, path }): Promise<Scripted> => {
    if (what !== "GET task" || !path.endsWith(taskId(2))) return "serve";
    // The second look is the last before it would only wait.
    if (++looks === 2) await interrupted();
    return refused(404, "TASK_NOT_FOUND", "The task does not exist.");
  };
}

/** While the process is stopped, a download is given up by the service and its address expires. */
function closedLaptop({ running }: Stage): Script {
  let fresh = true;
  return async ({ what, before }): Promise<Scripted> => {
    if (what === "GET task" && !fresh) fresh = true;
    if (what !== "GET file") return "serve";
    if (before === 0) {
      running().signal("SIGSTOP");
      await eventually(() => (isStopped(running().pid) ? true : null));
      fresh = false;
      setImmediate(() => running().signal("SIGCONT"));
      return "cut";
    }
    return fresh ? "serve" : { status: 403, text: "expired" };
  };
}
