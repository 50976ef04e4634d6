import { EarlyExit } from "../../../core/exit.js";
import { printed, type Scheduler } from "../../../schedule/print.js";
import type { SchedulePrintFlags } from "../../flags/schedule.js";
import type { Call } from "../call.js";
import { scheduleNamed, withSchedules } from "./place.js";

const schedulers: readonly Scheduler[] = ["systemd", "cron", "windows"];

export async function printSchedule({
  flags,
  args,
  machine,
}: Call<SchedulePrintFlags, { name: string }>): Promise<undefined> {
  const { name } = args;
  const scheduler = schedulers.find((each) => flags[each]);
  if (!scheduler)
    throw new EarlyExit("usage", "expected one of --systemd, --cron, --windows: the scheduler to print for");
  await withSchedules(flags, machine, async (schedules, { root }) => {
    const schedule = await scheduleNamed(schedules, name);
    const [node, main] = machine.program;
    const text = printed(scheduler, { schedule, node, main, root });
    machine.stdout.write(`${flags.json ? JSON.stringify({ name, scheduler, text }) : text}\n`);
  });
}
