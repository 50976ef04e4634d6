import type { ExitName } from "../core/exit.js";
import type { Outcome } from "../job/run-job.js";
import { systemClock } from "../system.js";
import type { CarryFlags, Prepared } from "./job-options.js";
import { noticed } from "./notify-command.js";
import { showOutcome } from "./outcome.js";

/** Carries a run on and tells its end to all who follow it: the person, `--events` and `--notify-command`. */
export function followed(
  { display, events }: Pick<Prepared, "display" | "events">,
  flags: CarryFlags,
  work: (show: (outcome: Outcome) => Promise<ExitName>) => Promise<ExitName>,
): Promise<ExitName> {
  const notice = {
    command: flags.notifyCommand,
    environment: process.env,
    clock: systemClock,
    warn: (line: string) => process.stderr.write(`bulkgen: ${line}\n`),
  };
  return noticed(notice, (told) =>
    work(async (outcome) => {
      const end = await showOutcome(outcome, flags, display);
      events?.finish(end);
      told(end.facts);
      return end.exit;
    }),
  );
}
