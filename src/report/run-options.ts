import { defaultReconcile } from "../core/charges/readings.js";
import { type Credits, showCredits } from "../core/money.js";
import type { RunOptions } from "../core/next/options.js";
import { shellWord } from "../text/shell.js";

/** The options of a run that are not the defaults, as flags: `--max-credits 60`. */
export function changedFlags(options: RunOptions): string[] {
  const { maxFailures: failures, orphanCredits } = options;
  const pays = orphanCredits > 0;
  // Nobody chose the initial options of a rebuilt run.
  const [noCap, insufficient, retries] = options.rebuilt === true ? ["0", "stop", "0"] : ["", "refuse", "1"];
  const values: readonly (readonly [
    flag: string,
    value: string | number | null | undefined,
    usual?: string,
  ])[] = [
    ["--max-credits", amount(options.maxCredits), noCap],
    ...Object.entries(options.modelCaps ?? {}).map(
      ([model, cap]) => ["--max-credits-per-model", `${model}=${showCredits(cap)}`] as const,
    ),
    ["--keep-credits", amount(options.keepCredits)],
    ["--max-credits-per-day", amount(options.dailyCredits)],
    ["--on-insufficient", options.onInsufficient, insufficient],
    ["--on-daily-limit", options.onDailyLimit, "stop"],
    ["--max-failures", failures && ("count" in failures ? failures.count : `${failures.percent}%`)],
    ["--retries", options.retries, retries],
    ["--until", options.until],
    ["--max-duration", options.maxDurationMs === null ? null : time(options.maxDurationMs)],
    ["--overdue-wait", time(options.overdueWaitMs), "0s"],
    ["--lanes", options.lanes],
    ["--downloads", options.downloads, "4"],
    ["--rpm", options.rpm],
    ["--rpd", options.rpd],
    ["--share", options.share === undefined ? null : `${options.share}%`],
    ["--poll", options.poll],
    ["--archive", options.archive],
    ["--publish", options.publish],
    ["--settle", options.settle, "stop"],
    ["--settle-seconds", delays(options.settleMs), delays(defaultReconcile.settleMs)],
    ["--max-unsettled", options.unsettledMax],
    ["--generation-error", options.errorIsFree ? "free" : null],
    ["--orphans", pays ? "resubmit" : null],
    ["--orphan-credits", pays ? showCredits(orphanCredits) : null],
  ];
  const given = values.flatMap(([flag, value, usual]) =>
    value === null || value === undefined || String(value) === usual
      ? []
      : [`${flag} ${shellWord(String(value))}`],
  );
  return [
    ...given,
    ...(options.archiveOnly === true ? ["--archive-only"] : []),
    ...(options.canary === true ? ["--canary"] : []),
    ...(options.sidecars === true ? ["--sidecars"] : []),
    ...(options.sandbox ? ["--sandbox"] : []),
  ];
}

function amount(credits: Credits | null | undefined): string | null {
  return credits === null || credits === undefined ? null : showCredits(credits);
}

/** A duration as the flags take it, in the largest unit that gives a whole number. */
function time(ms: number): string {
  if (ms > 0 && ms % 3_600_000 === 0) return `${ms / 3_600_000}h`;
  if (ms > 0 && ms % 60_000 === 0) return `${ms / 60_000}m`;
  return `${ms / 1_000}s`;
}

function delays(ms: readonly number[]): string {
  return ms.map((each) => each / 1_000).join(",");
}
