import { type Command, Option } from "commander";
import { EarlyExit } from "../../../core/exit.js";
import type { Scheduler } from "../../../schedule/print.js";
import { type PlaceFlags, scheduleNamed, withPlace, withSchedules } from "./place.js";
import { thisProgram } from "./start.js";

type PrintFlags = PlaceFlags & Partial<Record<Scheduler, boolean>>;

const schedulers: readonly Scheduler[] = ["systemd", "cron", "windows"];

export function defineSchedulePrint(schedule: Command): void {
  const command = withPlace(schedule.command("print"))
    .description("print a schedule for a scheduler of yours, in place of the daemon")
    .argument("<name>", "name of the schedule");
  const texts: Record<Scheduler, string> = {
    systemd: "as a service and a timer of systemd",
    cron: "as a line for crontab",
    windows: "as a task of Windows, through WSL",
  };
  for (const name of schedulers) {
    const others = schedulers.filter((other) => other !== name);
    command.addOption(new Option(`--${name}`, texts[name]).conflicts(others));
  }
  command.action(print);
}

async function print(name: string, flags: PrintFlags): Promise<void> {
  const { printed } = await import("../../../schedule/print.js");
  const scheduler = schedulers.find((each) => flags[each]);
  if (!scheduler)
    throw new EarlyExit("usage", "expected one of --systemd, --cron, --windows: which scheduler is it for?");
  await withSchedules(flags, async (schedules, { root }) => {
    const schedule = await scheduleNamed(schedules, name);
    const [node, main] = thisProgram;
    const text = printed(scheduler, { schedule, node, main, root });
    process.stdout.write(`${flags.json ? JSON.stringify({ name, scheduler, text }) : text}\n`);
  });
}
