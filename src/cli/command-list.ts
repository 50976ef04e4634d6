import {
  adoptFlags,
  exportFlags,
  findFlags,
  galleryFlags,
  pickFlags,
  pruneFlags,
  verifyFlags,
} from "../options/archive.js";
import { type FlagSet, option } from "../options/definition.js";
import { migrateFlags, workerFlags } from "../options/fleet.js";
import { approveFlags, redoFlags, rejectFlags, resolveFlags, retryFlags } from "../options/orders.js";
import { resumeFlags, runFlags } from "../options/run.js";
import { sandboxAccountFlags, sandboxFlags, sandboxKeyFlags } from "../options/sandbox.js";
import {
  scheduleAddFlags,
  scheduleEditFlags,
  scheduleFlags,
  scheduleRunFlags,
  scheduleStartFlags,
} from "../options/schedule.js";
import {
  dashboardFlags,
  mcpFlags,
  serveFlags,
  serveJobsFlags,
  serveKeyEditFlags,
  serveKeyFlags,
  serveResolveFlags,
  serveStateFlags,
} from "../options/serve.js";
import {
  accountFlags,
  doctorFlags,
  initFlags,
  modelsFlags,
  planFlags,
  reportFlags,
  statusFlags,
  trustFlags,
} from "../options/setup.js";
import { workspaceFlags } from "../options/shared.js";
import { numberOfRun, percentOrZero } from "../options/values.js";
import type { Handler } from "./commands/call.js";

/** The one definition of a command. Parsing, help, completion, settings and the tables of the docs all read it. */
export interface CommandDefinition {
  name: string;
  describe: string;
  /** The heading it stands under in the help of the program. */
  group?: CommandGroup;
  positionals?: readonly Positional[];
  flags?: FlagSet;
  /** Whole command lines, as people type them. */
  examples?: readonly string[];
  /** Printed below the help. */
  note?: string;
  subcommands?: readonly CommandDefinition[];
  /** What does the work of options that people expect of it, by their names. */
  instead?: Readonly<Record<string, string>>;
  /** Loads the module that does the work; a command without one only groups others. */
  load?: () => Promise<Handler>;
}

export const commandGroups = [
  "Every day",
  "A run that is not finished",
  "When something went wrong",
  "The archive",
  "Service and settings",
] as const;
export type CommandGroup = (typeof commandGroups)[number];

export interface Positional {
  name: string;
  describe: string;
  required?: true;
  many?: true;
  /** Offered by the shell's completion. */
  choices?: readonly string[];
  parse?(text: string): unknown;
}

const runNumber: Positional = {
  name: "run",
  describe: "number of the run (default: the newest)",
  parse: numberOfRun,
};
const manifest: Positional = {
  name: "manifest",
  describe:
    'CSV, XLSX, JSON, JSONL or YAML file with the rows; a folder or a "pattern" of files as rows; - reads standard input',
  required: true,
};
const decidedItems: Positional = {
  name: "items",
  describe: "row ids, paths of files, or task ids; RUN:ROW-ID for an item of a given run",
  many: true,
};
const scheduleName: Positional = { name: "name", describe: "name of the schedule", required: true };
const orderedRun: Positional = {
  name: "run",
  describe: "number of the run (default: the one in progress, else the only unfinished one)",
  parse: numberOfRun,
};

