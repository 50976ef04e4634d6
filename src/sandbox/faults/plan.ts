import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { switches } from "../../service/state/switches.js";
import { readJson } from "../catalogue/json-file.js";
import { type Fault, fault } from "./fault.js";

/** What a fault can happen to: a request of one endpoint, or the download of an output. */
export const subjects = ["generate", "task", "models", "me", "download"] as const;
export type FaultSubject = (typeof subjects)[number];

/** The endpoints to which a kind of fault applies. */
function subjectsOf(kind: Fault["kind"]): readonly FaultSubject[] {
  if (kind.startsWith("download-")) return ["download"];
  if (kind.startsWith("task-") || kind === "generation-error") return ["generate"];
  if (kind === "internal-error") return ["task"];
  return ["generate", "task", "models", "me"];
}

/** A fault and when it happens. Each rule counts the requests that it applies to, from 1. */
const rule = z
  .strictObject({
    fault,
    /** Where; without it, wherever the fault makes sense. */
    on: z.array(z.enum(subjects)).min(1).optional(),
    /** To this share of the requests, chosen by the seed. */
    rate: z.number().min(0).max(1).optional(),
    /** To exactly these requests. */
    at: z.array(z.int().min(1)).optional(),
    /** To each request whose number is a multiple of this. */
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

/** Kinds of trouble by name. */
export const presets = {
  /** A bit of everything, as on a bad day. */
  flaky: {
    rules: [
      { fault: "lost-reply", on: ["generate"], rate: 0.03 },
      { fault: "lost-request", rate: 0.02 },
      { fault: { kind: "http-error", status: 502 }, rate: 0.03 },
      { fault: "truncated-json", rate: 0.01 },
      { fault: "task-fails", rate: 0.05 },
      { fault: "spurious-429", rate: 0.01 },
      { fault: "download-truncated", rate: 0.1 },
      { fault: "download-expired", rate: 0.03 },
    ],
  },
  /** Requests and replies that get lost, early and late: the cause of paying twice and of losing paid outputs. */
  lossy: {
    rules: [
      { fault: "lost-request", rate: 0.08 },
      { fault: "lost-reply", rate: 0.08 },
      { fault: { kind: "late-arrival", delayMs: 45_000 }, on: ["generate"], rate: 0.05 },
      { fault: "cut-reply", rate: 0.04 },
    ],
  },
  /** Errors of every form instead of answers. */
  broken: {
    rules: [
      { fault: { kind: "http-error", status: 500, seen: true }, rate: 0.04 },
      { fault: { kind: "http-error", status: 503 }, rate: 0.06 },
      { fault: "generation-error", rate: 0.05 },
      { fault: "internal-error", rate: 0.05 },
      { fault: "malformed-json", rate: 0.04 },
      { fault: "truncated-json", rate: 0.04 },
    ],
  },
  /** The strictest limiter, which says nothing and forgives nothing. */
  strict: {
    rules: [{ fault: "spurious-429", rate: 0.02 }],
    switches: {
      limiter: { kind: "sliding-counter", countsRejected: true },
      tooMany: { retryAfter: "none", body: "empty" },
    },
  },
  /** Everything works and takes its time. */
  slow: {
    rules: [
      { fault: { kind: "slow-answer", delayMs: 4_000 }, rate: 0.3 },
      { fault: { kind: "slow-bytes", bytesPerSecond: 200 }, rate: 0.1 },
      { fault: { kind: "download-stalled", forMs: 8_000 }, rate: 0.2 },
    ],
  },
  /** Tasks that come to nothing. */
  stuck: {
    rules: [
      { fault: "task-never-finishes", rate: 0.1 },
      { fault: "task-vanishes", rate: 0.05 },
      { fault: "task-fails", rate: 0.15 },
    ],
  },
  /** Downloads that go wrong in every way. */
  downloads: {
    rules: [
      { fault: "download-truncated", rate: 0.15 },
      { fault: { kind: "download-truncated", pretends: true }, rate: 0.05 },
      { fault: { kind: "download-stalled", forMs: 20_000 }, rate: 0.05 },
      { fault: "download-corrupt", rate: 0.05 },
      { fault: "download-new-etag", rate: 0.1 },
      { fault: "download-ignores-range", rate: 0.2 },
      { fault: "download-expired", rate: 0.1 },
      { fault: { kind: "download-redirect", hops: 2 }, rate: 0.1 },
    ],
  },
} satisfies Record<string, FaultPlanSettings>;

/**
 * The plan of a preset, or of a JSON file. Throws an error that says what was expected, what was found and where, with
 * the message of `read` if the file cannot be read; `seed` replaces the plan's own.
 */
export async function readFaults(
  fileOrPreset: string,
  seed?: string,
  read = (file: string) => readFile(file, "utf8"),
): Promise<FaultPlan> {
  const settings = Object.hasOwn(presets, fileOrPreset)
    ? presets[fileOrPreset as keyof typeof presets]
    : await fromFile(fileOrPreset, read);
  const plan = faultPlan.parse(settings);
  return seed === undefined ? plan : { ...plan, seed };
}

async function fromFile(file: string, read: (file: string) => Promise<string>): Promise<FaultPlanSettings> {
  const text = await read(file).catch((error: Error) => {
    const names = Object.keys(presets).join(", ");
    throw new Error(`expected a JSON file or one of ${names}, got ${file}: ${error.message}`);
  });
  return readJson(text, file, { schema: faultPlan, what: "plan of faults" });
}

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
