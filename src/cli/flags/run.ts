import { defined } from "../../core/defined.js";
import { EarlyExit } from "../../core/exit.js";
import { type Credits, credits, noCredits } from "../../core/money.js";
import { defaultRunOptions, type RunOptions } from "../../core/next/options.js";
import type { SpendingOptions } from "../../job/run/spending-caps.js";
import { asChanges, type FlagsOf, grouped, option, toggle } from "./definition.js";
import { manifestFlags } from "./manifest.js";
import { carryFlags, dailyCapFlags, type SharedFlags, serviceFlags } from "./shared.js";
import {
  amount,
  bucketName,
  dailyRequests,
  duration,
  endTime,
  FlagError,
  modelAmount,
  oneOf,
  pathName,
  positive,
  requestShare,
  share,
  wholeNumber,
} from "./values.js";

/** Flags for paid requests that were not answered. */
const settleFlags = grouped("Lost answers:", {
  settle: option(
    "<what>",
    "if answers were lost: stop at the end of the run, or wait until it is known whether they were charged",
    oneOf("stop", "wait"),
    { default: defaultRunOptions.settle, fromFolder: "free" },
  ),
  settleSeconds: option(
    "<a,b>",
    "when to check whether a lost request was charged: two delays in seconds",
    twoDelays,
    { default: [...defaultRunOptions.settleMs], defaultText: "240,900", fromFolder: "free" },
  ),
  maxUnsettled: option(
    "<n>",
    "submit nothing while this many lost requests of this execution are unsettled (default: 5, or twice the lanes)",
    positive,
    { fromFolder: "free" },
  ),
  generationError: option(
    "<what>",
    "what a complete GENERATION_ERROR means: unknown, or free (not charged)",
    oneOf("unknown", "free"),
    { default: "unknown", fromFolder: "free" },
  ),
  orphans: option(
    "<what>",
    "items whose task was lost: hold, or resubmit (pays again)",
    oneOf("hold", "resubmit"),
    { default: "hold", fromFolder: "free" },
  ),
  orphanCredits: option("<n>", "pay at most this many credits again for lost tasks", amount, {
    fromFolder: "asks",
  }),
});
type SettleFlags = FlagsOf<typeof settleFlags>;

type SettleRunOptions = Pick<
  RunOptions,
  "settle" | "settleMs" | "unsettledMax" | "errorIsFree" | "orphanCredits"
>;

/** Throws EarlyExit when paying again is allowed without a limit. */
function settleOptions(flags: SettleFlags): SettleRunOptions {
  const resubmits = flags.orphans === "resubmit";
  if (resubmits && flags.orphanCredits === undefined) throw unlimitedOrphans();
  return {
    settle: flags.settle,
    settleMs: flags.settleSeconds,
    ...(flags.maxUnsettled === undefined ? {} : { unsettledMax: flags.maxUnsettled }),
    errorIsFree: flags.generationError === "free",
    orphanCredits: resubmits ? credits(flags.orphanCredits ?? 0) : noCredits,
  };
}

/** Two growing delays in seconds, such as `240,900`; in ms. */
function twoDelays(text: string): [number, number] {
  const match = /^(\d+)\s*,\s*(\d+)$/.exec(text.trim());
  const [first, second] = [Number(match?.[1]) * 1_000, Number(match?.[2]) * 1_000];
  if (!match || first >= second) {
    throw new FlagError(
      `expected two growing numbers of seconds such as 240,900, got ${JSON.stringify(text)}`,
    );
  }
  return [first, second];
}

/** Flags that limit what is spent; `plan` prices by them too. */
const capFlags = {
  ...grouped("Spending:", {
    maxCredits: option("<n>", "spend at most this many credits in this run", amount, { fromFolder: "free" }),
    maxCreditsPerModel: option(
      "<model=n>",
      "spend at most this much on one model; the others continue; repeatable",
      modelAmount,
      { fromFolder: "free" },
    ),
    keepCredits: option("<n>", "leave at least this many credits on the account", amount, {
      fromFolder: "free",
    }),
  }),
  ...dailyCapFlags,
};
type CapFlags = FlagsOf<typeof capFlags>;

export const yesFlag = toggle("do not ask before spending (required without a terminal)", {
  inFiles: "never",
});
export const maxPriceFlag = option(
  "<n>",
  "agree in advance to a price of up to this many credits; a higher price is refused",
  amount,
  { inFiles: "never" },
);
export const outFlag = option(
  "<folder>",
  "where the files go (default: outputs in the workspace)",
  pathName,
  {
    isPath: true,
    fromFolder: "asks outside",
  },
);

