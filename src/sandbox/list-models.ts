import { categories } from "../api/records.js";
import { refuse } from "./answers.js";
import type { SandboxModel } from "./catalogue.js";
import { modelListView } from "./present.js";

/** The model list under the filters of the query. Throws 400 for a filter value that means nothing. */
export function listModels(models: readonly SandboxModel[], query: Readonly<Record<string, string>>) {
  const category = query["category"];
  if (category !== undefined && !(categories as readonly string[]).includes(category)) {
    throw refuse(
      "INVALID_REQUEST",
      `category is ${JSON.stringify(category)}, but may be one of ${categories.join(", ")}.`,
    );
  }
  const include = query["include_parameters"] ?? "true";
  if (include !== "true" && include !== "false") {
    throw refuse(
      "INVALID_REQUEST",
      `include_parameters is ${JSON.stringify(include)}, but may be true or false.`,
    );
  }
  const chosen = models.filter((model) => category === undefined || model.category === category);
  return modelListView(chosen, include === "true");
}
