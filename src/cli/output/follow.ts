import { EarlyExit, type ExitName } from "../../core/exit.js";
import { digestOf } from "../../core/problem.js";
import type { Outcome } from "../../job/run/run-job.js";
import type { RunSummary } from "../../job/run/summary.js";
import type { Machine } from "../../machine.js";
import type { Target } from "../../notify/target.js";
import { problemsText } from "../../report/problem-text.js";
import type { CarryFlags } from "../flags/shared.js";
import { exitOf } from "./ending.js";
import type { PreparedRun } from "./job-options.js";
import { showOutcome } from "./outcome.js";

/** Continues a run and reports its end to everybody who follows it: the user, `--events` and every `--notify`. */
export async function followed(
  { display, events, machine }: Pick<PreparedRun, "display" | "events" | "machine">,
  flags: CarryFlags,
  work: (show: (outcome: Outcome) => Promise<ExitName>) => Promise<ExitName>,
): Promise<ExitName> {
  return notified(await targetsFor(flags, machine), machine, (onFacts) =>
    work(async (outcome) => {
      const end = await showOutcome(outcome, flags, { display, machine });
      events?.finish(end);
      onFacts(end.facts);
      return end.exit;
    }).finally(display.end),
  );
}

/** Throws EarlyExit for a target that cannot be read. */
async function targetsFor(
  flags: Pick<CarryFlags, "notify" | "notifyCommand" | "smtpUrl" | "smtpFrom">,
  { env }: Machine,
): Promise<Target[]> {
  if (flags.notify === undefined && flags.notifyCommand === undefined) return [];
  const { targetsOf } = await import("../../notify/target.js");
  return targetsOf(flags, env);
}

/**
 * Does the work of a run, then sends the notifications, also when the run could not start: a nightly job with a revoked
 * key is what the user must hear about. By then the workspace is free again. Returns or throws what the work did.
 */
async function notified(
  targets: readonly Target[],
  machine: Machine,
  work: (onFacts: (facts: RunSummary) => void) => Promise<ExitName>,
): Promise<ExitName> {
  if (targets.length === 0) return work(() => {});
  let facts: RunSummary | null = null;
  try {
    const exit = await work((found) => {
      facts = found;
    });
    await notify(targets, machine, { exit, facts, message: "" });
    return exit;
  } catch (error) {
    const exit = exitOf(error);
    // "Nothing to resume" is not worth a notification.
    if (exit !== "done")
      await notify(targets, machine, { exit, facts, message: reasonOf(error as Error, machine) });
    throw error;
  }
}

/** Why a run could not start, with the first problem of its manifest, for notifications. */
function reasonOf(error: Error, { cwd }: Machine): string {
  const first = error instanceof EarlyExit ? error.problems?.told[0] : undefined;
  if (first === undefined) return error.message;
  return `${error.message}: ${problemsText(digestOf([first.problem]), cwd)}`;
}

async function notify(
  targets: readonly Target[],
  { env, cwd, clock, stderr }: Machine,
  { exit, facts, message }: { exit: ExitName; facts: RunSummary | null; message: string },
): Promise<void> {
  const [{ deliver }, { endNotification }] = await Promise.all([
    import("../../notify/deliver.js"),
    import("../../notify/facts.js"),
  ]);
  await deliver(targets, endNotification(exit, facts, message), {
    environment: env,
    cwd,
    clock,
    warn: (line) => stderr.write(`bulkgen: ${line}\n`),
  });
}
