import { launchScheduledRun } from "../../../schedule/launch.js";
import { scheduledCommand } from "../../../schedule/scheduled-run.js";
import { jsonText } from "../../../text/terminal.js";
import type { ScheduleFlags } from "../../flags/schedule.js";
import type { Call } from "../call.js";
import { scheduleNamed, withSchedules } from "./place.js";

/** Starts a scheduled run now. It prints what `bulkgen run` prints, and ends with the same code. */
export async function runScheduleNow({
  flags,
  args,
  machine,
}: Call<ScheduleFlags, { name: string }>): Promise<number> {
  const { clock, env, program, stdout } = machine;
  const { name } = args;
  return withSchedules(flags, machine, async (schedules, { root }) => {
    const schedule = await scheduleNamed(schedules, name);
    const dueAt = clock.now();
    await schedules.claim(name, dueAt, { state: "running", startedAt: dueAt, note: "by hand" });
    const run = launchScheduledRun(scheduledCommand(schedule, { dueAt, run: null }), {
      program,
      root,
      environment: env,
      clock,
      watched: flags.json ?? false,
    });
    machine.interrupt(() => run.stop());
    const { resumeAt: _, ...end } = await run.ended;
    await schedules.change(name, dueAt, { ...end, state: "ended", endedAt: clock.now() });
    if (flags.json) stdout.write(`${jsonText({ schedule: name, ...end })}\n`);
    return end.exit ?? 1;
  });
}
