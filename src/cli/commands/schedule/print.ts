import type { Command } from "commander";
import { settledWorkspace } from "../../output/session.js";
import { type PlaceFlags, withPlace } from "./place.js";
import { thisProgram } from "./start.js";

export function defineSchedulePrint(schedule: Command): void {
  withPlace(schedule.command("print"))
    .description("print a systemd service and a crontab line that keep the daemon running")
    .action(print);
}

async function print(flags: PlaceFlags): Promise<void> {
  const { cronLine, systemdService } = await import("../../../schedule/print.js");
  const { root } = settledWorkspace({ logLevel: "warn", ...flags });
  const [node, main] = thisProgram;
  const [systemd, cron] = [systemdService({ node, main, root }), cronLine({ node, main, root })];
  const text = flags.json
    ? JSON.stringify({ systemd, cron })
    : `${systemd}\n\n# Or, without systemd, one line for crontab -e:\n${cron}`;
  process.stdout.write(`${text}\n`);
}
