import { limitsOf } from "../api/plans.js";
import { localTime } from "../core/local-time.js";
import type { Binding, Forecast, Guessed } from "../core/pace/forecast.js";
import { duration } from "../text/amounts.js";

const bindings: Readonly<Record<Binding, string>> = {
  minute: "limited by requests per minute",
  day: "limited by requests per day",
  credits: "limited by credits",
  generation: "limited by generation time",
};

/** What a run is expected to need, on one line. */
export function forecastText(
  { requests, ms, binds, larger, guessed }: Forecast,
  finishAt: number | null = null,
): string {
  if (requests === 0) return "nothing to do";
  const faster = larger === null ? "" : `; on ${larger.plan}${limits(larger.plan)} about ${about(larger.ms)}`;
  const finish = finishAt === null || ms < longMs ? "" : ` (until about ${localTime(finishAt)})`;
  return `about ${requests} requests, ${about(ms)}${finish}; ${bindings[binds]}${faster}${guessed === undefined ? "" : guessText(guessed)}`;
}

function guessText({ models, areAll }: Guessed): string {
  return areAll
    ? "; rough estimate (no history for these models yet)"
    : `; rough estimate for ${models.join(", ")} (no history yet)`;
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
  return `${requests} requests, ${about(ms)}; it took ${outcome.requests} requests, ${about(outcome.ms)}`;
}

/** A forecast is not exact, so it is rounded. */
function about(ms: number): string {
  return duration(Math.max(1_000, Math.round(ms / 1_000) * 1_000));
}
