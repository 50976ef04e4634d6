import { EarlyExit } from "../core/exit.js";
import { type Credits, credits, noCredits, showCredits } from "../core/money.js";
import { defaultRunOptions, insufficientChoices, type RunOptions, stopOrWait } from "../core/next/options.js";
import { pollProfiles } from "../core/pace/pressure.js";
import type { AfterSettings } from "../job/after/settings.js";
import { asChanges, changeable, changeablesOf, type FlagsOf, grouped, option, toggle } from "./definition.js";
import { kept, keptCredits, keptTime, keptValues } from "./kept.js";
import { manifestFlags } from "./manifest.js";
import { carryFlags, dailyCapFlags, type SharedFlags, serviceFlags } from "./shared.js";
import {
  amount,
  anyText,
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
  settle: changeable(
    option(
      "<what>",
      "if answers were lost: stop at the end of the run, or wait until it is known whether they were charged",
      oneOf(...stopOrWait),
      { default: defaultRunOptions.settle, fromFolder: "free", kept: kept("settle") },
    ),
  ),
  settleSeconds: option(
    "<a,b>",
    "when to check whether a lost request was charged: two delays in seconds",
    twoDelays,
    {
      default: [...defaultRunOptions.settleMs],
      defaultText: "240,900",
      fromFolder: "free",
      kept: kept("settleMs", { texts: (delays) => [delays.map((ms) => ms / 1_000).join(",")] }),
    },
  ),
  maxUnsettled: changeable(
    option(
      "<n>",
      "submit nothing while this many lost requests of this execution are unsettled (default: 5, or twice the lanes)",
      positive,
      { fromFolder: "free", kept: kept("unsettledMax") },
    ),
  ),
  generationError: option(
    "<what>",
    "what a complete GENERATION_ERROR means: unknown, or free (not charged)",
    oneOf("unknown", "free"),
    {
      default: "unknown",
      fromFolder: "free",
      kept: kept<"errorIsFree", string>("errorIsFree", {
        of: (meaning) => meaning === "free",
        texts: (isFree) => (isFree ? ["free"] : []),
      }),
    },
  ),
  // Both together decide what the run keeps: see `orphanOptions`.
  orphans: changeable(
    option("<what>", "items whose task was lost: hold, or resubmit (pays again)", oneOf("hold", "resubmit"), {
      default: "hold",
      fromFolder: "free",
      kept: kept("orphanCredits", { of: null, texts: (most) => (most > noCredits ? ["resubmit"] : []) }),
    }),
  ),
  orphanCredits: changeable(
    option("<n>", "pay at most this many credits again for lost tasks", amount, {
      fromFolder: "asks",
      kept: kept("orphanCredits", {
        of: null,
        texts: (most) => (most > noCredits ? [showCredits(most)] : []),
      }),
    }),
  ),
});
type SettleFlags = FlagsOf<typeof settleFlags>;

