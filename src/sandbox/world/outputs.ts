import type { SandboxModel } from "../catalogue/model.js";
import { select } from "../catalogue/parameters.js";
import type { Switches } from "../state/switches.js";

/** How many files a generation makes, and the parameter that says so where one is switched on. */

/** The models as they are listed: each with the parameter for the number of outputs, if there is to be one. */
export function withOutputs(models: readonly SandboxModel[], { outputs }: Switches): SandboxModel[] {
  const { parameter: key, number } = outputs;
  if (key === null) return [...models];
  const others = [1, 2, 3, 4].filter((other) => other !== number);
  const parameter = select(key, "Outputs", [number, ...others].map(String));
  return models.map((model) =>
    model.parameters.some((existing) => existing.key === key)
      ? model
      : { ...model, parameters: [...model.parameters, parameter] },
  );
}

/** How many files these (complete) params ask for. */
export function outputsAskedFor({ outputs }: Switches, params: Readonly<Record<string, string>>): number {
  const asked = Number(outputs.parameter === null ? Number.NaN : params[outputs.parameter]);
  return Number.isInteger(asked) && asked >= 1 && asked <= 4 ? asked : outputs.number;
}
