import { createHash } from "node:crypto";
import type { Fault } from "./fault.js";
import type { FaultPlan, FaultRule } from "./plan.js";
import { type FaultSubject, subjectsOf } from "./plan.js";

/**
 * Decides which request meets which fault. The same plan gives the same faults to the same order of requests: chance
 * follows from the seed, the rule and the request's number alone, so no clock, socket or other rule can move it.
 */
export class FaultScript {
  private readonly counts: { asked: number; happened: number }[];

  constructor(private readonly plan: FaultPlan) {
    this.counts = plan.rules.map(() => ({ asked: 0, happened: 0 }));
  }

  /** Whether any rule of the plan can make this fault happen. */
  canCause(kind: Fault["kind"]): boolean {
    return this.plan.rules.some(({ fault }) => fault.kind === kind);
  }

  /** The fault of the next request of this kind, in the order of their arrival; null for one that goes well. */
  next(subject: FaultSubject): Fault | null {
    let chosen: Fault | null = null;
    for (const [index, rule] of this.plan.rules.entries()) {
      const count = this.counts[index];
      if (!count || !(rule.on ?? subjectsOf(rule.fault.kind)).includes(subject)) continue;
      count.asked++;
      if (chosen || count.happened >= (rule.most ?? Number.POSITIVE_INFINITY)) continue;
      if (!this.applies(rule, index, count.asked)) continue;
      count.happened++;
      chosen = rule.fault;
    }
    return chosen;
  }

  private applies({ rate, at, every }: FaultRule, index: number, number: number): boolean {
    if (at) return at.includes(number);
    if (every) return number % every === 0;
    return chance(`${this.plan.seed} ${index} ${number}`) < (rate ?? 0);
  }
}

/** A number in [0, 1) that follows from a text. */
function chance(text: string): number {
  return createHash("sha256").update(text).digest().readUIntBE(0, 6) / 2 ** 48;
}
