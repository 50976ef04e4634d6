import { z } from "zod";
import { manifestShape } from "../manifest/job-file/job-shape.js";
import {
  adoption,
  found,
  gallery,
  indexLine,
  pick,
  picks,
  pruned,
  rebuilt,
  separated,
  sheet,
  verified,
} from "./archive.js";
import { fleet, fleetRebuild, migration } from "./fleet.js";
import { plan } from "./plan.js";
import { refusal } from "./refusal.js";
import { event, order, report, resumedAll, runs, status, summary } from "./run.js";
import { daemon, health, notification, removed, schedule, startedByHand, startUp } from "./schedules.js";
import {
  account,
  dashboard,
  doctor,
  models,
  newSandboxKey,
  newServedKey,
  sandbox,
  sandboxAccount,
  sandboxKey,
  served,
  servedCheck,
  servedJob,
  servedKey,
} from "./service.js";

/**
 * Every document that other programs read, by the name under which `bulkgen schema` prints its JSON Schema. The compiler
 * checks that the code makes exactly these (`print` of the command line, and the end of this file), and tests that every
 * command with `--json` has one.
 */
export interface DocumentDefinition {
  /** What it is, in a few words. */
  what: string;
  /** The commands that print it with `--json`. */
  commands?: readonly string[];
  schema: z.ZodType;
}

export const documents = {
  plan: { what: "a plan", commands: ["plan"], schema: plan },
  run: {
    what: "how a run ended",
    commands: ["run", "resume", "retry", "redo", "resolve", "reject --again"],
    schema: summary,
  },
  "resume-all": {
    what: "how several runs ended",
    commands: ["resume --all"],
    schema: resumedAll,
  },
  order: {
    what: "an order, and what came of it",
    commands: ["pause", "cancel", "approve", "reject", "resolve", "retry", "redo"],
    schema: order,
  },
  status: { what: "a run as it stands, or null", commands: ["status"], schema: status },
  runs: { what: "every run of a workspace", commands: ["status --all"], schema: runs },
  report: { what: "runs since a given time", commands: ["report"], schema: report },
  export: { what: "the sheet with its results", commands: ["export"], schema: sheet },
  gallery: { what: "where a gallery was written", commands: ["gallery"], schema: gallery },
  pick: { what: "items that were picked, or are no longer", commands: ["pick"], schema: pick },
  picks: { what: "everything that is picked", commands: ["pick"], schema: picks },
  find: { what: "files of the archive", commands: ["find"], schema: found },
  verify: { what: "what a check of the archive found", commands: ["verify"], schema: verified },
  prune: { what: "what was removed, or would be", commands: ["prune"], schema: pruned },
  adopt: { what: "files that were adopted", commands: ["adopt"], schema: adoption },
  models: { what: "the models of the service, in its own words", commands: ["models"], schema: models },
  account: {
    what: "the account, in the service's own words, and its quota",
    commands: ["account"],
    schema: account,
  },
  doctor: { what: "what was checked, and what is wrong", commands: ["doctor"], schema: doctor },
  rebuild: { what: "what a rebuild restored", commands: ["doctor --rebuild"], schema: rebuilt },
  separate: {
    what: "a workspace that is no longer a copy",
    commands: ["doctor --separate"],
    schema: separated,
  },
  fleet: { what: "the workers of a workspace in a database", commands: ["fleet"], schema: fleet },
  "fleet-rebuild": { what: "a queue that was rebuilt", commands: ["fleet rebuild"], schema: fleetRebuild },
  migration: { what: "where a state is now", commands: ["migrate"], schema: migration },
  dashboard: { what: "where the dashboard is", commands: ["dashboard"], schema: dashboard },
  schedule: {
    what: "a schedule",
    commands: ["schedule add", "schedule edit", "schedule show NAME", "schedule pause", "schedule resume"],
    schema: schedule,
  },
  schedules: {
    what: "the schedules of a workspace",
    commands: ["schedule list", "schedule show"],
    schema: z.array(schedule),
  },
  "schedule-remove": { what: "a schedule that is gone", commands: ["schedule remove"], schema: removed },
  "schedule-run": {
    what: "how a run that was started by hand ended",
    commands: ["schedule run"],
    schema: startedByHand,
  },
  "schedule-start": { what: "where the daemon is", commands: ["schedule start"], schema: daemon },
  "schedule-print": { what: "how to keep the daemon running", commands: ["schedule print"], schema: startUp },
  serve: { what: "where a served models file listens", commands: ["serve"], schema: served },
  "serve-new-key": {
    what: "a key that was created",
    commands: ["serve keys create"],
    schema: newServedKey,
  },
  "serve-key": {
    what: "a key that was changed or revoked",
    commands: ["serve keys edit", "serve keys revoke"],
    schema: servedKey,
  },
  "serve-job": {
    what: "a job after a person's word on it",
    commands: ["serve jobs resolve"],
    schema: servedJob,
  },
  "serve-keys": { what: "the keys of a service", commands: ["serve keys list"], schema: z.array(servedKey) },
  "serve-jobs": { what: "jobs with their stages", commands: ["serve jobs"], schema: z.array(servedJob) },
  "serve-check": {
    what: "whether providers are there and their keys are good",
    commands: ["serve check"],
    schema: z.array(servedCheck),
  },
  sandbox: { what: "where a sandbox listens", commands: ["sandbox"], schema: sandbox },
  "sandbox-new-key": {
    what: "a key that was created",
    commands: ["sandbox keys create"],
    schema: newSandboxKey,
  },
  "sandbox-key": { what: "a key that was revoked", commands: ["sandbox keys revoke"], schema: sandboxKey },
  "sandbox-keys": {
    what: "the keys of a sandbox",
    commands: ["sandbox keys list"],
    schema: z.array(sandboxKey),
  },
  "sandbox-account": {
    what: "an account of a sandbox, in the service's own words",
    commands: ["sandbox account"],
    schema: sandboxAccount,
  },
  "sandbox-accounts": {
    what: "all accounts of a sandbox",
    commands: ["sandbox account --all"],
    schema: z.array(sandboxAccount),
  },
  refusal: {
    what: "why a command with `--json` did not do its work, whichever command it is",
    schema: refusal,
  },
  event: { what: "a line of `--events`, and an event of the library", schema: event },
  notification: { what: "what `--notify` posts", schema: notification },
  index: { what: "a line of `index.jsonl`, and a file that `--sidecars` writes", schema: indexLine },
  health: { what: "what /healthz of the schedule daemon answers", schema: health },
  manifest: { what: "a job file in JSON or YAML", schema: manifestShape },
} as const satisfies Record<string, DocumentDefinition>;

export type DocumentName = keyof typeof documents;

/** The documents as they are printed, by name. */
export type Documents = { [Name in DocumentName]: z.output<(typeof documents)[Name]["schema"]> };

/** The JSON Schema (draft 2020-12) of a document. It allows no other keys than those that this version writes. */
export function jsonSchemaOf(name: DocumentName): object {
  const { what, schema }: DocumentDefinition = documents[name];
  const { $schema, ...rest } = z.toJSONSchema(schema, { override: withoutLimits });
  return { $schema, title: `bulkgen ${name}`, description: what, ...rest };
}

/** That an integer is one that JavaScript can hold says nothing about it. */
function withoutLimits({ jsonSchema }: { jsonSchema: { minimum?: number; maximum?: number } }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}