const scheduleCommands: readonly CommandDefinition[] = [
  {
    name: "add",
    describe: "add a schedule, with the flags for each of its runs",
    positionals: [scheduleName, manifest],
    flags: scheduleAddFlags,
    load: async () => (await import("./commands/schedule/add.js")).addSchedule,
  },
  {
    name: "edit",
    describe: "change what is named of a schedule: its time, its manifest, or flags of its runs",
    positionals: [
      scheduleName,
      { name: "manifest", describe: "the file with the rows from now on (default: the same)" },
    ],
    flags: scheduleEditFlags,
    examples: [
      'bulkgen schedule edit nightly --cron "0 3 * * *" --max-credits 300',
      "bulkgen schedule edit nightly --unset max-credits",
    ],
    load: async () => (await import("./commands/schedule/edit.js")).editSchedule,
  },
  {
    name: "list",
    describe: "list the schedules: when each is due, and how its last run ended",
    flags: scheduleFlags,
    load: async () => (await import("./commands/schedule/show.js")).listSchedules,
  },
  {
    name: "show",
    describe: "show what happens next, and how the last runs ended",
    positionals: [{ name: "name", describe: "name of the schedule (default: all)" }],
    flags: scheduleFlags,
    load: async () => (await import("./commands/schedule/show.js")).showSchedules,
  },
  {
    name: "pause",
    describe: "start none of its runs until it is resumed; a run in progress goes on",
    positionals: [scheduleName],
    flags: scheduleFlags,
    load: async () => (await import("./commands/schedule/edit.js")).pauseSchedule,
  },
  {
    name: "resume",
    describe: "start its runs by the clock again; what came due meanwhile is left out",
    positionals: [scheduleName],
    flags: scheduleFlags,
    load: async () => (await import("./commands/schedule/edit.js")).resumeSchedule,
  },
  {
    name: "remove",
    describe: "remove a schedule; the record of its runs stays",
    positionals: [scheduleName],
    flags: scheduleFlags,
    load: async () => (await import("./commands/schedule/show.js")).removeSchedule,
  },
  {
    name: "run",
    describe: "start a scheduled run now, and wait until it ends",
    positionals: [scheduleName],
    flags: scheduleRunFlags,
    load: async () => (await import("./commands/schedule/run.js")).runScheduleNow,
  },
  {
    name: "start",
    describe: "run the schedules of this workspace until SIGTERM or Ctrl-C",
    flags: scheduleStartFlags,
    load: async () => (await import("./commands/schedule/start.js")).startSchedules,
  },
  {
    name: "print",
    describe: "print a systemd service and a crontab line that keep the daemon running",
    flags: scheduleFlags,
    load: async () => (await import("./commands/schedule/show.js")).printSchedule,
  },
];

const keyCommands: readonly CommandDefinition[] = [
  {
    name: "create",
    describe: "create a key; its value is printed only this once, on stdout",
    positionals: [{ name: "name", describe: "name of the key", required: true }],
    flags: sandboxKeyFlags,
    load: async () => (await import("./commands/sandbox/administer.js")).createSandboxKey,
  },
  {
    name: "list",
    describe: "list the keys and their usage",
    flags: sandboxKeyFlags,
    load: async () => (await import("./commands/sandbox/administer.js")).listSandboxKeys,
  },
  {
    name: "revoke",
    describe: "revoke a key; the sandbox then refuses it like an unknown key",
    positionals: [{ name: "key", describe: "its name or id", required: true }],
    flags: sandboxKeyFlags,
    load: async () => (await import("./commands/sandbox/administer.js")).revokeSandboxKey,
  },
];

const sandboxCommands: readonly CommandDefinition[] = [
  { name: "keys", describe: "create, list or revoke API keys of a sandbox", subcommands: keyCommands },
  {
    name: "account",
    describe: "show or change an account of a sandbox, also while it is being served",
    flags: sandboxAccountFlags,
    load: async () => (await import("./commands/sandbox/administer.js")).changeSandboxAccount,
  },
];

const modelsFile: Positional = { name: "models", describe: "the models file (default: models.yaml)" };

