import { mayPass } from "../core/failure.js";
import { noCredits, toNumber } from "../core/money.js";
import type { Run } from "../core/ports/store.js";
import type { StopKind } from "../core/stop.js";
import { count } from "../text/amounts.js";
import { someOf } from "../text/reasons.js";
import { sandboxFlag, shellWord } from "../text/shell.js";
import { localMinute, localTime } from "../text/times.js";
import { withLineEnds } from "../trust/trust.js";
import { afterText, heldAdvice } from "../workspace/evidence.js";
import { hasCommandsLeft, isUnfinished, resumeCommand, statusCommand } from "../workspace/find-run.js";
import type { LeftToDo } from "../workspace/left-to-do.js";
import { shownPath } from "./problem-text.js";
import { changedFlags } from "./run-options.js";

/**
 * What to do next with a run that is not in progress, with the commands to type; null if nothing is left to do. First what
 * the run ended with, then everything else that waits, what is worst first. The manifest is named as seen from `folder`,
 * or by its whole path.
 */
export function nextStep(left: LeftToDo, folder: string | null = null): string | null {
  const first = firstStep(left, folder);
  const others = first === null ? [] : otherSteps(left, first, folder);
  return first && [first, ...others].join("; also, ");
}

/** What else waits, apart from what the first step takes care of. */
function otherSteps(left: LeftToDo, first: string, folder: string | null): string[] {
  const { run, counts, isNewest } = left;
  const resume = `\`${resumeCommand(run, isNewest)}\``;
  const status = `\`${statusCommand(run)}\``;
  const mentions = (text: string) => first.includes(text);
  const steps: string[] = [];
  if (counts.held > left.heldAnswers && !mentions("bulkgen resolve"))
    steps.push(
      `${count(counts.held, "held item")} may have been paid for: ${status} says how to decide about them`,
    );
  if (counts.unknown > 0 && isUnfinished(run) && !mentions("charged")) {
    const when = left.decidesAt === null ? "later" : afterText(left.decidesAt);
    steps.push(`${resume} ${when} decides whether ${lostRequests(counts.unknown)} charged`);
  }
  if (left.awaiting.length > 0 && !mentions("bulkgen approve")) steps.push(decisionAdvice(left));
  if (counts.failed > 0 && !mentions("failed")) steps.push(afterFailures(left, folder));
  if (hasCommandsLeft(run) && !mentions("bulkgen resume")) steps.push(runCommandsAgain(run));
  return steps;
}

/** `3 lost requests were`. */
function lostRequests(unknown: number): string {
  return `${count(unknown, "lost request")} ${unknown === 1 ? "was" : "were"}`;
}

function firstStep(left: LeftToDo, folder: string | null): string | null {
  const { run, counts, isNewest } = left;
  const { exit, ending, state } = run;
  const resume = `\`${resumeCommand(run, isNewest)}\``;
  const isOpen = isUnfinished(run);
  if (left.heldAnswers > 0) {
    const those = left.heldAnswers === 1 ? "a held item" : `${left.heldAnswers} held items`;
    return `${resume} takes the answers of ${those} from the receipts of this folder, at no cost`;
  }
  if (state === "cancelled") return isOpen ? `${resume} collects what is still at the service` : null;
  if (state === "paused" || exit === "interrupted")
    return isOpen
      ? `${resume} continues${keepRunning(counts)}`
      : hasCommandsLeft(run)
        ? runCommandsAgain(run)
        : null;
  if (hasCommandsLeft(run) && !isOpen && counts.failed === 0) return runCommandsAgain(run);
  if (exit === "failed" && counts.failed + counts.planned > 0) return afterFailures(left, folder);
  if (exit === "held" && counts.held > 0) return heldAdvice(left.heldTasks, run.options.sandbox, counts.held);
  if (exit === "held" && left.awaiting.length > 0) return decisionAdvice(left);
  if (exit === "held" && counts.blocked > 0)
    return `\`${statusCommand(run)}\` says what the blocked items wait for; ${resume} tries them again`;
  if (exit === "credits" && ending !== null && ending.leftOut > 0)
    return `top up, then ${runAgain(run, folder)}`;
  if (!isOpen) return null;
  if (exit === "key")
    return `set a valid key of the same user (BULKGEN_API_KEY or --api-key-file), or activate a plan, then ${resume}`;
  if (exit === "unreachable") return `${resume} when the service is reachable again`;
  if (exit === "credits") return `top up, then ${resume}`;
  if (exit === "cap") return afterCap(left, folder);
  if (exit === "unfinished") return whenToResume(left, resume);
  return `${resume} continues it`;
}

/** What was bought is archived, whatever came of the commands. */
function runCommandsAgain(run: Run): string {
  const resume = `\`${resumeCommand(run, false)}\``;
  if (run.ending?.after?.missing !== undefined)
    return `\`bulkgen verify --repair${sandboxFlag(run.options)}\` downloads missing files again while the service has them, at no cost; then ${resume} runs the command after the set`;
  return `${resume} runs the commands again that have not done their work, and buys nothing for it`;
}

function keepRunning({ processing, overdue }: LeftToDo["counts"]): string {
  return processing + overdue === 0 ? "" : "; submitted tasks keep running at the service";
}

/**
 * The next step for somebody in `folder`. `elsewhere` is the workspace's folder if commands typed in `folder` would find
 * another workspace, or none; otherwise null.
 */
export function nextStepFrom(left: LeftToDo, folder: string, elsewhere: string | null): string | null {
  if (elsewhere === null) return nextStep(left, folder);
  const step = nextStep(left, elsewhere);
  return step && `in ${shownPath(elsewhere, folder)}: ${step}`;
}

