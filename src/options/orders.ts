import { lockedChoices } from "../core/next/options.js";
import { type FlagsOf, option, toggle } from "./definition.js";
import { selectionFlags } from "./manifest.js";
import { maxPriceFlag, yesFlag } from "./run.js";
import { type CarryFlags, carryFlags, dailyCapFlags, serviceFlags } from "./shared.js";
import { anyText, failureKindList, oneOf, parameter, pathName } from "./values.js";

/** Flags of the commands that change items: they continue the run, or have the process that runs it do the work. */
const itemOrderFlags = {
  yes: yesFlag,
  maxPrice: maxPriceFlag,
  ...serviceFlags,
  ...carryFlags,
  ifLocked: option(
    "<what>",
    "when a run is in progress: hand it the order, or fail, wait or skip",
    oneOf("order", ...lockedChoices),
    // The setting `if-locked` is about runs, and has no "order".
    { default: "order", group: "While it runs:", inFiles: "never" },
  ),
  ...dailyCapFlags,
};
export type ItemOrderFlags = Omit<CarryFlags, "ifLocked"> & FlagsOf<typeof itemOrderFlags>;

export const retryFlags = {
  only: option("<kinds>", "only failures of these kinds, such as provider,unknown", failureKindList),
  ...selectionFlags,
  ...itemOrderFlags,
};
export type RetryFlags = ItemOrderFlags & FlagsOf<typeof retryFlags>;

/** The file that a gallery saves, or a person writes. `what` says which of its items are meant. */
export function reviewFlag(what: string, conflicts: readonly string[] = []) {
  return option("<file>", `${what} a review file: a sheet with the columns id and decision`, pathName, {
    isPath: true,
    conflicts,
    inFiles: "never",
  });
}

export const redoFlags = {
  from: reviewFlag("the items to redo in"),
  param: option("<key=value>", "make them with this parameter; empty leaves it out; repeatable", parameter, {
    inFiles: "never",
  }),
  prompt: option("<text>", "make them with this prompt, sent as it is (no template)", anyText, {
    inFiles: "never",
  }),
  ...selectionFlags,
  ...itemOrderFlags,
};
export type RedoFlags = ItemOrderFlags & FlagsOf<typeof redoFlags>;

const decisionFlags = {
  all: toggle("all items of the newest run that wait for approval"),
  from: reviewFlag("the items of"),
};

export const approveFlags = { ...decisionFlags, ...selectionFlags, ...itemOrderFlags };
export type ApproveFlags = ItemOrderFlags & FlagsOf<typeof approveFlags>;

export const rejectFlags = {
  again: toggle("make a new variant of each, priced first, to take its place once it is approved"),
  ...decisionFlags,
  ...selectionFlags,
  ...itemOrderFlags,
};
export type RejectFlags = ItemOrderFlags & FlagsOf<typeof rejectFlags>;

export const resolveFlags = {
  all: toggle("all held items of the newest run that has any"),
  adopt: option("<task>", "this task belongs to the item; bulkgen checks the task's record", anyText, {
    conflicts: ["resubmit", "refetch", "accept", "skip"],
  }),
  resubmit: toggle("submit it again; allows one more charge", { conflicts: ["refetch", "accept", "skip"] }),
  refetch: toggle("fetch its outputs again", { conflicts: ["accept", "skip"] }),
  accept: toggle("keep its outputs as they came, marked as not proven", { conflicts: ["skip"] }),
  skip: toggle("drop it; what it may have cost stays counted"),
  ...selectionFlags,
  ...itemOrderFlags,
};
export type ResolveFlags = ItemOrderFlags & FlagsOf<typeof resolveFlags>;
