import { type InputType, inputTypes, mediaFields, requiredFor } from "../api/inputs.js";
import type { Model } from "../api/records.js";
import type { Manifest, Row } from "../manifest/manifest.js";
import type { CheckedRow } from "./check-row.js";
import type { Finding } from "./plan.js";

/** The fields that some input type is about. Sound is in none of them, so no type can speak against it. */
const judged = mediaFields.filter((field) => inputTypes.some((type) => requiredFor(type).includes(field)));

/** Inputs that are not what a model's input type asks for. They are sent all the same: the service may know better. */
export function inputNotes(rows: readonly CheckedRow[]): string[] {
  const groups = new Map<string, number[]>();
  for (const { row, model } of rows) {
    if (!model || !inputTypes.includes(model.input_type as InputType)) continue;
    const takes = requiredFor(model.input_type);
    for (const field of judged) {
      if (row.inputs[field] === undefined || takes.includes(field)) continue;
      const about = `model ${model.model_key} does not ask for ${field}; it is sent all the same`;
      groups.set(about, [...(groups.get(about) ?? []), row.number]);
    }
  }
  return [...groups].map(([about, numbers]) => `${about} (${rowsText(numbers)})`);
}

/** Defaults that some models take and others do not: the others go without. */
export function leftOutNotes(rows: readonly CheckedRow[]): string[] {
  const groups = new Map<string, Set<string>>();
  for (const { row, model, params } of rows) {
    for (const key of row.defaultParams) {
      if (!model || Object.hasOwn(params, key)) continue;
      groups.set(key, (groups.get(key) ?? new Set()).add(model.model_key));
    }
  }
  return [...groups].map(
    ([key, models]) =>
      `the default ${key} is left out for ${[...models].join(", ")}, which has no such parameter`,
  );
}

/** What was taken for what it was before a spreadsheet changed it: never without a word. */
export function repairNotes(rows: readonly CheckedRow[]): string[] {
  const groups = new Map<string, Set<number>>();
  for (const { row, repairs } of rows) {
    for (const { column, from, to } of repairs) {
      const about = `${column}: "${from}" was read as "${to}"`;
      groups.set(about, (groups.get(about) ?? new Set()).add(row.number));
    }
  }
  return [...groups].map(([about, numbers]) => `${about} (${rowsText([...numbers])})`);
}

/** The params among the rows' defaults that at least one of their models takes. */
export function takenDefaults(rows: readonly Row[], models: ReadonlyMap<string, Model>): Set<string> {
  const taken = new Set<string>();
  for (const row of rows) {
    for (const { key } of models.get(row.model)?.parameters ?? []) {
      if (row.defaultParams.includes(key)) taken.add(key);
    }
  }
  return taken;
}

/** A column `aspect_ratio` does nothing, and who wrote it most likely meant `params.aspect_ratio`. */
export function unusedParamColumns(manifest: Manifest, models: readonly Model[]): Finding[] {
  return manifest.unusedColumns.flatMap((column) => {
    const taking = models.filter((model) =>
      model.parameters?.some(({ key }) => key === column.toLowerCase()),
    );
    if (taking.length === 0) return [];
    const message = `column "${column}" does nothing; did you mean "params.${column.toLowerCase()}"?`;
    return { kind: "unused_param_column", message, column, models: taking.map((model) => model.model_key) };
  });
}

const numbersMax = 5;

function rowsText(numbers: readonly number[]): string {
  if (numbers.length === 1) return `row ${numbers[0]}`;
  const shown = numbers.slice(0, numbersMax).join(", ");
  return `rows ${shown}${numbers.length > numbersMax ? ` and ${numbers.length - numbersMax} more` : ""}`;
}