const galleryFlag = toggle("write gallery.html in the job's folder while it runs, and at the end", {
  fromFolder: "free",
});

/** Flags of `run`; a schedule keeps them for its runs. */
export const runFlags = {
  yes: yesFlag,
  maxPrice: maxPriceFlag,
  out: outFlag,
  ...serviceFlags,
  ...manifestFlags,
  ...capFlags,
  ...grouped("Spending:", {
    onInsufficient: option(
      "<what>",
      "when the balance does not cover the plan: refuse, fit, stop or wait",
      oneOf("refuse", "fit", "stop", "wait"),
      { default: defaultRunOptions.onInsufficient, fromFolder: "free" },
    ),
  }),
  ...grouped("When to stop:", {
    onDailyLimit: option(
      "<what>",
      "when the day's requests are used up, or the service asks for a long pause: stop or wait",
      oneOf("stop", "wait"),
      { default: defaultRunOptions.onDailyLimit, fromFolder: "free" },
    ),
    maxFailures: option("<n|%>", "submit nothing more once this many items have failed", share, {
      fromFolder: "free",
    }),
    retries: option("<n>", "how often to retry a task that failed at the provider", wholeNumber, {
      default: defaultRunOptions.retries,
      fromFolder: "free",
    }),
    until: option("<time>", "submit nothing after this time of day, such as 06:00", endTime, {
      fromFolder: "free",
    }),
    maxDuration: option("<time>", "submit nothing after this long, such as 2h", duration, {
      fromFolder: "free",
    }),
    overdueWait: option("<time>", "wait this long for overdue tasks, such as 30m", duration, {
      default: defaultRunOptions.overdueWaitMs,
      defaultText: "0m",
      fromFolder: "free",
    }),
    skipInvalid: toggle("leave out invalid rows; a run lists them in problems.csv", { fromFolder: "free" }),
  }),
  ...carryFlags,
  ...grouped("Pace:", {
    lanes: option("<n>", "submits in flight at once (default: by plan)", positive, { fromFolder: "free" }),
    downloads: option("<n>", "downloads at once", positive, {
      default: defaultRunOptions.downloads,
      fromFolder: "free",
    }),
    rpm: option("<n>", "send at most this many requests a minute", positive, { fromFolder: "free" }),
    rpd: option("<n>", "send at most this many requests a day (3 or more)", dailyRequests, {
      fromFolder: "free",
    }),
    share: option("<percent>", "use this share of the account's requests, such as 50%", requestShare, {
      fromFolder: "free",
    }),
    poll: option(
      "<how>",
      "poll for results early or late: eager, balanced or frugal (default: by the requests that are left)",
      oneOf("eager", "balanced", "frugal"),
      { fromFolder: "free" },
    ),
  }),
  archive: option("<s3://bucket/prefix>", "copy each file to this bucket too", bucketName, {
    fromFolder: "asks",
  }),
  archiveOnly: toggle("keep the files in that bucket only: each leaves this disk once it is there", {
    fromFolder: "free",
  }),
  canary: toggle("make one item of each model and set of params first, and the rest once it is archived", {
    fromFolder: "free",
  }),
  gallery: galleryFlag,
  sidecars: toggle("write a NAME.json with its details beside each file", { fromFolder: "free" }),
  ...settleFlags,
};
export type RunFlags = FlagsOf<typeof runFlags> & SharedFlags;

const { maxCredits, maxCreditsPerModel, keepCredits } = capFlags;
const { settle, maxUnsettled, orphans, orphanCredits } = settleFlags;
const { onInsufficient, onDailyLimit, maxFailures, retries, until, maxDuration, overdueWait, lanes } =
  runFlags;

/** Flags of `resume`: some of a run's options can be changed before it continues. */
export const resumeFlags = {
  all: toggle("continue every unfinished run of the workspace, one after another", { inFiles: "never" }),
  yes: yesFlag,
  maxPrice: maxPriceFlag,
  ...serviceFlags,
  ...asChanges({
    maxCredits,
    maxCreditsPerModel,
    keepCredits,
    onInsufficient,
    onDailyLimit,
    maxFailures,
    retries,
    until,
    maxDuration,
    overdueWait,
    lanes,
    settle,
    maxUnsettled,
    orphans,
    orphanCredits,
  }),
  gallery: galleryFlag,
  ...carryFlags,
  ...dailyCapFlags,
};
export type ResumeFlags = FlagsOf<typeof resumeFlags> & SharedFlags;

