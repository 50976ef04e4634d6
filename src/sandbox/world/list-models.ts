import { categories } from "../../api/records.js";
import { refuse } from "../answers/answers.js";
import type { SandboxModel } from "../catalogue/model.js";
import type { Switches } from "../state/switches.js";
import { modelListView } from "./present.js";

/** The model list under the filters of the query. A filter value that means nothing throws 400, or is ignored. */
export function listModels(
  models: readonly SandboxModel[],
  query: Readonly<Record<string, string>>,
  switches: Switches,
) {
  const category = filter(query, "category", categories, switches.badFilter);
  const include = filter(query, "include_parameters", ["true", "false"], switches.badFilter);
  const chosen = models.filter((model) => category === undefined || model.category === category);
  return modelListView(chosen, include === "false" ? switches.parametersLeftOut : "shown");
}

function filter(
  query: Readonly<Record<string, string>>,
  name: string,
  values: readonly string[],
  bad: Switches["badFilter"],
): string | undefined {
  const value = query[name];
  if (value === undefined || values.includes(value)) return value;
  if (bad === "ignored") return undefined;
  throw refuse(
    "INVALID_REQUEST",
    `${name} is ${JSON.stringify(value)}, but may be one of ${values.join(", ")}.`,
  );
}
