import { lockedChoices } from "../core/next/options.js";
import type { PublishPlace, PublishSettings } from "../publish/publisher.js";
import { type FlagsOf, grouped, option, toggle } from "./definition.js";
import { kept, keptCredits, timeText } from "./kept.js";
import { amount, anyText, duration, oneOf, pathName, publishTarget, repeated } from "./values.js";

/** Flags of every command that writes a log. */
export function logFlags(defaultLevel: "info" | "warn") {
  return {
    logLevel: option(
      "<level>",
      "debug, info, warn, error or silent",
      oneOf("debug", "info", "warn", "error", "silent"),
      { default: defaultLevel, fromFolder: "free" },
    ),
    logFormat: option(
      "<format>",
      "log lines on stderr for people (text) or for programs (json)",
      oneOf("text", "json"),
      { default: "text", fromFolder: "free" },
    ),
  };
}
export type LogFlags = FlagsOf<ReturnType<typeof logFlags>>;

/** Flags of every command with a workspace. */
export const workspaceFlags = {
  sandbox: toggle("use the local sandbox: no key, no cost", { fromFolder: "free", kept: kept("sandbox") }),
  workspace: option(
    "<folder>",
    "folder with .bulkgen/ (default: the nearest at or above the manifest)",
    pathName,
    {
      isPath: true,
      inFiles: "never",
    },
  ),
  databaseUrl: option(
    "<url>",
    "PostgreSQL database with the state, for many machines: postgres://USER@HOST/DATABASE",
    anyText,
    { inFiles: "own files" },
  ),
  json: toggle("print one JSON document on stdout", { inFiles: "never" }),
  quiet: toggle("show no progress, and no summary if all is well", { fromFolder: "free" }),
};
export type WorkspaceFlags = FlagsOf<typeof workspaceFlags>;

/** Flags of every command that talks to the service. */
export const serviceFlags = {
  ...workspaceFlags,
  models: option(
    "<file>",
    "use the models in this file, with your own keys, programs and machines, instead of the service at an address",
    pathName,
    { isPath: true, fromFolder: "asks outside", conflicts: ["baseUrl"] },
  ),
  baseUrl: option("<url>", "address of the service (or BULKGEN_BASE_URL)", anyText, { fromFolder: "asks" }),
  apiKeyFile: option("<file>", "file with the API key (or set BULKGEN_API_KEY)", anyText, {
    inFiles: "own files",
    isPath: true,
  }),
  trustAddress: toggle("agree that this address gets the key, if the key was used elsewhere until now", {
    inFiles: "never",
  }),
  ...logFlags("warn"),
};

/** A setting and where it comes from. */
export interface ServiceSetting {
  value: string;
  /** The flag, the variable or the file that it comes from, as people know it. */
  from: string;
}

/**
 * Address and key as the settings files give them. They are kept apart from the flags because the environment and the
 * workspace's `.env` come first.
 */
export interface Configured {
  baseUrl?: ServiceSetting;
  apiKeyFile?: ServiceSetting;
}

export type SharedFlags = FlagsOf<typeof serviceFlags> & {
  configured?: Configured;
  /** The attributes whose values come from settings files. */
  ofFiles?: readonly string[];
};

/** How long the service may be unreachable before a run ends, in ms. */
export const unreachableMsDefault = 300_000;

const lockText = "when another run has the workspace: fail, wait or skip";

const whileItRuns = grouped("While it runs:", {
  unreachableWait: option("<time>", "stop when the service cannot be reached for this long", duration, {
    default: unreachableMsDefault,
    defaultText: "5m",
    fromFolder: "free",
  }),
  work: toggle(
    "download in this process too (default); --no-work leaves downloads to bulkgen worker (needs --database-url)",
    { negatable: true, fromFolder: "free" },
  ),
  ifLocked: option("<what>", lockText, oneOf(...lockedChoices), {
    default: "fail",
    fromFolder: "free",
  }),
  events: toggle("print one JSON line for each event on stdout; the summary goes to stderr", {
    inFiles: "never",
    conflicts: ["json"],
  }),
  notify: option("<target>", "send the result to an https:// address or mailto:; repeatable", repeated, {
    fromFolder: "asks",
  }),
  notifyCommand: option(
    "<command>",
    "run this in the shell at the end, with the result in BULKGEN_…",
    anyText,
    {
      inFiles: "own files",
    },
  ),
  smtpUrl: option(
    "<url>",
    "mail server for mailto:, such as smtp://HOST:587; $NAME reads a variable",
    anyText,
    { fromFolder: "asks" },
  ),
  smtpFrom: option("<address>", "sender of the mails", anyText, { fromFolder: "asks" }),
});

/** Where local inputs are put for the service to read. */
const publishFlags = grouped("Local inputs:", {
  publish: option(
    "<where>",
    "publish local input files for the service: s3://bucket/prefix, or the https:// address where they already are",
    publishTarget,
    // The job file may name it too.
    { conflicts: ["publishCommand"], fromFolder: "asks", kept: kept("publish", { of: null }) },
  ),
  publishCommand: option(
    "<command>",
    "publish each local input with this command: it gets the path in BULKGEN_FILE and prints the address",
    anyText,
    { inFiles: "own files" },
  ),
  publishFor: option(
    "<time>",
    "how long the addresses must stay valid (default: what the job says, else 24h)",
    duration,
    {
      fromFolder: "free",
      kept: kept("publishMs", { of: null, texts: (ms) => [timeText(ms)] }),
    },
  ),
});
export type PublishFlags = FlagsOf<typeof publishFlags>;

export function publishSettings(flags: PublishFlags & Pick<SharedFlags, "ofFiles">): PublishSettings {
  const places: PublishSettings = { given: {}, configured: {} };
  const ofFiles = flags.ofFiles ?? [];
  const put = (attribute: keyof PublishFlags, values: Partial<PublishPlace>) =>
    Object.assign(ofFiles.includes(attribute) ? places.configured : places.given, values);
  const { publish, publishCommand, publishFor } = flags;
  if (publish !== undefined) put("publish", { to: publish });
  if (publishCommand !== undefined) put("publishCommand", { command: publishCommand });
  if (publishFor !== undefined) put("publishFor", { expiresMs: publishFor });
  return places;
}

/** Flags of every command that continues a run. */
export const carryFlags = { ...whileItRuns, ...publishFlags };

/** What holds for everything that is bought with the account, not for one run: also for runs that started earlier. */
export const dailyCapFlags = grouped("Spending:", {
  acceptForeignUse: toggle("buy though the key was charged for requests that this machine did not send", {
    inFiles: "never",
  }),
  maxCreditsPerDay: option(
    "<n>",
    "spend at most this many credits from midnight to midnight, over all runs of the account",
    amount,
    { fromFolder: "free", kept: keptCredits("dailyCredits") },
  ),
});

export type CarryFlags = SharedFlags &
  FlagsOf<typeof carryFlags> &
  PublishFlags &
  FlagsOf<typeof dailyCapFlags>;