function decisionAdvice({ run, awaiting }: LeftToDo): string {
  const sandbox = sandboxFlag(run.options);
  const [first = ""] = awaiting;
  const items = awaiting.length === 1 ? shellWord(first) : "ITEM…";
  return `look at ${someOf(awaiting)}, then \`bulkgen approve ${items}${sandbox}\` or \`bulkgen reject ${items} --again${sandbox}\``;
}

/** When an unfinished run can continue, and what for. */
function whenToResume({ run, counts, overdue, nextPollAt, decidesAt }: LeftToDo, resume: string): string {
  const { resumeAt, reasons } = run.ending ?? { resumeAt: null, reasons: [] };
  if (counts.unknown > 0 && reasons.length === 0) {
    const question = `whether ${lostRequests(counts.unknown)} charged`;
    if (resumeAt === null || decidesAt === null) return `${resume} later finds out ${question}`;
    return resumeAt >= decidesAt
      ? `${resume} ${afterText(resumeAt)} decides ${question}`
      : `${resume} ${afterText(resumeAt)} checks again, and decides by ${laterTime(decidesAt, resumeAt)} ${question}`;
  }
  if (nextPollAt !== null && reasons.length === 0)
    return `${resume} ${afterText(nextPollAt)}, when ${someOf(overdue)} can be polled again`;
  return `${resume} ${resumeAt === null ? "later" : afterText(resumeAt)}`;
}

/** A time rounded up to the minute; only the time of day if `before` is on the same day. */
function laterTime(at: number, before: number): string {
  const [day, time] = localMinute(at + 59_999).split(" ");
  return localMinute(before).startsWith(`${day} `) ? `${time}` : localTime(at + 59_999);
}

/** How to continue after a cap, by which cap it was. */
function afterCap({ run, counts, capNeeded }: LeftToDo, folder: string | null): string {
  const resumeWith = (flags: string) => {
    const { sandbox, ...options } = run.options;
    const words = resumeCommand({ ...run, options: { ...options, sandbox: false } }, false);
    return `\`${words}${flags}${sandboxFlag({ sandbox })}\``;
  };
  const steps: Partial<Record<StopKind, string>> = {
    cap: `${count(counts.planned + counts.blocked, "item is", "items are")} left: ${resumeWith(` --max-credits ${toNumber(capNeeded)}`)}`,
    price: `${count(counts.planned + counts.blocked, "item is", "items are")} left, and the service charges more than was planned: look at the prices (\`bulkgen plan ${shellWord(run.manifest)}${sandboxFlag(run.options)}\`), then ${resumeWith(" --max-price N")} with a higher N`,
    keep: `top up, then ${resumeWith("")}; or ${resumeWith(" --keep-credits N")} with a lower N`,
    daily: `${resumeWith("")} continues tomorrow; to continue now, ${resumeWith(" --max-credits-per-day N")} with a higher N`,
    failures: `find out why they failed, then ${resumeWith(" --max-failures N")}`,
  };
  const reached = run.ending?.stops.map((kind) => steps[kind]).find((step) => step !== undefined);
  if (reached !== undefined) return reached;
  return run.options.modelCaps === undefined
    ? `check the model's new price, then ${runAgain(run, folder)}`
    : `${resumeWith(" --max-credits-per-model MODEL=N")} with a higher N`;
}

/** Only `retry` submits failed items again as they are; `run` makes the rows that were changed. */
function afterFailures({ run, failureKinds, unreadInputs }: LeftToDo, folder: string | null): string {
  const passing = failureKinds.filter(mayPass);
  const retry = (...flags: string[]) =>
    `\`${["bulkgen retry", run.id, ...flags].join(" ")}${sandboxFlag(run.options)}\` submits`;
  const again = {
    files: `. If --publish was wrong, ${retry("--only input", "--publish WHERE")} them again`,
    addresses: `. If the rows are right and their addresses can be read now, ${retry("--only input")} them again`,
  };
  const fix = `fix the failed rows, then ${runAgain(run, folder)}; archived items are never charged twice${unreadInputs === null ? "" : again[unreadInputs]}`;
  if (passing.length === 0) return fix;
  return passing.length === failureKinds.length
    ? `${retry()} the failed items again`
    : `${retry(`--only ${passing.join(",")}`)} again what may succeed as it is; for the others, ${fix}`;
}

/** Its manifest has changed since the run began, and what takes which rows. `folder` is where the user is. */
export function changedManifestText(run: Run, folder: string): string {
  return `${shownPath(run.manifest, folder)} has changed since the run began: \`bulkgen resume\` continues with the rows as they were; ${runAgain(run, folder)} takes the new ones`;
}

/** The command that plans the run's manifest again, as the same edition and with the same options. */
function runAgain({ manifest, edition, options }: Run, folder: string | null): string {
  if (manifest === "-") return "run the manifest again";
  const words = [
    "bulkgen",
    "run",
    folder === null ? manifest : shownPath(manifest, folder),
    ...(options.sheetFlags ?? []).flat(),
    ...(edition === "" ? [] : ["--edition", edition]),
  ].map(shellWord);
  // The cap of a rebuilt run was set for what was ordered, and is no cap for its manifest.
  const { maxCredits, until } = options;
  const own = {
    ...options,
    maxCredits: options.rebuilt === true ? noCredits : maxCredits,
    // An instant was the end of that run, and has passed when this is typed.
    until: until?.includes("T") ? null : until,
  };
  return `\`${[...words, ...changedFlags(own, withLineEnds)].join(" ")}\``;
}
