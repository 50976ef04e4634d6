import type { Model } from "../api/records.js";
import { credits, showCredits } from "../core/money.js";
import { type Look, plainLook } from "./look.js";
import { table } from "./table.js";

/** What `bulkgen models` prints: the models with their prices, then the parameters that they know. */
export function modelsTable(models: readonly Model[], look: Look = plainLook): string {
  if (models.length === 0) return "The service offers no models.";
  const priced = table(
    [
      { title: "model" },
      { title: "name", flexible: true },
      { title: "category" },
      { title: "input" },
      { title: "credits", align: "right" },
    ],
    models.map((model) => [
      model.model_key,
      model.model_name,
      model.category,
      model.input_type,
      showCredits(credits(model.credits_cost)),
    ]),
    look,
  );
  const parameters = models.flatMap((model) =>
    (model.parameters ?? []).map((parameter) => [
      model.model_key,
      `params.${parameter.key}`,
      valuesOf(parameter),
    ]),
  );
  if (parameters.length === 0) return priced;
  const columns = [
    { title: "model" },
    { title: "parameter" },
    { title: "values (* default)", flexible: true },
  ];
  return `${priced}\n\n${table(columns, parameters, look)}`;
}

function valuesOf({ options, default: preset }: NonNullable<Model["parameters"]>[number]): string {
  const values = (options ?? []).map((option) => option.value);
  if (values.length === 0) return preset === undefined ? "any" : `any, ${preset}*`;
  return values.map((value) => (value === preset ? `${value}*` : value)).join(", ");
}
