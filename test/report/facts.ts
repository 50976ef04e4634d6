import type { Me, Model } from "../../src/api/records.js";
import { type ItemState, itemStates } from "../../src/core/item.js";
import { credits, noCredits } from "../../src/core/money.js";
import type { RunSummary } from "../../src/job/run/closing.js";
import type { planText } from "../../src/report/plan-table.js";
import type { ProgressNow } from "../../src/report/progress.js";
import type { Progress } from "../../src/run/loop.js";

const forecast = { requests: 49, ms: 31_000, binds: "generation", larger: null } as const;

/** Where a notification comes from. */
export const origin = {
  host: "studio-2",
  workspace: "/srv/campaign",
  sandbox: false,
  schedule: "night",
  due: "2026-11-21T02:00:00.000Z",
};

/** No item in any state. */
export const noCounts = Object.fromEntries(itemStates.map((state) => [state, 0])) as Progress["counts"];

/** A run that waits for nothing and has no trouble. */
export function progressOf(change: Partial<Progress>): Progress {
  return {
    counts: noCounts,
    quota,
    reason: null,
    stops: [],
    spent: noCredits,
    cap: null,
    forecastMs: null,
    ...change,
  };
}

export function countsOf(counts: Partial<Record<ItemState, number>>): Record<ItemState, number> {
  const none = Object.fromEntries(itemStates.map((state) => [state, 0])) as Record<ItemState, number>;
  return { ...none, ...counts };
}

export const runFacts: RunSummary = {
  job: "demo",
  run: 3,
  sandbox: false,
  forecast: null,
  counts: countsOf({ archived: 20, failed: 4, held: 1, overdue: 1, dropped: 2 }),
  skipped: null,
  after: null,
  before: 0,
  failures: [
    { rowId: "cover-1", kind: "moderation", reason: "the prompt was refused" },
    { rowId: "cover-2", kind: "moderation", reason: "the prompt was refused" },
    { rowId: "cover-3", kind: "provider", reason: "no capacity" },
    { rowId: "cover-4", kind: "moderation", reason: "the prompt was refused" },
  ],
  unknown: [],
  awaiting: [],
  held: [
    {
      rowId: "clip-9",
      reason: "the POST was cut off",
      evidence: {
        sentAt: Date.UTC(2026, 10, 21, 2, 42, 59),
        status: 502,
        bodySha256: "3f2a91c40b7d".padEnd(64, "0"),
        taskId: "t_1",
        externalTaskId: "ext-7",
      },
    },
  ],
  lost: [],
  lostCredits: noCredits,
  blocked: [],
  overdue: [{ rowId: "clip-3", reason: "still processing", evidence: null }],
  nextPollAt: Date.UTC(2026, 10, 21, 3, 0, 1),
  resumeAt: null,
  stops: ["out of credits (balance 0); top up and run `bulkgen resume`"],
  spent: credits(112.5),
  pending: credits(8),
  atService: credits(4),
  tasks: 1,
  inDoubt: 1,
  left: credits(0.25),
  lastLeft: credits(0.25),
  look: null,
  creditCheck: null,
  requests: 58,
  elapsedMs: 37_240,
  ranMs: 30_100,
  made: 20,
  files: 20,
  bytes: 41_200_000,
  folder: "outputs/demo",
  exit: "credits",
  nextStep: "bulkgen resolve clip-9 --adopt ID",
};

export const models: Model[] = [
  {
    model_key: "canvas-standard",
    model_name: "Canvas Standard, for posters and covers",
    category: "image",
    credits_cost: 4,
    input_type: "text",
    parameters: [
      {
        key: "aspect_ratio",
        label: "Aspect ratio",
        type: "select",
        options: ["1:1", "16:9", "9:16", "4:3", "3:4"].map((value) => ({ value, label: value })),
        default: "1:1",
      },
      { key: "seed", label: "Seed", type: "text" },
    ],
  },
  { model_key: "voice", model_name: "Voice", category: "audio", credits_cost: 0.5, input_type: "text" },
];

export const me: Me = {
  user: { id: "user_1", email: "ada@example.com", name: "Ada" },
  credits: { balance: 388.5, used_this_key: 112 },
  subscription: {
    status: "active",
    plan: "Pro",
    credits_per_month: 500,
    billing_interval: "month",
    current_period_end: "2026-12-01T00:00:00Z",
    cancel_at_period_end: false,
  },
  api_key: { id: "key_1", name: "nightly", requests_count: 1234 },
};

export const quota: ProgressNow["quota"] = {
  minute: { limit: 60, used: 31, nextFreeAt: 0, nextReleaseAt: 0 },
  day: { limit: 10_000, used: 340, nextFreeAt: 0, nextReleaseAt: 0 },
  releases: [],
  pacing: { spacingMs: 0, nextAt: 0 },
  owedElsewhere: 0,
  blockedUntil: null,
};

export const plan: Parameters<typeof planText>[0] = {
  job: "demo",
  file: "jobs/demo.csv",
  edition: "",
  models: [
    {
      model: "canvas-standard",
      category: "image",
      items: 20,
      due: 18,
      price: credits(4),
      credits: credits(72),
      base: credits(4),
      charged: { least: credits(4), most: credits(6) },
    },
    {
      model: "voice",
      category: "audio",
      items: 6,
      due: 6,
      price: credits(0.5),
      credits: credits(3),
      base: credits(0.5),
      charged: null,
    },
  ],
  money: {
    needed: credits(75),
    within: credits(75),
    inDoubt: credits(0),
    balance: credits(60),
    after: credits(-15),
    maxCredits: credits(100),
    spent: credits(8),
  },
  requests: {
    atLeast: 48,
    plan: "Pro",
    perMinute: 60,
    perDay: 10_000,
    lanes: 1,
    forecast,
    finishAt: null,
  },
  files: { files: 24, bytes: 2_710_000, unknown: ["voice"] },
  states: { new: 24, archived: 2 },
  problems: [
    {
      place: { file: "jobs/demo.csv", row: 12, column: "model", id: "cover-12" },
      message: 'unknown model "canvas-standart"',
      expected: "one of canvas-standard, voice",
      got: '"canvas-standart"',
      nearest: "canvas-standard",
    },
    {
      place: { file: "a.json", row: null, line: 3, lineColumn: 7 },
      message: "no rows",
      expected: "a row",
      got: "none",
    },
  ],
  blockers: [{ kind: "past_due", message: "The run needs 75 credits and the balance is 60." }],
  warnings: [{ kind: "partly_made_before", message: "Rows 4 and 5 are identical." }],
  notes: ["column colour is not used"],
};
