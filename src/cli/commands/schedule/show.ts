import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import { cronLine, systemdService } from "../../../schedule/print.js";
import {
  listedSchedule,
  schedulesTable,
  type UpcomingRun,
  upcomingText,
} from "../../../schedule/upcoming.js";
import type { Schedule, Schedules } from "../../../store/schedules.js";
import { terminalStyle } from "../../../text/table.js";
import type { ScheduleFlags } from "../../flags/schedule.js";
import { configFiles, heldSettings } from "../../settings/settings.js";
import { settledWorkspace } from "../../settings/workspace.js";
import type { Call } from "../call.js";
import { scheduleNamed, withSchedules } from "./place.js";

/** How many of its last runs are shown for a schedule. */
const runsMax = 10;

export async function listSchedules({ flags, machine }: Call<ScheduleFlags>): Promise<undefined> {
  const { clock, stdout, env } = machine;
  await withSchedules(flags, machine, async (schedules, { root }) => {
    const all = await Promise.all(
      (await schedules.all()).map((each) => tonightOf(schedules, each, root, machine)),
    );
    const text = flags.json
      ? JSON.stringify(all.map((each) => listedSchedule(each, clock.now())))
      : schedulesTable(all, clock, terminalStyle(stdout, env));
    stdout.write(`${all.length === 0 && !flags.json ? "no schedules" : text}\n`);
  });
}

export async function showSchedules({
  flags,
  args,
  machine,
}: Pick<Call<ScheduleFlags, { name?: string }>, "flags" | "args" | "machine">): Promise<undefined> {
  const { clock, stdout, env } = machine;
  const { name } = args;
  await withSchedules(flags, machine, async (schedules, { root }) => {
    const chosen = name === undefined ? await schedules.all() : [await scheduleNamed(schedules, name)];
    if (chosen.length === 0) throw new EarlyExit("usage", `there is no schedule in ${root}`);
    const all = await Promise.all(chosen.map((each) => tonightOf(schedules, each, root, machine)));
    if (flags.json) {
      const documents = all.map((each) => listedSchedule(each, clock.now()));
      stdout.write(`${JSON.stringify(name === undefined ? documents : documents[0])}\n`);
      return;
    }
    const style = terminalStyle(stdout, env);
    stdout.write(`${all.map((each) => upcomingText(each, clock, style)).join("\n\n")}\n`);
  });
}

export async function removeSchedule({
  flags,
  args,
  machine,
}: Call<ScheduleFlags, { name: string }>): Promise<undefined> {
  const { name } = args;
  await withSchedules(flags, machine, async (schedules) => {
    await scheduleNamed(schedules, name);
    await schedules.remove(name);
    machine.stdout.write(flags.json ? `${JSON.stringify({ removed: name })}\n` : `removed ${name}\n`);
  });
}

/** A schedule with its last runs and the settings that apply to the next one. */
async function tonightOf(
  schedules: Schedules,
  schedule: Schedule,
  root: string,
  { env }: Machine,
): Promise<UpcomingRun> {
  const scheduledRuns = await schedules.scheduledRuns(schedule.name, runsMax);
  return {
    schedule,
    scheduledRuns,
    settings: heldSettings(schedule.flags, await configFiles(root, env), env),
  };
}

export async function printSchedule({ flags, machine }: Call<ScheduleFlags>): Promise<undefined> {
  const { root } = settledWorkspace(flags, machine);
  const [node, main] = machine.program;
  const [systemd, cron] = [systemdService({ node, main, root }), cronLine({ node, main, root })];
  const text = flags.json
    ? JSON.stringify({ systemd, cron })
    : `${systemd}\n\n# Or, without systemd, one line for crontab -e:\n${cron}`;
  machine.stdout.write(`${text}\n`);
}
