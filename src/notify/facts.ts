import { type ExitName, exitCode } from "../core/exit.js";
import { wantedItems } from "../core/item.js";
import { inCredits, toNumber } from "../core/money.js";
import type { NotificationEvent } from "../core/notification.js";
import type { Notification } from "../documents/schedules.js";
import type { RunSummary } from "../job/run/closing.js";
import { groupedReasons } from "../text/reasons.js";
import { shortText, terminalText } from "../text/terminal.js";

/** Where a notification comes from. */
export type Origin = Pick<Notification, "host" | "workspace" | "sandbox" | "schedule" | "due">;

const summaryCharactersMax = 500;
const whyCharactersMax = 1_000;

/** How many different reasons of failed and held items are named. */
const reasonsMax = 3;

/** A notification without facts of a run. */
function withoutRun(event: NotificationEvent, text: string, origin: Origin): Notification {
  return {
    event,
    summary: shortText(text, summaryCharactersMax),
    why: null,
    failures: null,
    exit: null,
    ...origin,
    run: null,
    job: null,
    items: null,
    archived: null,
    failed: null,
    held: null,
    creditsSpent: null,
    creditsPending: null,
    creditsLeft: null,
    folder: null,
    next: null,
  };
}

/** The end of a run. A run that could not start has no facts; then `message` says why, and `next` is the command to type. */
export function endNotification(
  exit: ExitName,
  facts: RunSummary | null,
  { message, next = null, origin }: { message: string; next?: string | null; origin: Origin },
): Notification {
  if (facts === null)
    return {
      ...withoutRun(exit, message, origin),
      exit: exitCode(exit),
      next: next === null ? null : terminalText(next),
    };
  const { counts, left, nextStep, stops } = facts;
  const items = wantedItems(counts);
  return {
    ...withoutRun(exit, summary(exit, facts, items), origin),
    exit: exitCode(exit),
    why: stops.length > 0 ? shortText(stops.join("; "), whyCharactersMax) : null,
    failures: failuresOf(facts),
    run: facts.run,
    job: terminalText(facts.job),
    items,
    archived: counts.archived,
    failed: counts.failed,
    held: counts.held,
    creditsSpent: toNumber(facts.spent),
    creditsPending: toNumber(facts.pending),
    creditsLeft: left === null ? null : toNumber(left),
    folder: facts.folder,
    next: nextStep === null ? null : terminalText(nextStep),
  };
}

/** What the daemon noticed about a scheduled run, or what a run waits for. */
export function newsNotification(
  event: "missed" | "skipped" | "lost" | "trouble",
  message: string,
  { origin, run }: { origin: Origin; run?: { id: number; jobName: string } | null },
): Notification {
  const named = run ? { run: run.id, job: terminalText(run.jobName) } : {};
  return { ...withoutRun(event, message, origin), ...named };
}

function failuresOf({ failures, held, after }: RunSummary): string | null {
  const asked = held.map(({ rowId, reason }) => ({ rowId, kind: "held", reason }));
  const commands = (after?.reasons ?? []).map((each) => ({ ...each, kind: "after the file" }));
  const lines = groupedReasons([...failures, ...asked, ...commands], reasonsMax);
  if (after?.set != null) lines.push(`after the set: ${after.set}`);
  return lines.length === 0 ? null : lines.join("; ");
}

function summary(exit: ExitName, facts: RunSummary, all: number): string {
  const { counts, job, run, spent, pending } = facts;
  const others = [
    counts.failed ? `, ${counts.failed} failed` : "",
    counts.held ? `, ${counts.held} held` : "",
    counts.blocked ? `, ${counts.blocked} blocked` : "",
  ].join("");
  return `${job}, run ${run}: ${counts.archived ?? 0} of ${all} archived${others}, ${inCredits(spent)} spent${pending > 0 ? `, ${inCredits(pending)} in flight or held` : ""} (${exit})`;
}
