import type { Command } from "commander";
import { defineScheduleAdd } from "./add.js";
import { defineSchedulePrint } from "./print.js";
import { defineScheduleRun } from "./run.js";
import { defineScheduleList, defineScheduleRemove, defineScheduleShow } from "./show.js";
import { defineScheduleStart } from "./start.js";

export function defineSchedule(program: Command): void {
  const schedule = program
    .command("schedule")
    .description("run jobs by the clock: add, list, show, run, start the daemon, print for others")
    .helpCommand(false);
  for (const define of [
    defineScheduleAdd,
    defineScheduleList,
    defineScheduleShow,
    defineScheduleRemove,
    defineScheduleRun,
    defineScheduleStart,
    defineSchedulePrint,
  ]) {
    define(schedule);
  }
  for (const command of schedule.commands) command.exitOverride();
}
