import { z } from "zod";
import { switches } from "../state/switches.js";
import { type Fault, fault } from "./fault.js";

/** What a fault can happen to: a request of one endpoint, or the download of an output. */
export const subjects = ["generate", "task", "models", "me", "download"] as const;
export type FaultSubject = (typeof subjects)[number];

/** Where a kind of fault makes sense. */
export function subjectsOf(kind: Fault["kind"]): readonly FaultSubject[] {
  if (kind.startsWith("download-")) return ["download"];
  if (kind.startsWith("task-") || kind === "generation-error") return ["generate"];
  if (kind === "internal-error") return ["task"];
  return ["generate", "task", "models", "me"];
}

/** A fault and when it happens. Requests are counted for each rule by itself, those that the rule is about, from 1. */
const rule = z
  .strictObject({
    fault,
    /** Where; without it, wherever the fault makes sense. */
    on: z.array(z.enum(subjects)).min(1).optional(),
    /** To this share of the requests, chosen by the seed. */
    rate: z.number().min(0).max(1).optional(),
    /** To exactly these requests. */
    at: z.array(z.int().min(1)).optional(),
    /** To each request whose number this divides. */
    every: z.int().min(1).optional(),
    /** No more often than this. */
    most: z.int().min(0).optional(),
  })
  .check(({ value, issues }) => {
    const given = [value.rate, value.at, value.every].filter((when) => when !== undefined).length;
    if (given !== 1) {
      issues.push({ code: "custom", input: value, message: "expected exactly one of rate, at and every" });
    }
    const possible = subjectsOf(value.fault.kind);
    const odd = value.on?.find((subject) => !possible.includes(subject));
    if (odd !== undefined) {
      const message = `${value.fault.kind} happens on ${possible.join(", ")}, not on ${odd}`;
      issues.push({ code: "custom", input: value, path: ["on"], message });
    }
  });

export const faultPlan = z.strictObject({
  /** Another seed puts the faults of every rate elsewhere. */
  seed: z.string().default("1"),
  /** The first rule that applies to a request wins. */
  rules: z.array(rule).default([]),
  /** Switches that belong to this kind of trouble; a sandbox's own go before them. */
  switches: switches.partial().optional(),
});

export type FaultRule = z.output<typeof rule>;
export type FaultPlan = z.output<typeof faultPlan>;
/** As it is written in a file: what has a default may be left out, and a fault may be its bare kind. */
export type FaultPlanSettings = z.input<typeof faultPlan>;