const serveCommands: readonly CommandDefinition[] = [
  {
    name: "keys",
    describe: "create, list, edit or revoke the keys of a service",
    subcommands: [
      {
        name: "create",
        describe: "create a key with its plan and budget; its value is printed only this once, on stdout",
        positionals: [{ name: "name", describe: "whose it is", required: true }],
        flags: serveKeyFlags,
        examples: ["bulkgen serve keys create anna --credits-per-month 500"],
        load: async () => (await import("./commands/serve/keys.js")).createServedKey,
      },
      {
        name: "list",
        describe: "list the keys, what they have spent and may spend",
        flags: serveStateFlags,
        load: async () => (await import("./commands/serve/keys.js")).listServedKeys,
      },
      {
        name: "edit",
        describe: "change the budgets or the plan of a key; counts from its next request on",
        positionals: [{ name: "key", describe: "its name or id", required: true }],
        flags: serveKeyEditFlags,
        examples: ["bulkgen serve keys edit anna --credits-per-day 80"],
        load: async () => (await import("./commands/serve/keys.js")).editServedKey,
      },
      {
        name: "revoke",
        describe: "revoke a key; its tasks go on",
        positionals: [{ name: "key", describe: "its name or id", required: true }],
        flags: serveStateFlags,
        load: async () => (await import("./commands/serve/keys.js")).revokeServedKey,
      },
    ],
  },
  {
    name: "jobs",
    describe: "list the jobs that are not finished, with how far each is",
    flags: serveJobsFlags,
    subcommands: [
      {
        name: "resolve",
        describe: "say what became of a job whose answer was lost",
        positionals: [{ name: "task", describe: "its task id", required: true }],
        flags: serveResolveFlags,
        load: async () => (await import("./commands/serve/jobs.js")).resolveServedJob,
      },
    ],
    load: async () => (await import("./commands/serve/jobs.js")).listServedJobs,
  },
  {
    name: "check",
    describe: "check every model: its file, its program or server, and its key; costs nothing",
    positionals: [modelsFile],
    flags: serveStateFlags,
    load: async () => (await import("./commands/serve/serve.js")).checkModels,
  },
];

