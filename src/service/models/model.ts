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
  /** The allowed values; empty if every value is allowed. */
  options: { value: string; label: string }[];
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
