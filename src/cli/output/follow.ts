import { EarlyExit, type ExitName } from "../../core/exit.js";
import type { Outcome } from "../../job/run/run-job.js";
import type { RunSummary } from "../../job/run/summary.js";
import type { Target } from "../../notify/target.js";
import { systemClock } from "../../system.js";
import { exitOf } from "./ending.js";
import { showOutcome } from "./outcome.js";
import type { CarryFlags, Prepared } from "./session.js";

/** Carries a run on and tells its end to all who follow it: the person, `--events` and every `--notify`. */
export async function followed(
  { display, events }: Pick<Prepared, "display" | "events">,
  flags: CarryFlags,
  work: (show: (outcome: Outcome) => Promise<ExitName>) => Promise<ExitName>,
): Promise<ExitName> {
  return noticed(await targetsFor(flags), (told) =>
    work(async (outcome) => {
      const end = await showOutcome(outcome, flags, display);
      events?.finish(end);
      told(end.facts);
      return end.exit;
    }),
  );
}

/** Throws EarlyExit for a target that cannot be read. */
async function targetsFor(flags: CarryFlags): Promise<Target[]> {
  if (flags.notify === undefined && flags.notifyCommand === undefined) return [];
  const { targetsOf } = await import("../../notify/target.js");
  return targetsOf(flags, process.env);
}

/**
 * Does the work of a run, then tells what came of it, also when the run could not begin: a nightly job with a revoked
 * key is what somebody has to hear of. By then the workspace is free again. Returns or throws what the work did.
 */
async function noticed(
  targets: readonly Target[],
  work: (told: (facts: RunSummary) => void) => Promise<ExitName>,
): Promise<ExitName> {
  if (targets.length === 0) return work(() => {});
  let facts: RunSummary | null = null;
  try {
    const exit = await work((told) => {
      facts = told;
    });
    await tell(targets, exit, facts, "");
    return exit;
  } catch (error) {
    const exit = exitOf(error);
    // Nothing to resume is no news.
    if (exit !== "done") await tell(targets, exit, facts, await reasonOf(error as Error));
    throw error;
  }
}

/** Why a run could not begin, with the first thing that is wrong with its manifest: nobody sees the screen. */
async function reasonOf(error: Error): Promise<string> {
  const first = error instanceof EarlyExit ? error.problems?.told[0] : undefined;
  if (first === undefined) return error.message;
  const [{ problemsText }, { digestOf }] = await Promise.all([
    import("../../report/problem-text.js"),
    import("../../core/problem.js"),
  ]);
  return `${error.message}: ${problemsText(digestOf([first.problem]), process.cwd())}`;
}

async function tell(
  targets: readonly Target[],
  exit: ExitName,
  facts: RunSummary | null,
  message: string,
): Promise<void> {
  const [{ deliver }, { endNotification }] = await Promise.all([
    import("../../notify/deliver.js"),
    import("../../notify/facts.js"),
  ]);
  await deliver(targets, endNotification(exit, facts, message), {
    environment: process.env,
    clock: systemClock,
    warn: (line) => process.stderr.write(`bulkgen: ${line}\n`),
  });
}
