import { itemStates } from "../../src/core/item.js";
import { credits, noCredits } from "../../src/core/money.js";
import type { Run } from "../../src/core/ports/store.js";
import type { LeftToDo } from "../../src/workspace/left-to-do.js";
import type { RunLine, RunStatus } from "../../src/workspace/status.js";
import { runStart } from "../store/item-fixture.js";

/** A run that anna began and that ended at its cap, as `status` shows it. */

export const noItems = Object.fromEntries(itemStates.map((state) => [state, 0])) as RunStatus["counts"];

const { unsettledMax: _, ...options } = runStart.options;

export const endedRun: Run = {
  ...runStart,
  options: {
    ...options,
    maxCredits: credits(140),
    until: "06:00",
    beganBy: { user: "anna", host: "studio-3" },
  },
  id: 3,
  jobId: 1,
  jobName: "demo",
  state: "interrupted",
  startedAt: Date.UTC(2026, 10, 21, 2, 42, 59),
  endedAt: Date.UTC(2026, 10, 21, 2, 50, 1),
  exit: "cap",
  ending: {
    stops: ["cap"],
    reasons: ["the cap of 140 credits is reached"],
    resumeAt: null,
    leftOut: 0,
  },
  requests: 58,
  owes: false,
  arranged: true,
};

export const finishedRun: Run = { ...endedRun, state: "finished", exit: "done", ending: null };

export function leftOf(run: Run, counts: Partial<LeftToDo["counts"]> = {}): LeftToDo {
  return {
    run,
    isNewest: true,
    counts: { ...noItems, planned: 5, ...counts },
    failureKinds: [],
    unreadInputs: null,
    capNeeded: credits(160),
    overdue: [],
    awaiting: [],
    nextPollAt: null,
    heldTasks: "none",
    heldAnswers: 0,
    decidesAt: null,
  };
}

export const spentNow = {
  spent: credits(112),
  pending: credits(4),
  atService: noCredits,
  tasks: 0,
  inDoubt: 1,
  inFlight: 0,
  lost: [],
  lostCredits: noCredits,
};

export const lineFacts: RunLine = {
  ...spentNow,
  run: endedRun,
  now: 0,
  alive: false,
  reason: null,
  lockOwner: null,
  resume: "bulkgen resume",
  left: leftOf(endedRun),
  archived: 24,
  failed: 2,
  held: 0,
  unknown: 0,
  failures: [],
};
