import { type FlagsOf, option, toggle } from "./definition.js";
import { runFlags } from "./run.js";
import { type SharedFlags, serviceFlags, workspaceFlags } from "./shared.js";
import { anyText, FlagError, oneOf, pathName, since } from "./values.js";

/** Flags of the commands before a run: init, plan, models, doctor; and of status and report. */

/** The kinds of provider that init knows a first models file for. */
export const starterNames = [
  "openai",
  "comfyui",
  "fal",
  "replicate",
  "gemini",
  "elevenlabs",
  "command",
  "template",
] as const;
export type StarterName = (typeof starterNames)[number];

export const initFlags = {
  provider: option(
    "<name>",
    `for models of your own, by one of ${starterNames.join(", ")}; writes a models file`,
    oneOf(...starterNames),
  ),
  workflow: option(
    "<file>",
    "with --provider comfyui: the workflow, as Workflow → Export (API) saves it",
    pathName,
    {
      isPath: true,
    },
  ),
  baseUrl: option("<url>", "address of the service, or of the provider", anyText),
  apiKeyFile: option("<file>", "file with the API key, to be copied to .env", anyText, { isPath: true }),
  sandbox: toggle("for the sandbox only; asks nothing", {
    conflicts: ["baseUrl", "apiKeyFile", "provider", "workflow"],
  }),
};
export type InitFlags = FlagsOf<typeof initFlags>;

/** A plan takes the flags of its run, so that the same line can be tried first. It has no events to print. */
const { events: _events, ...flagsOfRun } = runFlags;

export const planFlags = {
  rows: toggle("list every item"),
  graph: option(
    "[mermaid]",
    "draw the steps and which outputs each one uses; mermaid prints a diagram for Markdown",
    oneOf("text", "mermaid"),
    { alone: "text", inFiles: "never", conflicts: ["rows"] },
  ),
  save: option("<file>", "save the plan for bulkgen run FILE (a name that ends in .json)", planFile, {
    short: "o",
    isPath: true,
  }),
  ...flagsOfRun,
};
export type PlanFlags = FlagsOf<typeof planFlags> & SharedFlags;

export const modelsFlags = {
  save: option("<file>", "write them to a file as JSON, for bulkgen sandbox --models", anyText, {
    isPath: true,
  }),
  ...serviceFlags,
};
export type ModelsFlags = FlagsOf<typeof modelsFlags> & SharedFlags;

export const accountFlags = {
  sameService: option(
    "<url>",
    "the service has moved for good: it is the one that was at this address",
    anyText,
    { conflicts: ["sandbox"], inFiles: "never" },
  ),
  forgetPause: toggle("forget the pause that the service asked for, and ask it again now", {
    inFiles: "never",
  }),
  ...serviceFlags,
};
export type AccountFlags = FlagsOf<typeof accountFlags> & SharedFlags;

export const doctorFlags = {
  out: option("<folder>", "output folder to check (default: outputs in the workspace)", pathName, {
    isPath: true,
  }),
  rebuild: toggle("rebuild a lost or damaged database from receipts and archive; checks nothing"),
  yes: toggle("with --rebuild: do not ask (required without a terminal)", { inFiles: "never" }),
  separate: toggle("make a copied workspace independent of the original; checks nothing", {
    conflicts: ["rebuild"],
  }),
  ...serviceFlags,
};
export type DoctorFlags = FlagsOf<typeof doctorFlags> & SharedFlags;

const { workspace, sandbox, databaseUrl, models, baseUrl, apiKeyFile } = serviceFlags;

export const trustFlags = {
  yes: toggle("agree without a question, in a script; prints what is agreed to", { inFiles: "never" }),
  list: toggle("list what was agreed to on this machine, by folder", { inFiles: "never" }),
  forget: toggle("forget what was agreed to for this folder", {
    inFiles: "never",
    conflicts: ["list", "yes"],
  }),
  workspace,
  sandbox,
  databaseUrl,
  models,
  state: option(
    "<folder>",
    "with --models: where `bulkgen serve` keeps its state, if not beside the models file",
    pathName,
    { inFiles: "never", isPath: true },
  ),
  baseUrl,
  apiKeyFile,
};
export type TrustFlags = FlagsOf<typeof trustFlags> & SharedFlags;

export const statusFlags = {
  all: toggle("list every run"),
  watch: toggle("follow the run in progress until it ends; Ctrl-C ends only the watching", {
    inFiles: "never",
    conflicts: ["all", "json"],
  }),
  ...workspaceFlags,
};
export type StatusFlags = FlagsOf<typeof statusFlags>;

export const reportFlags = {
  since: option(
    "<when>",
    "report runs that are unfinished or ended after this time: yesterday, a day (2026-11-20), a time (18:00) or a duration (12h)",
    since,
    { default: since("yesterday"), defaultText: "yesterday", inFiles: "never" },
  ),
  by: option(
    "<column>",
    "what was spent by the values of this column of the sheets, such as client",
    anyText,
    {
      inFiles: "never",
    },
  ),
  ...workspaceFlags,
};
export type ReportFlags = FlagsOf<typeof reportFlags>;

function planFile(text: string): string {
  if (text.endsWith(".json")) return text;
  throw new FlagError(`expected a name that ends in .json, got ${JSON.stringify(text)}`);
}
