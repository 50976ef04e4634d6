import type { ScheduleRunFlags } from "../../../options/schedule.js";
import { launchScheduledRun } from "../../../schedule/launch.js";
import { endJson, endText, scheduledCommand, whatToType } from "../../../schedule/scheduled-run.js";
import { byHand } from "../../../store/schedules.js";
import { agreeToValues } from "../../output/agreement.js";
import { print } from "../../output/print.js";
import { schedulesFile, scheduleValue } from "../../settings/brought.js";
import { configFiles, runFlagsOf } from "../../settings/settings.js";
import type { Call } from "../call.js";
import { scheduleNamed, withSchedules } from "./place.js";

/**
 * Starts a scheduled run now. It prints what `bulkgen run` prints (with --quiet only how a failed run ended), and ends
 * with the same code.
 */
export async function runScheduleNow({
  flags,
  args,
  machine,
}: Call<ScheduleRunFlags, { name: string }>): Promise<number> {
  const { clock, env, program, stderr } = machine;
  const { name } = args;
  return withSchedules(flags, machine, async (schedules, workspace) => {
    const { root } = workspace;
    const schedule = await scheduleNamed(schedules, name);
    await agreeToValues([scheduleValue(schedule, schedulesFile(workspace))], workspace, machine);
    const dueAt = clock.now();
    await schedules.claim(name, dueAt, { state: "running", startedAt: dueAt, note: byHand });
    const run = launchScheduledRun(scheduledCommand(schedule, { dueAt, run: null }), {
      program,
      root,
      environment: env,
      clock,
      watched: (flags.json || flags.quiet) ?? false,
      stderr,
    });
    machine.interrupt(() => run.stop());
    const ended = await run.ended;
    const { resumeAt: _, ...end } = ended;
    await schedules.change(name, dueAt, { ...end, state: "ended", endedAt: clock.now() });
    if (flags.json) print(flags, machine, "schedule-run", endJson(name, end), () => "");
    else if (flags.quiet && end.exit !== 0) {
      const { sandbox } = runFlagsOf(schedule.flags, await configFiles(root, env), env);
      const todo = whatToType(ended, { root, manifest: schedule.manifest, sandbox: sandbox ?? false });
      stderr.write(`bulkgen: scheduled run of ${name}: ${endText(ended)}: ${todo}\n`);
    }
    return end.exit ?? 1;
  });
}
