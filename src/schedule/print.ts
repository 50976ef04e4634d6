import { shellWord } from "../text/shell.js";

/** What keeps the daemon of a workspace running: a service of systemd, or a line of cron. */
export interface DaemonCommand {
  /** Absolute paths. */
  node: string;
  main: string;
  root: string;
}

export function systemdService({ node, main, root }: DaemonCommand): string {
  const words = [node, main, "schedule", "start", "--workspace", root].map(systemdWord);
  return [
    "# ~/.config/systemd/user/bulkgen.service",
    "# then: systemctl --user daemon-reload && systemctl --user enable --now bulkgen",
    "# and, to keep it running while you are logged out: loginctl enable-linger",
    "[Unit]",
    "Description=bulkgen schedules",
    "",
    "[Service]",
    `WorkingDirectory=${root.replaceAll("%", "%%")}`,
    `ExecStart=${words.join(" ")}`,
    "Restart=on-failure",
    "RestartSec=60",
    "# After SIGTERM bulkgen waits for the answers of requests in flight.",
    "TimeoutStopSec=180",
    "",
    "[Install]",
    "WantedBy=default.target",
  ].join("\n");
}

export function cronLine({ node, main, root }: DaemonCommand): string {
  // Cron sends mail about whatever is printed: only trouble, which is on standard error, is worth one.
  const words = [node, main, "schedule", "start", "--workspace", root, "--log-level", "warn"].map(shellWord);
  // In a crontab a percent sign ends the command.
  return `@reboot ${words.join(" ").replaceAll("%", "\\%")} >/dev/null`;
}

function systemdWord(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$-]+$/.test(escaped)
    ? escaped
    : `"${escaped.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