/** Every command, in the order of the help. */
export const commandList: readonly CommandDefinition[] = [
  {
    name: "init",
    group: "Every day",
    describe:
      "make a starter workspace: settings and a first job, for the service or for models of your own; asks on a terminal, overwrites nothing",
    positionals: [{ name: "folder", describe: "where (default: the current folder)" }],
    flags: initFlags,
    examples: [
      "bulkgen init",
      "bulkgen init autumn --sandbox",
      "bulkgen init studio --provider openai",
      "bulkgen init studio --provider comfyui --workflow portrait_api.json",
    ],
    load: async () => (await import("./commands/init/init.js")).init,
  },
  {
    name: "plan",
    group: "Every day",
    describe: "check, price and forecast a manifest; spends nothing",
    positionals: [manifest],
    flags: planFlags,
    examples: ["bulkgen plan autumn.xlsx", "bulkgen plan autumn.csv --rows --first 10"],
    load: async () => (await import("./commands/plan.js")).plan,
  },
  {
    name: "run",
    group: "Every day",
    describe: "plan, confirm, submit, poll and archive; continues an interrupted run",
    positionals: [manifest],
    flags: {
      ...runFlags,
      tolerance: option(
        "<percent>",
        "how far a saved plan may differ from the current state",
        percentOrZero,
        { default: 0, inFiles: "never" },
      ),
    },
    examples: [
      "bulkgen run autumn.csv --sandbox",
      "bulkgen run autumn.csv --max-credits 200 --until 06:00 --yes",
    ],
    load: async () => (await import("./commands/run.js")).run,
  },
  {
    name: "status",
    group: "Every day",
    describe: "show the status of the newest (or given) run; works offline",
    positionals: [runNumber],
    flags: statusFlags,
    examples: ["bulkgen status", "bulkgen status --watch", "bulkgen status --all"],
    load: async () => (await import("./commands/status.js")).status,
  },
  {
    name: "redo",
    group: "Every day",
    describe: "make new variants of items, priced first; the old files stay",
    positionals: [
      {
        name: "items",
        describe: "row ids, paths of files, or task ids; without them, the selected items of the newest run",
        many: true,
      },
    ],
    flags: redoFlags,
    examples: ["bulkgen redo teapot mug", "bulkgen redo outputs/autumn/teapot.png"],
    load: async () => (await import("./commands/item-orders.js")).redo,
  },
  {
    name: "export",
    group: "Every day",
    describe: "export the sheet of the newest (or given) run with its results; pack files; works offline",
    positionals: [runNumber],
    flags: exportFlags,
    examples: [
      "bulkgen export --to autumn-done.xlsx",
      "bulkgen export --failed --to failed.csv",
      "bulkgen export --zip autumn.zip --files-only",
    ],
    load: async () => (await import("./commands/export.js")).exportSheet,
  },
  {
    name: "gallery",
    group: "Every day",
    describe:
      "write the gallery of a job: gallery.html in its folder, to view, compare and choose in a browser",
    positionals: [runNumber],
    flags: galleryFlags,
    examples: ["bulkgen gallery", "bulkgen gallery --picked"],
    load: async () => (await import("./commands/gallery.js")).gallery,
  },
  {
    name: "pick",
    group: "Every day",
    describe: "mark the items that you choose, for export and gallery; without items, list the picked ones",
    positionals: [{ name: "items", describe: "row ids, paths of files, or task ids", many: true }],
    flags: pickFlags,
    examples: ["bulkgen pick teapot-v2", "bulkgen pick --undo teapot-v2"],
    load: async () => (await import("./commands/pick.js")).pick,
  },
  {
    name: "approve",
    group: "Every day",
    describe: "approve archived items, so that the steps that use their outputs can run; works offline",
    positionals: [decidedItems],
    flags: approveFlags,
    examples: ["bulkgen approve lamp-picture", "bulkgen approve --all", "bulkgen approve --from review.csv"],
    load: async () => (await import("./commands/item-orders.js")).approve,
  },
  {
    name: "reject",
    group: "Every day",
    describe: "reject archived items that wait for approval; with --again make new variants of them",
    positionals: [decidedItems],
    flags: rejectFlags,
    instead: {
      prompt:
        "`bulkgen reject ITEM`, then `bulkgen redo ITEM --prompt TEXT` makes it anew with another prompt.",
      param:
        "`bulkgen reject ITEM`, then `bulkgen redo ITEM --param KEY=VALUE` makes it anew with another param.",
    },
    examples: ["bulkgen reject lamp-picture", "bulkgen reject lamp-picture --again"],
    load: async () => (await import("./commands/item-orders.js")).reject,
  },
  {
    name: "dashboard",
    group: "Every day",
    describe: "serve a page to start, watch and decide about runs, and to look at what was made",
    flags: dashboardFlags,
    examples: ["bulkgen dashboard", "bulkgen dashboard --sandbox"],
    load: async () => (await import("./commands/serve/dashboard.js")).dashboard,
  },
  {
    name: "mcp",
    group: "Every day",
    describe:
      "serve the workspace to agents through the Model Context Protocol, on standard input and output",
    flags: mcpFlags,
    examples: ["bulkgen mcp --workspace .", "bulkgen mcp --workspace . --sandbox"],
    load: async () => (await import("./commands/serve/mcp.js")).mcp,
  },
  {
    name: "report",
    group: "Every day",
    describe:
      "report on the runs since yesterday (or --since): results, credits, and what to do now; works offline",
    flags: reportFlags,
    examples: ["bulkgen report", "bulkgen report --since 18:00"],
    load: async () => (await import("./commands/report.js")).report,
  },
  {
    name: "resume",
    group: "A run that is not finished",
    describe: "continue the newest (or given) unfinished run, with the options it was started with",
    positionals: [{ ...runNumber, describe: "number of the run (default: the newest unfinished)" }],
    flags: resumeFlags,
    examples: ["bulkgen resume", "bulkgen resume 3 --max-credits 300", "bulkgen resume --all --yes"],
    load: async () => (await import("./commands/resume.js")).resume,
  },
  {
    name: "pause",
    group: "A run that is not finished",
    describe: "pause a run; continue it later with resume (submitted tasks keep running)",
    positionals: [orderedRun],
    flags: workspaceFlags,
    load: async () => (await import("./commands/pause.js")).pause,
  },
  {
    name: "cancel",
    group: "A run that is not finished",
    describe: "submit nothing more for a run; what was submitted is still collected",
    positionals: [orderedRun],
    flags: workspaceFlags,
    load: async () => (await import("./commands/pause.js")).cancel,
  },
  {
    name: "retry",
    group: "When something went wrong",
    describe: "submit the failed items of the newest (or given) run again",
    positionals: [runNumber],
    flags: retryFlags,
    examples: ["bulkgen retry", "bulkgen retry --only provider"],
    load: async () => (await import("./commands/item-orders.js")).retry,
  },
  {
    name: "resolve",
    group: "When something went wrong",
    describe: "decide about held items: adopt a task, submit them again, fetch them again, or skip them",
    positionals: [
      {
        name: "items",
        describe: "row ids, paths of files, or task ids; RUN:ROW-ID for an item of a given run",
        many: true,
      },
    ],
    flags: resolveFlags,
    examples: ["bulkgen resolve teapot --resubmit", "bulkgen resolve --all --skip"],
    load: async () => (await import("./commands/item-orders.js")).resolve,
  },
  {
    name: "doctor",
    group: "When something went wrong",
    describe: "check for anything that could stop a run: settings, key, limits, clock, disk, locks",
    flags: doctorFlags,
    load: async () => (await import("./commands/doctor.js")).doctor,
  },
  {
    name: "find",
    group: "The archive",
    describe: "find archived files by prompt, model, parameter or date, or the row that a file came from",
    positionals: [
      {
        name: "text",
        describe: "words of the prompt, id or file name; or the path of a file or of a copy of it",
        many: true,
      },
    ],
    flags: findFlags,
    examples: ["bulkgen find teapot", "bulkgen find copy-of-a-file.png"],
    load: async () => (await import("./commands/find.js")).find,
  },
  {
    name: "verify",
    group: "The archive",
    describe: "check that every archived file is intact; repair what can be repaired",
    flags: verifyFlags,
    load: async () => (await import("./commands/verify.js")).verify,
  },
  {
    name: "prune",
    group: "The archive",
    describe: "remove old files of finished jobs; what was paid for stays on record and is not paid again",
    flags: pruneFlags,
    examples: ["bulkgen prune --older-than 90d --dry-run", "bulkgen prune --older-than 90d --keep-picked"],
    load: async () => (await import("./commands/prune/prune.js")).prune,
  },
  {
    name: "adopt",
    group: "The archive",
    describe: "add files that were made elsewhere to the archive, matched to rows by file name",
    positionals: [
      { name: "folder", describe: "the folder with the files; it is not changed", required: true },
      manifest,
    ],
    flags: adoptFlags,
    load: async () => (await import("./commands/adopt.js")).adopt,
  },
  {
    name: "models",
    group: "Service and settings",
    describe: "list the service's models, their inputs, parameters and prices",
    positionals: [{ name: "category", describe: "only this category, such as image" }],
    flags: modelsFlags,
    load: async () => (await import("./commands/account.js")).models,
  },
  {
    name: "account",
    group: "Service and settings",
    describe: "show the account: user, credits, subscription, key, limits",
    flags: accountFlags,
    load: async () => (await import("./commands/account.js")).account,
  },
  {
    name: "trust",
    group: "Service and settings",
    describe:
      "show what the files of a folder would send outward, and agree to it once on this machine; sends nothing",
    positionals: [{ name: "manifest", describe: "a job file or a saved plan: also what it says" }],
    flags: trustFlags,
    examples: ["bulkgen trust", "bulkgen trust autumn.yaml --yes"],
    load: async () => (await import("./commands/trust/trust.js")).trust,
  },
  {
    name: "schedule",
    group: "Service and settings",
    describe:
      "run jobs by the clock: add, edit, list, show, pause, resume, remove, run, start the daemon, print",
    examples: [
      'bulkgen schedule add nightly autumn.csv --cron "0 2 * * *" --fresh',
      "bulkgen schedule start",
    ],
    subcommands: scheduleCommands,
  },
  {
    name: "worker",
    group: "Service and settings",
    describe:
      "download outputs for runs whose state is in a database, and take over a run whose process is gone",
    flags: workerFlags,
    examples: [
      "bulkgen worker",
      "bulkgen worker --only archive --downloads 8 --out /mnt/outputs",
      "bulkgen worker --only submit,poll",
    ],
    note: "It needs --database-url, and ends after SIGTERM or Ctrl-C when its downloads are done.",
    load: async () => (await import("./commands/fleet/worker.js")).worker,
  },
  {
    name: "fleet",
    group: "Service and settings",
    describe: "show the workers, what they do, and how many downloads wait",
    flags: workspaceFlags,
    subcommands: [
      {
        name: "rebuild",
        describe: "drop the queue of downloads and make it anew; nothing that was paid for or saved is lost",
        flags: workspaceFlags,
        load: async () => (await import("./commands/fleet/fleet.js")).rebuildFleet,
      },
    ],
    load: async () => (await import("./commands/fleet/fleet.js")).fleet,
  },
  {
    name: "migrate",
    group: "Service and settings",
    describe: "move the state of a workspace from its files to a PostgreSQL database, or back",
    flags: migrateFlags,
    examples: ["bulkgen migrate --from .bulkgen/state.db", "bulkgen migrate --to .bulkgen/state.db"],
    note: "Without --from or --to, that place is the database of BULKGEN_DATABASE_URL.",
    load: async () => (await import("./commands/fleet/migrate.js")).migrate,
  },
  {
    name: "serve",
    group: "Service and settings",
    describe: "serve the models of a file to a team, with keys and budgets",
    positionals: [modelsFile],
    flags: serveFlags,
    examples: [
      "bulkgen serve models.yaml",
      "bulkgen serve models.yaml --host 0.0.0.0 --port 8443 --tls-cert cert.pem --tls-key key.pem",
    ],
    note: "The models of a file also work without it: set `models: models.yaml`, and each command starts the service itself.",
    subcommands: serveCommands,
    load: async () => (await import("./commands/serve/serve.js")).serve,
  },
  {
    name: "sandbox",
    group: "Service and settings",
    describe: "serve a local copy of the whole service on this machine",
    flags: sandboxFlags,
    examples: ["bulkgen sandbox", "bulkgen sandbox --plan Starter --credits 100 --state sandbox.db"],
    note: "--state :memory: keeps nothing: each start is a fresh one.",
    subcommands: sandboxCommands,
    load: async () => (await import("./commands/sandbox/sandbox.js")).sandbox,
  },
  {
    name: "schema",
    group: "Service and settings",
    describe:
      "print the JSON Schema of what --json, --events and other outputs hold, or of a models file; without a name, list them",
    positionals: [{ name: "name", describe: "the document, such as status, event or models-file" }],
    examples: ["bulkgen schema", "bulkgen schema status"],
    load: async () => (await import("./commands/schema.js")).schema,
  },
  {
    name: "completion",
    group: "Service and settings",
    describe: "print the shell completion for bash, zsh or fish",
    positionals: [
      {
        name: "shell",
        describe: "bash, zsh or fish (default: the one in SHELL)",
        choices: ["bash", "zsh", "fish"],
      },
    ],
    load: async () => (await import("./commands/completion.js")).completion,
  },
];

/** The commands that the line starts with, such as `sandbox keys list`. */
export function leadingCommands(
  commands: readonly CommandDefinition[],
  argv: readonly string[],
): CommandDefinition[] {
  const found = commands.find(({ name }) => name === argv[0]);
  return found ? [found, ...leadingCommands(found.subcommands ?? [], argv.slice(1))] : [];
}