/** Throws EarlyExit when paying again is allowed without a limit. */
function orphanOptions({ orphans, orphanCredits }: SettleFlags): Pick<RunOptions, "orphanCredits"> {
  const resubmits = orphans === "resubmit";
  if (resubmits && orphanCredits === undefined) throw unlimitedOrphans();
  return { orphanCredits: resubmits ? credits(orphanCredits ?? 0) : noCredits };
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

/** A cap of one model leaves those of the others. */
const keptModelCaps = kept<"modelCaps", Record<string, number>>("modelCaps", {
  of: (caps, before) => ({
    ...before,
    ...Object.fromEntries(Object.entries(caps).map(([model, most]) => [model, credits(most)])),
  }),
  texts: (caps) => Object.entries(caps).map(([model, most]) => `${model}=${showCredits(most)}`),
});

/** Flags that limit what is spent; `plan` prices by them too. */
const capFlags = {
  ...grouped("Spending:", {
    maxCredits: changeable(
      option("<n>", "spend at most this many credits in this run", amount, {
        fromFolder: "free",
        kept: keptCredits("maxCredits"),
      }),
    ),
    maxCreditsPerModel: changeable(
      option(
        "<model=n>",
        "spend at most this much on one model; the others continue; repeatable",
        modelAmount,
        { fromFolder: "free", kept: keptModelCaps },
      ),
    ),
    keepCredits: changeable(
      option("<n>", "leave at least this many credits on the account", amount, {
        fromFolder: "free",
        kept: keptCredits("keepCredits"),
      }),
    ),
  }),
  ...dailyCapFlags,
};

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

/** Commands of the user's own for what is archived. The job file may name them too. */
const afterFlags = grouped("After a file, after a set:", {
  afterFile: changeable(
    option("<command>", "run this in the shell after each archived file, which BULKGEN_FILE names", anyText, {
      fromFolder: "asks",
      kept: kept("afterFile"),
    }),
  ),
  afterSet: changeable(
    option(
      "<command>",
      "run this in the shell once everything is archived, with the folder in BULKGEN_FOLDER",
      anyText,
      { fromFolder: "asks", kept: kept("afterSet") },
    ),
  ),
  afterTimeout: changeable(
    option("<time>", "end such a command after this long (default: what the job says, else 10m)", duration, {
      fromFolder: "free",
      kept: keptTime("afterMs"),
    }),
  ),
});

/** What flags and settings say of the commands after files and sets. */
export function afterSettings({
  ofFiles = [],
  afterFile,
  afterSet,
  afterTimeout,
}: FlagsOf<typeof afterFlags> & Pick<SharedFlags, "ofFiles">): AfterSettings {
  const isGiven = (attribute: keyof typeof afterFlags) => !ofFiles.includes(attribute);
  const those = (wanted: boolean) => ({
    ...(afterFile !== undefined && isGiven("afterFile") === wanted ? { file: afterFile } : {}),
    ...(afterSet !== undefined && isGiven("afterSet") === wanted ? { set: afterSet } : {}),
    ...(afterTimeout !== undefined && isGiven("afterTimeout") === wanted ? { timeoutMs: afterTimeout } : {}),
  });
  return { given: those(true), configured: those(false) };
}

/** Flags of `run`; a schedule keeps them for its runs. */
export const runFlags = {
  yes: yesFlag,
  maxPrice: maxPriceFlag,
  out: outFlag,
  ...serviceFlags,
  ...manifestFlags,
  ...capFlags,
  ...grouped("Spending:", {
    onInsufficient: changeable(
      option(
        "<what>",
        "when the balance does not cover the plan: refuse, fit, stop or wait",
        oneOf(...insufficientChoices),
        { default: defaultRunOptions.onInsufficient, fromFolder: "free", kept: kept("onInsufficient") },
      ),
    ),
  }),
  ...grouped("When to stop:", {
    onDailyLimit: changeable(
      option(
        "<what>",
        "when the day's requests are used up, or the service asks for a long pause: stop or wait",
        oneOf(...stopOrWait),
        { default: defaultRunOptions.onDailyLimit, fromFolder: "free", kept: kept("onDailyLimit") },
      ),
    ),
    maxFailures: changeable(
      option("<n|%>", "submit nothing more once this many items have failed", share, {
        fromFolder: "free",
        kept: kept("maxFailures", {
          texts: (most) => ["count" in most ? String(most.count) : `${most.percent}%`],
        }),
      }),
    ),
    retries: changeable(
      option("<n>", "how often to retry a task that failed at the provider", wholeNumber, {
        default: defaultRunOptions.retries,
        fromFolder: "free",
        kept: kept("retries"),
      }),
    ),
    until: changeable(
      option("<time>", "submit nothing after this time of day, such as 06:00", endTime, {
        fromFolder: "free",
        kept: kept("until"),
      }),
    ),
    maxDuration: changeable(
      option("<time>", "submit nothing after this long, such as 2h", duration, {
        fromFolder: "free",
        kept: keptTime("maxDurationMs"),
      }),
    ),
    overdueWait: changeable(
      option("<time>", "wait this long for overdue tasks, such as 30m", duration, {
        default: defaultRunOptions.overdueWaitMs,
        defaultText: "0m",
        fromFolder: "free",
        kept: keptTime("overdueWaitMs"),
      }),
    ),
    skipInvalid: toggle("leave out invalid rows; a run lists them in problems.csv", { fromFolder: "free" }),
  }),
  ...carryFlags,
  ...grouped("Pace:", {
    lanes: changeable(
      option("<n>", "submits in flight at once (default: by plan)", positive, {
        fromFolder: "free",
        kept: kept("lanes"),
      }),
    ),
    downloads: option("<n>", "downloads at once", positive, {
      default: defaultRunOptions.downloads,
      fromFolder: "free",
      kept: kept("downloads"),
    }),
    rpm: option("<n>", "send at most this many requests a minute", positive, {
      fromFolder: "free",
      kept: kept("rpm"),
    }),
    rpd: option("<n>", "send at most this many requests a day (3 or more)", dailyRequests, {
      fromFolder: "free",
      kept: kept("rpd"),
    }),
    share: option("<percent>", "use this share of the account's requests, such as 50%", requestShare, {
      fromFolder: "free",
      kept: kept("share", { texts: (percent) => [`${percent}%`] }),
    }),
    poll: option(
      "<how>",
      "poll for results early or late: eager, balanced or frugal (default: by the requests that are left)",
      oneOf(...pollProfiles),
      { fromFolder: "free", kept: kept("poll") },
    ),
  }),
  archive: option("<s3://bucket/prefix>", "copy each file to this bucket too", bucketName, {
    fromFolder: "asks",
    kept: kept("archive"),
  }),
  archiveOnly: toggle("keep the files in that bucket only: each leaves this disk once it is there", {
    fromFolder: "free",
    kept: kept("archiveOnly"),
  }),
  canary: toggle("make one item of each model and set of params first, and the rest once it is archived", {
    fromFolder: "free",
    kept: kept("canary"),
  }),
  gallery: galleryFlag,
  sidecars: toggle("write a NAME.json with its details beside each file", {
    fromFolder: "free",
    kept: kept("sidecars"),
  }),
  ...afterFlags,
  ...settleFlags,
};
export type RunFlags = FlagsOf<typeof runFlags> & SharedFlags;

/** Those of `run` that can be changed before a run continues. */
const changes = asChanges(changeablesOf(runFlags));

/** Flags of `resume`. */
export const resumeFlags = {
  all: toggle("continue every unfinished run of the workspace, one after another", { inFiles: "never" }),
  yes: yesFlag,
  maxPrice: maxPriceFlag,
  ...serviceFlags,
  ...changes,
  gallery: galleryFlag,
  ...carryFlags,
  ...dailyCapFlags,
};
export type ResumeFlags = FlagsOf<typeof resumeFlags> & SharedFlags;

/** Throws EarlyExit when paying again is allowed without a limit. */
export function refuseUnlimitedOrphans({ orphans, orphanCredits }: ResumeFlags): void {
  if (orphans === "resubmit" && orphanCredits === undefined) throw unlimitedOrphans();
}

/** The options of a run that are to change. */
export function changedOptions(flags: ResumeFlags, before: RunOptions): Partial<RunOptions> {
  return { ...keptValues(changes, flags, before), ...changedOrphans(flags, before) };
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
    ...defaultRunOptions,
    sandbox: false,
    ...keptValues(runFlags, flags, {}),
    ...orphanOptions(flags),
  };
}
