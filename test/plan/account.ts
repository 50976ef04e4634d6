import type { Me, Model } from "../../src/api/records.js";
import type { Manifest } from "../../src/manifest/manifest.js";
import { readManifest } from "../../src/manifest/read.js";
import { makePlan } from "../../src/plan/make-plan.js";
import type { Plan, PlanInput } from "../../src/plan/plan.js";
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
  return readManifest(await fileWith("sheet.csv", text));
}

/** The plan of a sheet for an account with plenty of credits, unless the test says otherwise. */
export async function planOf(text: string, change: Partial<PlanInput> = {}): Promise<Plan> {
  return plan(await sheet(text), change);
}

export function plan(manifest: Manifest, change: Partial<PlanInput> = {}): Plan {
  const origin = "https://service.example";
  return makePlan({ manifest, models, me: me(), origin, edition: "", existing: [], ...change });
}
