import type { StartChoices } from "../../../documents/page.js";

/** A schedule in plain words: its times, and what its runs make. */

export type CronPreset = "hourly" | "daily" | "weekdays" | "weekly" | "monthly" | "own";

export const presetWords: Readonly<Record<CronPreset, string>> = {
  hourly: "every hour",
  daily: "every day at",
  weekdays: "Monday to Friday at",
  weekly: "every week on",
  monthly: "on the first of every month at",
  own: "a cron expression",
};

export const weekdays = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
] as const;

/** The cron expression; `time` is `06:00`. */
export function cronOf(preset: Exclude<CronPreset, "own">, time: string, weekday: number): string {
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  switch (preset) {
    case "hourly":
      return `${minute} * * * *`;
    case "daily":
      return `${minute} ${hour} * * *`;
    case "weekdays":
      return `${minute} ${hour} * * 1-5`;
    case "weekly":
      return `${minute} ${hour} * * ${weekday}`;
    case "monthly":
      return `${minute} ${hour} 1 * *`;
  }
}

/** `every day at 06:00`; or the expression itself, if it has no such form. */
export function cronWords(cron: string): string {
  const [, minute, hour, day, month, weekday] =
    /^(\d{1,2}) (\d{1,2}|\*) (\d{1,2}|\*) (\*) (\d|1-5|\*)$/.exec(cron.trim()) ?? [];
  if (minute === undefined || month === undefined) return cron;
  const time = `${String(hour).padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (hour === "*") return day === "*" && weekday === "*" ? `every hour at minute ${Number(minute)}` : cron;
  if (day === "*" && weekday === "*") return `every day at ${time}`;
  if (day === "*" && weekday === "1-5") return `Monday to Friday at ${time}`;
  if (day === "*") return `every ${weekdays[Number(weekday) % 7]} at ${time}`;
  if (day === "1" && weekday === "*") return `on the first of every month at ${time}`;
  return cron;
}

/** What each run makes, and what it may spend. */
export function runWords({ fresh, maxCredits }: Pick<StartChoices, "fresh" | "maxCredits">): string {
  const made =
    fresh === true
      ? "Each run makes everything in the sheet again, in a new edition,"
      : "Each run makes what is new in the sheet";
  const most = maxCredits === undefined ? "; set a cap to limit that." : `, at most ${maxCredits}.`;
  return `${made} and spends the credits for it${most}`;
}
