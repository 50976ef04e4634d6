import { z } from "zod";
import { plans } from "../api/plans.js";
import { itemStates } from "../core/item.js";
import { insufficientChoices, lockedChoices, stopOrWait } from "../core/next/options.js";
import { nearest } from "../text/nearest.js";

/**
 * The settings of a program are checked like the flags of the command: a program may compute them or read them from a file,
 * and a cap with a slip in its name, or a number such as NaN, must not turn into no cap.
 */

const amount = z.number().min(0);
const count = z.int().min(1);
const text = z.string().optional();
const signal = z.custom((given) => given instanceof AbortSignal, "expected an AbortSignal").optional();
const log = z.custom(isLog, "expected an object with the functions debug, info, warn and error").optional();
const onDailyLimit = z.enum(stopOrWait).optional();
const flag = z.boolean().optional();
const texts = z.record(z.string(), z.string()).optional();
/** Checked where the connection is made. */
const asIs = z.unknown().optional();

/** Those of reading, planning and running: a program may pass the same ones to all three. */
const ofManifests = z.strictObject({
  model: text,
  prompt: text,
  params: texts,
  sheet: text,
  repair: flag,
  skipHeadings: flag,
  maxItems: count.optional(),
  job: text,
  acceptForeignUse: flag,
  edition: text,
  fresh: flag,
  filter: texts,
  first: count.optional(),
  onlyFailed: flag,
  workspace: text,
  out: text,
  databaseUrl: text,
  service: asIs,
  maxCredits: amount.optional(),
  keepCredits: amount.optional(),
  maxCreditsPerModel: z.record(z.string(), amount).optional(),
  onInsufficient: z.enum(insufficientChoices).optional(),
  limits: z
    .strictObject({
      rpm: count.optional(),
      rpd: z.int().min(3).optional(),
      share: z.number().positive().max(100).optional(),
    })
    .optional(),
  signal,
  log,
  agree: z.custom((given) => typeof given === "function", "expected a function").optional(),
  skipInvalid: flag,
  maxFailures: count.optional(),
  retries: z.int().min(0).optional(),
  lanes: count.optional(),
  onDailyLimit,
  ifLocked: z.enum(lockedChoices).optional(),
  unreachableMs: z.number().min(0).optional(),
});

const ofClients = z.strictObject({ service: asIs, signal, log, onDailyLimit });

const ofSandboxes = z.strictObject({
  plan: z.enum(plans).optional(),
  credits: amount.optional(),
  taskMs: z
    .strictObject({ min: amount, max: amount })
    .refine(({ min, max }) => min <= max, "min is above max")
    .optional(),
  inputs: text,
  // The sandbox checks both itself.
  faults: asIs,
  switches: asIs,
  port: z.int().min(0).max(65_535).optional(),
  state: text,
});

const ofWorkspaces = z.strictObject({ sandbox: flag, databaseUrl: text });

/** What a reader of a workspace is asked for. */
const ofReading = z.strictObject({
  run: count.optional(),
  before: count.optional(),
  state: z.enum(itemStates).optional(),
  text,
  from: z.int().min(0).optional(),
  limit: count.optional(),
  since: z.date("expected a valid Date").optional(),
});
const ofRun = ofReading.required({ run: true });
const ofReport = ofReading.required({ since: true });

export type ManifestSettingName = keyof typeof ofManifests.shape;
export type ClientSettingName = keyof typeof ofClients.shape;
export type SandboxSettingName = keyof typeof ofSandboxes.shape;

function isLog(given: unknown): boolean {
  const log = given as Record<string, unknown> | null;
  return ["debug", "info", "warn", "error"].every((name) => typeof log?.[name] === "function");
}

/** Throws RangeError, which names the setting. */
export function checkManifestSettings(manifest: unknown, settings: unknown): void {
  checkPath("manifest", manifest);
  // As a path, it would mean the current folder.
  if (String(manifest).trim() === "") throw new RangeError("manifest: expected a path, got an empty text");
  check(ofManifests, settings);
}

/** Throws RangeError, which names the setting. */
export function checkWorkspaceSettings(folder: unknown, settings: unknown): void {
  checkPath("folder", folder);
  check(ofWorkspaces, settings);
}

/** Throws RangeError, which names the argument. */
export function checkReading(wanted: object, needs: "run" | "since" | null): void {
  check(needs === "run" ? ofRun : needs === "since" ? ofReport : ofReading, wanted);
}

function checkPath(name: string, path: unknown): void {
  if (typeof path === "string") return;
  throw new RangeError(`${name}: expected a path (a string), got ${path === null ? "null" : typeof path}`);
}

/** Throws RangeError, which names the setting. */
export function checkClientSettings(settings: unknown): void {
  check(ofClients, settings);
}

/** Throws RangeError, which names the setting. */
export function checkSandboxSettings(settings: unknown): void {
  check(ofSandboxes, settings);
}

function check(schema: z.ZodObject, settings: unknown): void {
  if (typeof settings !== "object" || settings === null)
    throw new RangeError(`settings: expected an object, got ${settings === null ? "null" : typeof settings}`);
  const [issue] = schema.safeParse(settings).error?.issues ?? [];
  if (issue === undefined) return;
  if (issue.code !== "unrecognized_keys" || issue.path.length > 0)
    throw new RangeError(`${issue.path.join(".")}: ${issue.message}`);
  const [key = ""] = issue.keys;
  const meant = nearest(key, Object.keys(schema.shape));
  throw new RangeError(
    `unknown setting ${JSON.stringify(key)}${meant === undefined ? "" : `; did you mean ${JSON.stringify(meant)}?`}`,
  );
}
