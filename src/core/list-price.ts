import type { Model } from "../api/records.js";
import { type Credits, credits } from "./money.js";

/**
 * What a generation costs by the service's list: the base cost of the model, and for each chosen option with a cost of its own
 * what that is above or below the base. The page of the service knows no such costs; a service that has them announces them.
 */
export function listPrice(
  { credits_cost: base, parameters = [] }: Pick<Model, "credits_cost" | "parameters">,
  params: Readonly<Record<string, string>>,
): Credits {
  let price = base;
  for (const { key, options = [], default: preset } of parameters) {
    const value = params[key] ?? preset;
    const cost = options.find((option) => option.value === value)?.["credits_cost"];
    if (typeof cost === "number" && Number.isFinite(cost) && cost >= 0) price += cost - base;
  }
  return credits(Math.max(0, price));
}
