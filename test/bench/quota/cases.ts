import type { PlanName } from "../../../src/api/plans.js";
import type { PollProfile } from "../../../src/core/pace/pressure.js";
import type { LimiterKind } from "./limiter.js";
import type { Wanted } from "./mixes.js";
import type { UsualPolling } from "./usual.js";

export interface Case extends Omit<Wanted, "seed"> {
  name: string;
  plan: PlanName;
  profile?: PollProfile;
  /** Others to compare with; the documented polling when left out. */
  against?: readonly UsualPolling[];
  untilMs?: number;
  /** What the time is a multiple of: the least possible, or polling without a quota, with or without lanes. */
  timeOf?: "least" | "unlimited" | "unlimited, through the lanes";
  /** The first run of an account, with the program's own ledger, which lets its first requests go a few at a time. */
  isNewAccount?: true;
  /** POSTs in flight at once, where not the plan's own. */
  lanes?: number;
  /** How many of the seeds, where all would take too long. */
  seedsMost?: number;
  /** How many seeds at least, where the mean of a few is that of the longest generation among them. */
  seedsLeast?: number;
}

const dayMs = 86_400_000;
export const documented = ["2→10 s, 10 in flight"] as const;
const all = [
  ...documented,
  "2→10 s, no bound",
  "every 3 s, 10 in flight",
  "every 0.5 s, 10 in flight",
] as const;
const starter = { plan: "Starter", items: 400 } as const;
const pro = { plan: "Pro", items: 400 } as const;
const enterprise = { plan: "Enterprise", items: 400 } as const;
const few = { plan: "Starter", items: 10, mix: "images", timeOf: "unlimited" } as const;

/** The first requests of an account, which go a few at a time. */
const first = { ...few, isNewAccount: true, against: [] } as const;

/** What the README has in its first table. */
export const mainCases: readonly Case[] = [
  { ...starter, name: "mixed 400, Starter", mix: "mixed", against: all },
  { ...starter, name: "mixed 400, Starter, frugal", mix: "mixed", profile: "frugal", against: [] },
  { ...starter, name: "mixed 400, Starter, eager", mix: "mixed", profile: "eager", against: [] },
  { ...pro, name: "mixed 400, Pro", mix: "mixed", against: all },
  { ...starter, name: "video 90 s, 400, Starter", mix: "video", against: all },
  { ...starter, name: "lognormal σ 1, mixed 400, Starter", mix: "lognormal, sigma 1" },
  { ...starter, name: "Pareto 1.5, mixed 400, Starter", mix: "Pareto 1.5" },
  {
    ...starter,
    name: "Pareto 1.5, mixed 400, Starter, 500 seeds",
    mix: "Pareto 1.5",
    seedsLeast: 500,
    against: [],
  },
  { ...enterprise, name: "mixed 400, Enterprise", mix: "mixed", against: ["2→10 s, no bound"] },
  { ...few, name: "10 images, Starter", against: all },
  {
    ...few,
    name: "10 images, Starter, against one lane",
    against: [],
    timeOf: "unlimited, through the lanes",
  },
  { ...few, name: "10 images, Starter, 2 lanes", lanes: 2, against: [] },
  { ...few, name: "10 images, Starter, 16 lanes", lanes: 16, against: [] },
  {
    name: "a Starter day of 180 s videos",
    mix: "video of 180 s",
    items: 1_000,
    plan: "Starter",
    untilMs: dayMs,
    against: [...documented, "2→10 s, no bound"],
  },
];

export const otherCases: readonly Case[] = [
  { ...first, name: "10 images, Starter, a new account" },
  { ...first, name: "10 images, Starter, 16 lanes, a new account", lanes: 16 },
  { ...starter, name: "images 400, Starter", mix: "images" },
  { ...starter, name: "pace doubles in mid-run", mix: "mixed", paceAfterHalf: 2, against: [] },
  { ...starter, name: "pace halves in mid-run", mix: "mixed", paceAfterHalf: 0.5, against: [] },
  { ...starter, name: "three models a category, other paces", mix: "unseen models", against: [] },
  { ...starter, name: "one in ten fails", mix: "mixed", failing: 0.1, against: [] },
  { name: "all take 9 minutes, 100, Starter", mix: "9 minutes", items: 100, plan: "Starter", against: [] },
  { name: "mixed 10, Pro", mix: "mixed", items: 10, plan: "Pro", against: [] },
  { name: "mixed 10, Enterprise", mix: "mixed", items: 10, plan: "Enterprise", against: [] },
  { name: "mixed 5,000, Starter", mix: "mixed", items: 5_000, plan: "Starter", seedsMost: 3, against: [] },
  {
    name: "mixed 5,000, Pro, its first day",
    mix: "mixed",
    items: 5_000,
    plan: "Pro",
    untilMs: dayMs,
    seedsMost: 3,
    against: [],
  },
  {
    name: "mixed 5,000, Enterprise",
    mix: "mixed",
    items: 5_000,
    plan: "Enterprise",
    seedsMost: 2,
    against: [],
  },
];

/** What the short form measures: one of each kind that takes little. */
export const shortCases = mainCases.filter(({ items }) => items <= 10);

/** Of how many requests the forecast is held against the run. */
export const foreseen: readonly Pick<Case, "plan" | "mix" | "items">[] = (
  [
    ["Starter", "images"],
    ["Starter", "mixed"],
    ["Pro", "images"],
    ["Pro", "mixed"],
    ["Enterprise", "mixed"],
  ] as const
).flatMap(([plan, mix]) => [3, 10, 30, 100, 400].map((items) => ({ plan, mix, items })));

/** Of how much time the forecast is held against the run. */
export const timeForeseen = (["Starter", "Pro", "Enterprise"] as const).flatMap((plan) =>
  (["images", "mixed"] as const).flatMap((mix) =>
    [15, 20, 30, 40, 45, 60, 75, 100, 400].flatMap((items) =>
      [true, false].map((knows) => ({ plan, mix, items, knows })),
    ),
  ),
);

/** A limiter at the service's door, the program's own ledger before it, and so many runs on the account. */
export interface Refusing {
  plan: PlanName;
  limiter: LimiterKind;
  runs: number;
}

const everyKind: readonly LimiterKind[] = [
  "sliding log",
  "fixed window",
  "fixed window, from the middle of the minute",
  "full bucket",
  "sliding counter",
  "sliding counter, refused ones count",
  "bucket of 5",
  "bucket of 1",
];

export const refusing: readonly Refusing[] = [
  ...everyKind.map((limiter) => ({ plan: "Starter", limiter, runs: 1 }) as const),
  ...everyKind.map((limiter) => ({ plan: "Pro", limiter, runs: 1 }) as const),
  { plan: "Starter", limiter: "sliding log", runs: 2 },
  { plan: "Pro", limiter: "sliding log", runs: 2 },
];
