import type { Command } from "commander";
import { EarlyExit } from "../../../core/exit.js";
import type { UpcomingRun } from "../../../schedule/tonight.js";
import type { Schedule, ScheduledRun, Schedules } from "../../../store/schedules.js";
import { systemClock } from "../../../system.js";
import { type PlaceFlags, scheduleNamed, withPlace, withSchedules } from "./place.js";

/** Nights that are shown of one schedule. */
const nightsMax = 10;

export function defineScheduleList(schedule: Command): void {
  withPlace(schedule.command("list"))
    .description("list the schedules: when each is due, and what came of its last night")
    .action(list);
}

export function defineScheduleShow(schedule: Command): void {
  withPlace(schedule.command("show"))
    .description("say in plain words what happens next, and what came of the last nights")
    .argument("[name]", "name of the schedule (default: every one)")
    .action(showSchedule);
}

export function defineScheduleRemove(schedule: Command): void {
  withPlace(schedule.command("remove"))
    .description("remove a schedule; its nights stay on record")
    .argument("<name>", "name of the schedule")
    .action(remove);
}

async function list(flags: PlaceFlags): Promise<void> {
  await withSchedules(flags, async (schedules, { root }) => {
    const all = await Promise.all((await schedules.all()).map((each) => tonightOf(schedules, each, root)));
    const [{ schedulesTable }, { terminalStyle }, { listedSchedule }] = await Promise.all([
      import("../../../schedule/tonight.js"),
      import("../../../text/table.js"),
      import("../../../schedule/tonight.js"),
    ]);
    const text = flags.json
      ? JSON.stringify(all.map((each) => listedSchedule(each, systemClock.now())))
      : schedulesTable(all, systemClock, terminalStyle(process.stdout, process.env));
    process.stdout.write(`${all.length === 0 && !flags.json ? "no schedules" : text}\n`);
  });
}

export async function showSchedule(name: string | undefined, flags: PlaceFlags): Promise<void> {
  await withSchedules(flags, async (schedules, { root }) => {
    const chosen = name === undefined ? await schedules.all() : [await scheduleNamed(schedules, name)];
    if (chosen.length === 0) throw new EarlyExit("usage", `no schedule in ${root}`);
    const all = await Promise.all(chosen.map((each) => tonightOf(schedules, each, root)));
    const [{ upcomingText }, { terminalStyle }, { listedSchedule }] = await Promise.all([
      import("../../../schedule/tonight.js"),
      import("../../../text/table.js"),
      import("../../../schedule/tonight.js"),
    ]);
    if (flags.json) {
      const documents = all.map((each) => listedSchedule(each, systemClock.now()));
      process.stdout.write(`${JSON.stringify(name === undefined ? documents : documents[0])}\n`);
      return;
    }
    const look = terminalStyle(process.stdout, process.env);
    process.stdout.write(`${all.map((each) => upcomingText(each, systemClock, look)).join("\n\n")}\n`);
  });
}

async function remove(name: string, flags: PlaceFlags): Promise<void> {
  await withSchedules(flags, async (schedules) => {
    await scheduleNamed(schedules, name);
    await schedules.remove(name);
    process.stdout.write(flags.json ? `${JSON.stringify({ removed: name })}\n` : `${name} is removed\n`);
  });
}

/** What is known of a schedule, with the settings that hold for its nights. */
async function tonightOf(schedules: Schedules, schedule: Schedule, root: string): Promise<UpcomingRun> {
  const { configFiles, heldSettings } = await import("../../settings/settings.js");
  const nights: ScheduledRun[] = await schedules.nights(schedule.name, nightsMax);
  const files = await configFiles(root, process.env);
  return { schedule, nights, settings: heldSettings(schedule.flags, files, process.env) };
}
