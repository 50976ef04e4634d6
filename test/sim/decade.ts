import type { Chance } from "./chance.js";
import type { PlannedFault, Scenario } from "./scenario.js";

const tenYearsMs = 3_653 * 86_400_000;

/** In some runs the clock jumps by ten years, and the user sets it right, soon or hours later. */
export function decade(lot: Chance): PlannedFault[] {
  if (!lot.is(0.08)) return [];
  const byMs = lot.pick([-1, 1]) * tenYearsMs;
  const begin = lot.scale(500, 900_000);
  const rightAt = begin + lot.scale(30_000, 21_600_000);
  return [
    { at: "time", ms: begin, fault: { kind: "clock-jump", byMs } },
    { at: "time", ms: rightAt, fault: { kind: "clock-jump", byMs: -byMs } },
  ];
}

export function isByYears({ faults }: Scenario): boolean {
  return faults.some(({ fault }) => fault.kind === "clock-jump" && Math.abs(fault.byMs) >= tenYearsMs);
}
