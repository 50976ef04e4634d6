import { cronLine, systemdService } from "../../../schedule/print.js";
import type { ScheduleFlags } from "../../flags/schedule.js";
import { settledWorkspace } from "../../settings/workspace.js";
import type { Call } from "../call.js";

export async function printSchedule({ flags, machine }: Call<ScheduleFlags>): Promise<undefined> {
  const { root } = settledWorkspace(flags, machine);
  const [node, main] = machine.program;
  const [systemd, cron] = [systemdService({ node, main, root }), cronLine({ node, main, root })];
  const text = flags.json
    ? JSON.stringify({ systemd, cron })
    : `${systemd}\n\n# Or, without systemd, one line for crontab -e:\n${cron}`;
  machine.stdout.write(`${text}\n`);
}
