import { EarlyExit } from "../../core/exit.js";
import { credits, noCredits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import { type FlagsOf, grouped, option } from "./definition.js";
import { amount, FlagError, oneOf, positive } from "./values.js";

/** Flags for paid requests that were not answered. */
export const settleFlags = grouped("Lost answers:", {
  settle: option(
    "<what>",
    "when answers were lost: stop at the end, or wait until it is known whether they were charged",
    oneOf("stop", "wait"),
    { default: "stop" },
  ),
  settleSeconds: option(
    "<a,b>",
    "how long after a lost request to check, twice, whether it was charged",
    twoDelays,
    { default: [240_000, 900_000], defaultText: "240,900" },
  ),
  maxUnsettled: option("<n>", "submit nothing while this many requests are unsettled", positive, {
    default: 5,
  }),
  generationError: option(
    "<what>",
    "what a complete GENERATION_ERROR means: unknown, or free (not charged)",
    oneOf("unknown", "free"),
    { default: "unknown" },
  ),
  orphans: option(
    "<what>",
    "items whose task was lost: hold, or resubmit (pays again)",
    oneOf("hold", "resubmit"),
    { default: "hold" },
  ),
  orphanCredits: option("<n>", "pay at most this much again for them", amount),
});
export type SettleFlags = FlagsOf<typeof settleFlags>;

type SettleRunOptions = Pick<
  RunOptions,
  "settle" | "settleMs" | "unsettledMax" | "errorIsFree" | "orphanCredits"
>;

/** Throws EarlyExit when paying again is allowed without a limit. */
export function settleOptions(flags: SettleFlags): SettleRunOptions {
  const resubmits = flags.orphans === "resubmit";
  if (resubmits && flags.orphanCredits === undefined) {
    throw new EarlyExit(
      "usage",
      "--orphans resubmit pays again for items whose task was lost. Add --orphan-credits N to limit how much.",
    );
  }
  return {
    settle: flags.settle,
    settleMs: flags.settleSeconds,
    unsettledMax: flags.maxUnsettled,
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
