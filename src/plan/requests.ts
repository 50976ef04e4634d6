import { announcedIn } from "../api/announced.js";
import { limitsOf, planLimits, plans } from "../api/plans.js";
import { reserveBytes } from "../archive/disk/space.js";
import { type Forecast, forecastOf } from "../core/pace/forecast.js";
import { type DurationEstimate, durationEstimateOf, priorOf } from "../core/pace/pace.js";
import type { ModelSize } from "../core/ports/store.js";
import { lanesOf, narrowed } from "../core/quota/quota.js";
import { fileSize } from "../text/amounts.js";
import type { Sum } from "./cost.js";
import type { ExpectedFiles, Finding, PlanInput, Requests } from "./plan.js";

export interface RequestsInput {
  /** What is to be made, by price group. */
  sums: readonly Sum[];
  /** Tasks that the service has or may have, and that will be polled. */
  open: number;
  isShortOfCredits: boolean;
  chainMs: number;
}

/** The requests that a run needs, and how long they take. */
export function requestsOf(
  { sums, open, isShortOfCredits, chainMs }: RequestsInput,
  input: PlanInput,
): Requests {
  const { me, usedToday = 0, usedNow = 0, ownLimits = {}, lanes } = input;
  const due = sums.reduce((sum, group) => sum + group.due, 0);
  const plan = me.subscription?.plan ?? null;
  const { perMinute, perDay } = limitsOf(plan ?? "");
  const above = plans.slice((plans as readonly string[]).indexOf(plan ?? "") + 1);
  const groups = sums
    .filter((group) => group.due > 0)
    .map((group) => ({ model: group.model, items: group.due, pace: paceFor(group, input) }));
  const reckoned = forecastOf(
    {
      groups,
      open,
      limits: narrowed({ perMinute, perDay }, ownLimits),
      plan: plan ?? "",
      ...(lanes === undefined ? {} : { lanes }),
      usedToday,
      usedNow,
      isShortOfCredits,
      chainMs,
      providers: announcedIn(me).providers,
    },
    above.map((name) => ({ plan: name, limits: narrowed(planLimits[name], ownLimits) })),
  );
  const unseen = new Set(groups.filter(({ pace }) => pace.finished === 0).map(({ model }) => model));
  const guessed = {
    models: [...unseen],
    areAll: groups.every(({ model }) => unseen.has(model)),
    sandbox: input.sandbox,
  };
  const isGuess = ["generation", "provider"].includes(reckoned.binds) && unseen.size > 0;
  const forecast: Forecast = { ...reckoned, ...(isGuess ? { guessed } : {}) };
  const finishAt = forecast.requests === 0 ? null : input.now + forecast.ms;
  const submits = lanes ?? lanesOf(plan ?? "");
  return { atLeast: 2 * due + open, plan, perMinute, perDay, lanes: submits, forecast, finishAt };
}

/** The median time of a generation in ms. */
export function usualMs(group: Pick<Sum, "name" | "category">, input: PlanInput): number {
  return Math.exp(paceFor(group, input).mean);
}

function paceFor({ name, category }: Pick<Sum, "name" | "category">, { pace }: PlanInput): DurationEstimate {
  return pace?.(name) ?? durationEstimateOf(priorOf(category), [], []);
}

/** The expected disk use of a run, from its models' outputs in this workspace, else their category's. */
export function expectedFiles(made: readonly Sum[], sizes: readonly ModelSize[]): ExpectedFiles {
  const expected: ExpectedFiles = { files: 0, bytes: 0, unknown: [] };
  for (const { model, category, due } of made.filter((sum) => sum.due > 0)) {
    const own = each(sizes.filter((size) => size.model === model));
    const size = own ?? each(sizes.filter((other) => other.category === category));
    expected.files += Math.round(due * (size?.files ?? 1));
    expected.bytes += Math.round(due * (size?.bytes ?? 0));
    if (size === null && !expected.unknown.includes(model)) expected.unknown.push(model);
  }
  return expected;
}

/** The average files and bytes of an item; null without history. */
function each(sizes: readonly ModelSize[]): { files: number; bytes: number } | null {
  const sum = (of: "items" | "files" | "bytes") => sizes.reduce((total, size) => total + size[of], 0);
  const made = sum("items");
  return made === 0 ? null : { files: sum("files") / made, bytes: sum("bytes") / made };
}

/** A run waits when the disk is full: warns before it starts. */
export function diskWarning({ files, bytes, unknown }: ExpectedFiles, roomBytes: number | null): Finding[] {
  if (files === 0 || roomBytes === null || (roomBytes > 0 && bytes <= roomBytes)) return [];
  const room = roomBytes > 0 ? `${fileSize(roomBytes)} is free` : "nothing is free";
  const shortage =
    bytes === 0
      ? "The output disk is full"
      : `The files need ${unknown.length === 0 ? "about" : "more than"} ${fileSize(bytes)} and ${room} on the output disk`;
  const message = `${shortage}${roomBytes > 0 ? "" : keptFree(roomBytes)}: free up space or choose another folder with --out.`;
  return [{ kind: "disk_space", message, bytes, roomBytes }];
}

/** Why no space is left, although the disk may not be full. */
function keptFree(roomBytes: number): string {
  const free = fileSize(roomBytes + reserveBytes);
  return ` (${free} free, and ${fileSize(reserveBytes)} stay reserved for the run's own records). Nothing is submitted until there is space`;
}
