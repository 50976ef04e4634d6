import { EarlyExit } from "../core/exit.js";
import type { Schedule } from "../store/schedules.js";

/**
 * A schedule in the words of the schedulers that people have. Each of them calls `bulkgen schedule run NAME`, so that
 * edition, end and notices of a night are made in one place; only the time is said in theirs.
 */
export type Scheduler = "systemd" | "cron" | "windows";

export interface Printed {
  schedule: Schedule;
  /** Absolute, as the scheduler needs them. */
  node: string;
  main: string;
  root: string;
}

export function printed(scheduler: Scheduler, what: Printed): string {
  return { systemd, cron, windows }[scheduler](what);
}

const nicknames: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

interface Fields {
  minute: string;
  hour: string;
  day: string;
  month: string;
  weekday: string;
}

function fieldsOf({ cron: line }: Schedule): Fields {
  const [minute = "*", hour = "*", day = "*", month = "*", weekday = "*"] = (
    nicknames[line.trim().toLowerCase()] ?? line
  )
    .trim()
    .split(/\s+/);
  return { minute, hour, day, month, weekday };
}

function cron({ schedule, node, main, root }: Printed): string {
  const { minute, hour, day, month, weekday } = fieldsOf(schedule);
  const words = [node, main, "schedule", "run", schedule.name, "--workspace", root].map(shellWord);
  return [
    "# crontab -e. CRON_TZ is read by cronie and by systemd's cron; other crons go by the machine's own zone.",
    `CRON_TZ=${schedule.zone}`,
    // A percent sign would be a line's end.
    `${minute} ${hour} ${day} ${month} ${weekday} ${words.join(" ").replaceAll("%", "\\%")}`,
  ].join("\n");
}

function systemd({ schedule, node, main, root }: Printed): string {
  const words = [node, main, "schedule", "run", schedule.name, "--workspace", root].map(systemdWord);
  const name = `bulkgen-${schedule.name}`;
  return [
    `# ~/.config/systemd/user/${name}.service`,
    "[Unit]",
    `Description=bulkgen schedule ${schedule.name}`,
    "",
    "[Service]",
    "Type=oneshot",
    `WorkingDirectory=${root.replaceAll("%", "%%")}`,
    `ExecStart=${words.join(" ")}`,
    "# bulkgen ends in good order: answers in flight are awaited.",
    "TimeoutStopSec=180",
    "",
    `# ~/.config/systemd/user/${name}.timer`,
    "[Unit]",
    `Description=bulkgen schedule ${schedule.name}`,
    "",
    "[Timer]",
    ...calendar(fieldsOf(schedule), schedule.zone).map((line) => `OnCalendar=${line}`),
    `Persistent=${schedule.missed === "once"}`,
    "",
    "[Install]",
    "WantedBy=timers.target",
    "",
    `# then: systemctl --user daemon-reload && systemctl --user enable --now ${name}.timer`,
  ].join("\n");
}

/** Where cron is given both a day and a weekday, either will do; systemd would want both, so it gets two lines. */
function calendar({ minute, hour, day, month, weekday }: Fields, zone: string): string[] {
  const time = `${ranges(hour, 0)}:${ranges(minute, 0)}:00 ${zone}`;
  const date = (of: string) => `*-${ranges(monthNumbers(month), 1)}-${ranges(of, 1)}`;
  const everyDay = day === "*" || day === "?";
  const everyWeekday = weekday === "*" || weekday === "?";
  if (everyWeekday) return [`${date(day)} ${time}`];
  const byWeekday = `${weekdays(weekday)} ${date("*")} ${time}`;
  return everyDay ? [byWeekday] : [byWeekday, `${date(day)} ${time}`];
}

/** `1-5` is `1..5`, and a step counts from the first value of the field. */
function ranges(field: string, first: number): string {
  return field
    .replaceAll("?", "*")
    .replace(/\*\/(\d+)/g, `${first}/$1`)
    .replace(/(\d+)-(\d+)/g, "$1..$2");
}

const monthNames = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const dayNames = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

function monthNumbers(field: string): string {
  return field.replace(/[a-z]{3}/gi, (name) => String(monthNames.indexOf(name.toUpperCase()) + 1));
}

/** Every weekday by name: systemd knows neither numbers nor steps here. */
function weekdays(field: string): string {
  const number = (text: string) => {
    const named = dayNames.findIndex((name) => name.toUpperCase() === text.toUpperCase());
    return named === -1 ? Number(text) : named;
  };
  const days = field.split(",").flatMap((part) => {
    const [range = "", step = "1"] = part.split("/");
    const [from = "", to = from] = range === "*" ? ["0", "6"] : range.split("-");
    if (!/^(\d|[a-z]{3})$/i.test(from) || !/^(\d|[a-z]{3})$/i.test(to)) throw unspeakable("systemd", field);
    const last = number(to) < number(from) ? number(to) + 7 : number(to);
    const found: number[] = [];
    for (let day = number(from); day <= last; day += Number(step)) found.push(day % 7);
    return found;
  });
  return [...new Set(days)].map((day) => dayNames[day]).join(",");
}

/** Task Scheduler knows times of day on every day or on some weekdays; the rest of cron it does not. */
function windows({ schedule, node, main, root }: Printed): string {
  const { minute, hour, day, month, weekday } = fieldsOf(schedule);
  if (!/^\d+$/.test(minute) || !/^\d+$/.test(hour) || day !== "*" || month !== "*")
    throw unspeakable("the Task Scheduler", schedule.cron);
  const days =
    weekday === "*" ? "/SC DAILY" : `/SC WEEKLY /D ${weekdays(weekday).toUpperCase().replaceAll(" ", "")}`;
  const words = [node, main, "schedule", "run", schedule.name, "--workspace", root].map(windowsWord);
  const time = `${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  return [
    `REM The time is Windows' own: see that its zone is ${schedule.zone}.`,
    `schtasks /Create /TN "bulkgen ${schedule.name}" ${days} /ST ${time} /TR "wsl.exe -e ${words.join(" ")}"`,
  ].join("\n");
}

function unspeakable(scheduler: string, what: string): EarlyExit {
  return new EarlyExit(
    "usage",
    `${JSON.stringify(what)} cannot be said in the words of ${scheduler}; \`bulkgen schedule start\` runs it`,
  );
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Inside the quotes of /TR; no shell of Linux reads it. */
function windowsWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `\\"${word}\\"`;
}

function systemdWord(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$-]+$/.test(escaped)
    ? escaped
    : `"${escaped.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
