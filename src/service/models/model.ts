import type { InputType } from "../../api/inputs.js";
import type { Category } from "../../api/records.js";

/** A model as the service lists it. */
export interface ServiceModel {
  key: string;
  name: string;
  category: Category;
  inputType: InputType;
  /** Base cost of one generation in credits. */
  credits: number;
  parameters: readonly SelectParameter[];
}

/**
 * A parameter of a model. Our own are all of the one type that the service's page shows; those of a model file may be
 * of others.
 */
export interface SelectParameter {
  key: string;
  label: string;
  type: string;
  /** The allowed values, each with what a generation costs with it if that is not the base cost; empty if every value is allowed. */
  options: { value: string; label: string; credits_cost?: number }[];
  /** The default; empty if the model decides. */
  default: string;
}

/** A select parameter. The first option is the default unless another is named; an option is its value, or its value and label. */
export function select(
  key: string,
  label: string,
  options: readonly (string | readonly [value: string, label: string])[],
  preset?: string,
): SelectParameter {
  const pairs = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));
  const first = pairs[0];
  if (!first) throw new Error(`parameter ${key} has no options`);
  return {
    key,
    label,
    type: "select",
    options: pairs.map(([value, text]) => ({ value, label: text })),
    default: preset ?? first[0],
  };
}

/**
 * What a generation costs with these (complete) params: the base cost, and for each option with a cost of its own what that is
 * above or below the base.
 */
export function creditsWith(
  { credits, parameters }: Pick<ServiceModel, "credits" | "parameters">,
  params: Readonly<Record<string, string>>,
): number {
  const differences = parameters.map(({ key, options }) => {
    const cost = options.find(({ value }) => value === params[key])?.credits_cost;
    return cost === undefined ? 0 : cost - credits;
  });
  return Math.max(
    0,
    differences.reduce((sum, difference) => sum + difference, credits),
  );
}