/** Throws EarlyExit when paying again is allowed without a limit. */
export function refuseUnlimitedOrphans({ orphans, orphanCredits }: ResumeFlags): void {
  if (orphans === "resubmit" && orphanCredits === undefined) throw unlimitedOrphans();
}

/** The options of a run that are to change. A cap of one model leaves those of the others. */
export function changedOptions(
  flags: ResumeFlags,
  before: Pick<RunOptions, "modelCaps" | "orphanCredits">,
): Partial<RunOptions> {
  const { maxDuration, maxCredits: cap, maxCreditsPerModel: caps, keepCredits: keep } = flags;
  const changes: Partial<RunOptions> = {
    ...(cap === undefined ? {} : { maxCredits: credits(cap) }),
    ...(caps === undefined ? {} : { modelCaps: { ...before.modelCaps, ...modelCaps(caps) } }),
    ...(keep === undefined ? {} : { keepCredits: credits(keep) }),
    ...defined({
      maxDurationMs: maxDuration,
      overdueWaitMs: flags.overdueWait,
      unsettledMax: flags.maxUnsettled,
    }),
    ...changedOrphans(flags, before),
  };
  for (const name of [
    "onInsufficient",
    "onDailyLimit",
    "maxFailures",
    "retries",
    "until",
    "lanes",
    "settle",
  ] as const)
    if (flags[name] !== undefined) Object.assign(changes, { [name]: flags[name] });
  return changes;
}

/** Without --orphans, --orphan-credits changes the limit of a run that pays again for lost tasks. */
function changedOrphans(
  { orphans, orphanCredits }: ResumeFlags,
  before: Pick<RunOptions, "orphanCredits">,
): Pick<RunOptions, "orphanCredits"> | undefined {
  if (orphans === "hold") return { orphanCredits: noCredits };
  const resubmits = orphans === "resubmit" || before.orphanCredits > noCredits;
  return resubmits && orphanCredits !== undefined ? { orphanCredits: credits(orphanCredits) } : undefined;
}

function unlimitedOrphans(): EarlyExit {
  return new EarlyExit(
    "usage",
    "--orphans resubmit pays again for items whose task was lost. Add --orphan-credits N to limit how much.",
  );
}

/** The limits on spending that the flags set. */
function spendingOptions(flags: CapFlags): SpendingOptions {
  return {
    maxCredits: flags.maxCredits === undefined ? null : credits(flags.maxCredits),
    ...(flags.maxCreditsPerModel === undefined ? {} : { modelCaps: modelCaps(flags.maxCreditsPerModel) }),
    ...(flags.keepCredits === undefined ? {} : { keepCredits: credits(flags.keepCredits) }),
    ...dailyOf(flags),
  };
}

function modelCaps(caps: Readonly<Record<string, number>>): Record<string, Credits> {
  return Object.fromEntries(Object.entries(caps).map(([model, amount]) => [model, credits(amount)]));
}

export function dailyOf({ maxCreditsPerDay }: FlagsOf<typeof dailyCapFlags>): { dailyCredits?: Credits } {
  return maxCreditsPerDay === undefined ? {} : { dailyCredits: credits(maxCreditsPerDay) };
}

/** The options that are saved with the run, so that resume continues with them. */
export function runOptions(flags: RunFlags): RunOptions {
  if (flags.archiveOnly && flags.archive === undefined)
    throw new EarlyExit(
      "usage",
      "--archive-only says that the files are kept in a bucket alone, and no flag says in which. Nothing was sent. Add --archive s3://bucket/prefix.",
    );
  return {
    ...spendingOptions(flags),
    maxFailures: flags.maxFailures ?? null,
    retries: flags.retries,
    downloads: flags.downloads,
    onInsufficient: flags.onInsufficient,
    onDailyLimit: flags.onDailyLimit,
    until: flags.until ?? null,
    maxDurationMs: flags.maxDuration ?? null,
    overdueWaitMs: flags.overdueWait,
    ...settleOptions(flags),
    sandbox: flags.sandbox ?? false,
    ...(flags.canary ? { canary: true as const } : {}),
    ...defined({ sidecars: flags.sidecars, archive: flags.archive }),
    ...(flags.archiveOnly ? { archiveOnly: true as const } : {}),
    ...defined({ lanes: flags.lanes, rpm: flags.rpm, rpd: flags.rpd, share: flags.share, poll: flags.poll }),
  };
}
