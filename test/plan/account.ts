import type { Me, Model } from "../../src/api/records.js";
import { priceGroup } from "../../src/core/identity.js";
import type { ItemState } from "../../src/core/item.js";
import { noCredits } from "../../src/core/money.js";
import { openManifest } from "../../src/manifest/read.js";
import type { Manifest } from "../../src/manifest/shape/manifest.js";
import { begin, makePlan } from "../../src/plan/make-plan.js";
import type { Existing, Plan, PlanInput } from "../../src/plan/plan.js";
import { openDraft } from "../../src/store/draft/draft.js";
import { fileWith } from "../manifest/folder.js";

const ratio = {
  key: "aspect_ratio",
  label: "Aspect ratio",
  type: "select",
  options: [
    { value: "1:1", label: "Square" },
    { value: "16:9", label: "Landscape" },
  ],
  default: "1:1",
};

export const models: Model[] = [
  model("paint", "image", "text", 4, [ratio, { key: "mood", label: "Mood", type: "text" }]),
  model("edit", "image", "text+image", 6.5),
  model("animate", "video", "image", 20),
  model("extend", "video", "video", 30),
];

function model(
  model_key: string,
  category: string,
  input_type: string,
  credits_cost: number,
  parameters: Model["parameters"] = [],
): Model {
  return { model_key, model_name: model_key, category, credits_cost, input_type, parameters };
}

export function me(balance = 1_000, subscription: Partial<NonNullable<Me["subscription"]>> | null = {}): Me {
  return {
    user: { id: "8c5f7d0e-0000-4000-8000-000000000001", email: "team@example.com", name: null },
    credits: { balance, used_this_key: 0 },
    subscription: subscription && {
      status: "active",
      plan: "Starter",
      credits_per_month: 1_000,
      billing_interval: "month",
      current_period_end: "2026-12-01T00:00:00Z",
      cancel_at_period_end: false,
      ...subscription,
    },
    api_key: { id: "k", name: "k", requests_count: 0 },
  };
}

async function sheet(text: string): Promise<Manifest> {
  return openManifest(await fileWith("sheet.csv", text));
}

/** A plan with all that it lists in arrays. */
export type WholePlan = Awaited<ReturnType<typeof plan>>;

/** The plan of a sheet for an account with plenty of credits, unless the test says otherwise. */
export async function planOf(text: string, change: Change = {}): Promise<WholePlan> {
  return plan(await sheet(text), change);
}

type Change = Partial<Omit<PlanInput, "draft" | "manifest" | "existing">> & {
  existing?: readonly Existing[];
};

export async function plan(manifest: Manifest, change: Change = {}) {
  const draft = openDraft();
  try {
    const begun = await begin(manifest, draft);
    const input = {
      manifest,
      draft,
      models,
      me: me(),
      origin: "https://service.example",
      sandbox: false,
      edition: "",
      now: Date.UTC(2026, 10, 20),
    };
    const existing = change.existing ?? [];
    const groups = async () =>
      existing.filter(({ edition }) => edition === (change.edition ?? "")).map(priceGroup);
    const made = begun && (await makePlan({ ...input, groups, ...change, existing: [existing] }, begun));
    return whole(made ?? { ...nothing(manifest), problems: draft.problems() });
  } finally {
    draft.close();
  }
}

function whole(made: Plan) {
  return {
    ...made,
    items: [...made.items],
    problems: [...made.problems],
    changed: [...made.changed],
    vanished: [...made.vanished],
    renamed: [...made.renamed],
    restored: [...made.restored],
    workflow: [...made.workflow],
    unselected: [...made.unselected],
    sheet: { ...made.sheet, rows: [...made.sheet.rows] },
  };
}

/** The plan of a manifest of which nothing can be planned. */
function nothing({ name, file, columns }: Manifest): Plan {
  const money = {
    needed: noCredits,
    within: noCredits,
    inDoubt: noCredits,
    balance: noCredits,
    after: noCredits,
    maxCredits: null,
    spent: noCredits,
  };
  const forecast = { requests: 0, ms: 0, binds: "generation" as const, larger: null };
  const lists = { items: [], problems: [], blockers: [], warnings: [], notes: [], changed: [], vanished: [] };
  return {
    isPart: false,
    job: name,
    file,
    origin: "",
    user: "",
    edition: "",
    due: 0,
    ...lists,
    renamed: [],
    restored: [],
    unselected: [],
    leftOut: {},
    ordered: { items: 0, credits: noCredits },
    otherParams: {},
    missing: [],
    models: [],
    selection: null,
    states: {},
    workflow: [],
    publish: null,
    after: null,
    sheet: { columns, rows: [] },
    money,
    requests: {
      atLeast: 0,
      plan: null,
      perMinute: null,
      perDay: null,
      lanes: 1,
      forecast,
      finishAt: null,
    },
    files: { files: 0, bytes: 0, unknown: [] },
    fit: { items: 0, credits: noCredits, rowNumber: null, rowId: null },
  };
}

/** The items of a plan as the store would have them later, in these states by turns. */
export function kept(plan: WholePlan, ...states: ItemState[]): Existing[] {
  return plan.items.map((item, index) => ({ ...item, state: states[index % states.length] ?? "planned" }));
}

/** Local files that were read already, with what they hold. */
export function contentOf(files: Readonly<Record<string, string>>): NonNullable<PlanInput["localInputs"]> {
  const found = Object.entries(files).map(
    ([name, sha256]) => [name, { path: `/job/${name}`, sha256, bytes: 9, mime: "image/png" }] as const,
  );
  return { found: new Map(found), read: async () => {} };
}
