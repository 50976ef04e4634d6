import { type Command, InvalidArgumentError, Option } from "commander";
import { EarlyExit } from "../../core/exit.js";
import { credits, noCredits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import { amount, oneOf, positive } from "./values.js";

/** Flags for what happens when the answer to a paid request was lost. */
export interface SettleFlags {
  settle: RunOptions["settle"];
  settleSeconds: [number, number];
  maxUnsettled: number;
  generationError: "unknown" | "free";
  orphans: "hold" | "resubmit";
  orphanCredits?: number;
}

export function withSettling(command: Command): Command {
  return command
    .option(
      "--settle <what>",
      "when answers were lost: stop at the end, or wait until it is known whether they were charged",
      oneOf("stop", "wait"),
      "stop",
    )
    .addOption(
      new Option("--settle-seconds <a,b>", "when to ask whether a lost one was charged, after it ended")
        .argParser(twoDelays)
        .default([240_000, 900_000], "240,900"),
    )
    .option("--max-unsettled <n>", "submit nothing more while so many are open", positive, 5)
    .option(
      "--generation-error <what>",
      "what a complete GENERATION_ERROR means: unknown, or free (not charged)",
      oneOf("unknown", "free"),
      "unknown",
    )
    .option(
      "--orphans <what>",
      "items whose task was lost: hold, or resubmit (pays again)",
      oneOf("hold", "resubmit"),
      "hold",
    )
    .option("--orphan-credits <n>", "pay at most this much again for them", amount);
}

export type PlaceOptions = Pick<
  RunOptions,
  "settle" | "settleMs" | "unsettledMax" | "errorIsFree" | "orphanCredits"
>;

/** Throws EarlyExit for a permission to pay again that has no bound. */
export function settleOptions(flags: SettleFlags): PlaceOptions {
  const resubmits = flags.orphans === "resubmit";
  if (resubmits && flags.orphanCredits === undefined) {
    throw new EarlyExit(
      "usage",
      "--orphans resubmit pays again for items whose task was lost: say with --orphan-credits N how much at most",
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
    throw new InvalidArgumentError(
      `expected two growing numbers of seconds such as 240,900, got ${JSON.stringify(text)}.`,
    );
  }
  return [first, second];
}
