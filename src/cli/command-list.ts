import type { Handler } from "./commands/call.js";
import { adoptFlags, exportFlags, findFlags, verifyFlags } from "./flags/archive.js";
import { type FlagSet, option } from "./flags/definition.js";
import { redoFlags, resolveFlags, retryFlags } from "./flags/orders.js";
import { resumeFlags, runFlags } from "./flags/run.js";
import { sandboxAccountFlags, sandboxFlags, sandboxKeyFlags } from "./flags/sandbox.js";
import { scheduleAddFlags, scheduleFlags, scheduleRunFlags, scheduleStartFlags } from "./flags/schedule.js";
import { doctorFlags, initFlags, modelsFlags, planFlags, statusFlags } from "./flags/setup.js";
import { serviceFlags, workspaceFlags } from "./flags/shared.js";
import { percentOrZero, positive } from "./flags/values.js";

/** The one definition of a command. Parsing, help, completion, settings and the README's tables all read it. */
export interface CommandDefinition {
  name: string;
  describe: string;
  positionals?: readonly Positional[];
  flags?: FlagSet;
  /** Printed below the help. */
  note?: string;
  subcommands?: readonly CommandDefinition[];
  /** Loads the module that does the work; a command without one only groups others. */
  load?: () => Promise<Handler>;
}

export interface Positional {
  name: string;
  describe: string;
  required?: true;
  many?: true;
  parse?(text: string): unknown;
}

const runNumber: Positional = {
  name: "run",
  describe: "number of the run (default: the newest)",
  parse: positive,
};
const manifest: Positional = {
  name: "manifest",
  describe: "CSV, XLSX, JSON, JSONL or YAML file with the rows; - reads standard input",
  required: true,
};
const scheduleName: Positional = { name: "name", describe: "name of the schedule", required: true };
const orderedRun: Positional = {
  name: "run",
  describe: "number of the run (default: the one in progress, else the newest unfinished)",
  parse: positive,
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

/** Every command, in the order of the help. */
export const commandList: readonly CommandDefinition[] = [
  {
    name: "init",
    describe: "make a starter workspace: settings and a first job; asks on a terminal, overwrites nothing",
    positionals: [{ name: "folder", describe: "where (default: the current folder)" }],
    flags: initFlags,
    load: async () => (await import("./commands/init.js")).init,
  },
  {
    name: "plan",
    describe: "check, price and forecast a manifest; spends nothing",
    positionals: [manifest],
    flags: planFlags,
    load: async () => (await import("./commands/plan.js")).plan,
  },
  {
    name: "run",
    describe: "plan, confirm, submit, poll and archive; continues an interrupted run",
    positionals: [manifest],
    flags: {
      ...runFlags,
      tolerance: option(
        "<percent>",
        "how far a saved plan may differ from the current state",
        percentOrZero,
        {
          default: 0,
        },
      ),
    },
    load: async () => (await import("./commands/run.js")).run,
  },
  {
    name: "status",
    describe: "show the status of the newest (or given) run; works offline",
    positionals: [runNumber],
    flags: statusFlags,
    load: async () => (await import("./commands/status.js")).status,
  },
  {
    name: "redo",
    describe: "make new variants of items, priced first; the old files stay",
    positionals: [
      {
        name: "items",
        describe: "row ids, paths of files, or task ids; without them, the selected items of the newest run",
        many: true,
      },
    ],
    flags: redoFlags,
    load: async () => (await import("./commands/item-orders.js")).redo,
  },
  {
    name: "export",
    describe: "write the sheet of the newest (or given) run back, filled in; pack files; works offline",
    positionals: [runNumber],
    flags: exportFlags,
    load: async () => (await import("./commands/export.js")).exportSheet,
  },
  {
    name: "resume",
    describe: "continue the newest (or given) unfinished run, with its own options",
    positionals: [{ ...runNumber, describe: "number of the run (default: the newest unfinished)" }],
    flags: resumeFlags,
    load: async () => (await import("./commands/resume.js")).resume,
  },
  {
    name: "pause",
    describe: "pause a run; continue it later with resume (submitted tasks keep running)",
    positionals: [orderedRun],
    flags: workspaceFlags,
    load: async () => (await import("./commands/pause.js")).pause,
  },
  {
    name: "cancel",
    describe: "submit nothing more for a run; what was submitted is still collected",
    positionals: [orderedRun],
    flags: workspaceFlags,
    load: async () => (await import("./commands/pause.js")).cancel,
  },
  {
    name: "retry",
    describe: "submit the failed items of the newest (or given) run again",
    positionals: [runNumber],
    flags: retryFlags,
    load: async () => (await import("./commands/item-orders.js")).retry,
  },
  {
    name: "resolve",
    describe: "decide about held items: adopt a task, submit them again, fetch them again, or skip them",
    positionals: [
      {
        name: "items",
        describe: "row ids, paths of files, or task ids; RUN:ROW-ID for an item of a given run",
        many: true,
      },
    ],
    flags: resolveFlags,
    load: async () => (await import("./commands/item-orders.js")).resolve,
  },
  {
    name: "verify",
    describe: "check that every archived file is intact; repair what can be repaired",
    flags: verifyFlags,
    load: async () => (await import("./commands/verify.js")).verify,
  },
  {
    name: "gallery",
    describe: "write a contact sheet of a job: gallery.html in its folder, to open in a browser",
    positionals: [runNumber],
    flags: workspaceFlags,
    load: async () => (await import("./commands/gallery.js")).gallery,
  },
  {
    name: "find",
    describe: "find archived files by prompt, model, parameter or date, or the row that a file came from",
    positionals: [
      {
        name: "text",
        describe: "words of the prompt, id or file name; or the path of a file or of a copy of it",
        many: true,
      },
    ],
    flags: findFlags,
    load: async () => (await import("./commands/find.js")).find,
  },
  {
    name: "adopt",
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
    describe: "list the service's models, their inputs, parameters and prices",
    positionals: [{ name: "category", describe: "only this category, such as image" }],
    flags: modelsFlags,
    load: async () => (await import("./commands/account.js")).models,
  },
  {
    name: "account",
    describe: "show the account: user, credits, subscription, key, limits",
    flags: serviceFlags,
    load: async () => (await import("./commands/account.js")).account,
  },
  {
    name: "doctor",
    describe: "check for anything that could stop a run: settings, key, limits, clock, disk, locks",
    flags: doctorFlags,
    load: async () => (await import("./commands/doctor.js")).doctor,
  },
  {
    name: "schedule",
    describe: "run jobs by the clock: add, list, show, remove, run, start the daemon, print",
    subcommands: scheduleCommands,
  },
  {
    name: "sandbox",
    describe: "serve a local copy of the whole service on this machine",
    flags: sandboxFlags,
    note: "--state :memory: keeps nothing: each start is a fresh one.",
    subcommands: sandboxCommands,
    load: async () => (await import("./commands/sandbox/sandbox.js")).sandbox,
  },
  {
    name: "completion",
    describe: "print the shell completion for bash or zsh",
    positionals: [{ name: "shell", describe: "bash or zsh (default: the one in SHELL)" }],
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
