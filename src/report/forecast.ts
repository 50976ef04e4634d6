import { limitsOf } from "../api/plans.js";
import type { Binding, Forecast, Guessed } from "../core/pace/forecast.js";
import { count, duration } from "../text/amounts.js";
import { localTime } from "../text/times.js";

const bindings: Readonly<Record<Binding, string>> = {
  minute: "limited by requests per minute",
  day: "limited by requests per day",
  credits: "limited by credits",
  generation: "limited by generation time",
  provider: "limited by how many jobs are done at once",
};

/** What a run is expected to need, on one line. */
export function forecastText(forecast: Forecast): string {
  const { requests } = forecast;
  return requests === 0 ? "nothing to do" : `about ${count(requests, "request")}, ${timeText(forecast)}`;
}

/** How long a run is expected to take, what limits it, and how sure that is. */
export function timeText({ ms, binds, larger, guessed }: Forecast, finishAt: number | null = null): string {
  const saves = larger !== null && about(larger.ms) !== about(ms);
  const faster = saves ? `; on ${larger.plan}${limits(larger.plan)} about ${about(larger.ms)}` : "";
  const finish = finishAt === null || ms < longMs ? "" : ` (until about ${localTime(finishAt)})`;
  return `${about(ms)}${finish}, ${bindings[binds]}${faster}${guessed === undefined ? "" : guessText(guessed)}`;
}

function guessText({ models, areAll, sandbox }: Guessed): string {
  const which = areAll
    ? "; rough estimate (no history for these models yet"
    : `; rough estimate for ${models.join(", ")} (no history yet`;
  return `${which}${sandbox ? "; the sandbox is usually faster)" : ")"}`;
}

/** Longer runs (ms) also show the time of their end. */
const longMs = 10 * 60_000;

function limits(plan: string): string {
  const { perMinute, perDay } = limitsOf(plan);
  if (perMinute === null || perDay === null) return " (no limit)";
  return ` (${perMinute} requests a minute, ${perDay} a day)`;
}

/** The forecast beside the result. */
export function comparedText(
  { requests, ms }: Pick<Forecast, "requests" | "ms">,
  outcome: { requests: number; ms: number },
): string {
  const took = duration(Math.max(1_000, Math.round(outcome.ms / 1_000) * 1_000));
  return `${count(requests, "request")}, ${about(ms)}; it took ${count(outcome.requests, "request")}, ${took}`;
}

/** Rounds a time that nobody knows exactly: to 5 s, 30 s, a minute or 5 minutes, by its length. */
function about(ms: number): string {
  const steps: [number, number][] = [
    [60_000, 5_000],
    [600_000, 30_000],
    [7_200_000, 60_000],
  ];
  const [, step] = steps.find(([below]) => ms < below) ?? [0, 300_000];
  return duration(Math.max(step, Math.round(ms / step) * step));
}
