import { expect, test } from "vitest";
import { type FlagDefinition, nameOf } from "../../src/options/definition.js";
import { resumeFlags } from "../../src/options/run.js";
import { carryFlags, serviceFlags } from "../../src/options/shared.js";
import { scheduledCommand } from "../../src/schedule/scheduled-run.js";

/** Set by the daemon itself, by the person who looks on, or by the one who adds the schedule. */
const ofLooking = ["--trust-address", "--workspace", "--json", "--quiet", "--events"];

test("a run that continues gets the flags of its schedule that resume takes, and no others", () => {
  const {
    gallery,
    acceptForeignUse,
    maxPrice,
    maxCredits,
    maxCreditsPerModel,
    maxCreditsPerDay,
    keepCredits,
  } = resumeFlags;
  const taken = Object.entries<FlagDefinition>({
    ...carryFlags,
    ...serviceFlags,
    gallery,
    acceptForeignUse,
    maxPrice,
    maxCredits,
    maxCreditsPerModel,
    maxCreditsPerDay,
    keepCredits,
  }).flatMap(([attribute, { negatable = false }]) => {
    const name = nameOf(attribute);
    return negatable ? [`--${name}`, `--no-${name}`] : [`--${name}`];
  });
  const carried = taken.filter((name) => !ofLooking.includes(name));
  const flags = [...carried, "--retries", "--fresh"].map((name) => [name, "1"] as const);
  const schedule = { name: "nightly", manifest: "set.csv", cron: "0 2 * * *", zone: "UTC", flags };
  const { words } = scheduledCommand(
    { ...schedule, missed: "once", seenUntil: 0, pausedAt: null },
    { dueAt: 0, run: 7 },
  );
  expect(words.toSorted()).toEqual(["7", "--yes", ...carried.map((name) => `${name}=1`)].toSorted());
});
