import type { Command } from "commander";
import { systemClock } from "../../../system.js";
import { interruption } from "../../output/signals.js";
import { type PlaceFlags, scheduleNamed, withPlace, withSchedules } from "./place.js";

export function defineScheduleRun(schedule: Command): void {
  withPlace(schedule.command("run"))
    .description("make the night of a schedule now, and wait for its end")
    .argument("<name>", "name of the schedule")
    .action(runNow);
}

/** The night begins now; what it shows is what `bulkgen run` shows, and it ends as that ends. */
async function runNow(name: string, flags: PlaceFlags): Promise<void> {
  const [{ launchScheduledRun }, { scheduledCommand }, { thisProgram }] = await Promise.all([
    import("../../../schedule/launch.js"),
    import("../../../schedule/night.js"),
    import("./start.js"),
  ]);
  await withSchedules(flags, async (schedules, { root }) => {
    const schedule = await scheduleNamed(schedules, name);
    const dueAt = systemClock.now();
    await schedules.claim(name, dueAt, { state: "running", startedAt: dueAt, note: "by hand" });
    const night = launchScheduledRun(scheduledCommand(schedule, { dueAt, run: null }), {
      program: thisProgram,
      root,
      environment: process.env,
      clock: systemClock,
      watched: flags.json ?? false,
    });
    interruption(() => night.stop());
    const { resumeAt: _, ...end } = await night.ended;
    await schedules.change(name, dueAt, { ...end, state: "ended", endedAt: systemClock.now() });
    if (flags.json) process.stdout.write(`${JSON.stringify({ schedule: name, ...end })}\n`);
    process.exitCode = end.exit ?? 1;
  });
}
