import type { Model, ModelParameter } from "../api/records.js";
import type { Problem } from "../core/problem.js";
import { optionBefore } from "../manifest/shape/repairs.js";
import { nearest } from "../text/nearest.js";

/** A problem, wherever it is met. */
export type Words = Omit<Problem, "place">;

const keptMax = 1_000;

/** What was said of wrong values: to look for the nearest right one takes long, and a million rows may have the same slip. */
export class Said {
  private readonly kept = new Map<string, Words>();

  of(what: readonly string[], words: () => Words): Words {
    const key = JSON.stringify(what);
    let said = this.kept.get(key);
    if (said === undefined) {
      said = words();
      if (this.kept.size < keptMax) this.kept.set(key, said);
    }
    return said;
  }
}

const listedMax = 12;

export function noModel(named: string, models: ReadonlyMap<string, Model>): Words {
  const keys = [...models.keys()];
  const near = nearest(named, keys);
  const expected =
    keys.length > 0 && keys.length <= listedMax ? `one of: ${keys.join(", ")}` : "a model key of the service";
  return {
    message: named === "" ? "the row names no model" : `unknown model "${named}"`,
    expected: named === "" ? `${expected} (in the row, or as a default)` : expected,
    got: named === "" ? "nothing" : named,
    ...(named !== "" && near ? { nearest: near } : {}),
  };
}

export function unknownParam(model: Model, key: string): Words {
  const keys = (model.parameters ?? []).map((parameter) => parameter.key);
  const near = nearest(key, keys);
  return {
    message: `model ${model.model_key} has no parameter "${key}"`,
    expected: keys.length > 0 ? `one of: ${keys.join(", ")}` : "no parameters",
    got: key,
    ...(near ? { nearest: near } : {}),
  };
}

/** Only the options of a select are known; any other type is the service's to judge. */
export function isOption({ options = [] }: ModelParameter, value: string): boolean {
  return options.length === 0 || options.some((option) => option.value === value);
}

export function wrongValue({ key, options = [] }: ModelParameter, value: string): Words {
  const values = options.map((option) => option.value);
  const labelled = options.find((option) => option.label.toLowerCase() === value.toLowerCase());
  const before = optionBefore(value, values);
  const near = labelled?.value ?? before ?? nearest(value, values);
  return {
    message: `parameter ${key} has no option "${value}"`,
    expected: `one of: ${values.join(", ")}`,
    got: value,
    ...(near ? { nearest: near } : {}),
    ...(before === null ? {} : { repair: before }),
  };
}
