import { type InputType, inputTypes, mediaFields, requiredFor } from "../api/inputs.js";
import type { Model } from "../api/records.js";
import type { Row } from "../manifest/shape/manifest.js";
import type { CheckedRow } from "./check-row.js";
import type { Finding } from "./plan.js";

/** Different things that are told one by one; every cell may have been changed into something else. */
const aboutMax = 100;
const numbersMax = 5;

/** What is told of several rows, with the first of their numbers. */
export class Gathered {
  private readonly numbers = new Map<string, { first: number[]; last: number; count: number }>();
  private more = 0;

  add(about: string, number: number): void {
    const known = this.numbers.get(about);
    if (known === undefined && this.numbers.size >= aboutMax) this.more++;
    else if (known === undefined) this.numbers.set(about, { first: [number], last: number, count: 1 });
    else if (known.last !== number) {
      known.last = number;
      known.count++;
      if (known.first.length < numbersMax) known.first.push(number);
    }
  }

  lines(): string[] {
    const lines = [...this.numbers].map(([about, { first, count }]) => {
      const more = count > first.length ? ` and ${count - first.length} more` : "";
      return `${about} (${count === 1 ? "row" : "rows"} ${first.join(", ")}${more})`;
    });
    return this.more === 0 ? lines : [...lines, `and ${this.more} more like these`];
  }
}

/** The fields that some input type is about. Sound is in none of them, so no type can speak against it. */
const judged = mediaFields.filter((field) => inputTypes.some((type) => requiredFor(type).includes(field)));

const none: string[] = [];

/** Gathers what is to be told of rows, one after the other: of a million rows that are alike in one line. */
export class Notes {
  private readonly inputs = new Gathered();
  private readonly leftOut = new Map<string, Set<string>>();
  private readonly repaired = new Gathered();

  add({ row, model, without, repairs }: CheckedRow): void {
    if (model !== null) {
      for (const about of inputNotes(row, model)) this.inputs.add(about, row.number);
      for (const { key } of without)
        this.leftOut.set(key, (this.leftOut.get(key) ?? new Set()).add(model.model_key));
    }
    for (const { column, from, to } of repairs)
      this.repaired.add(`${column}: "${from}" was read as "${to}"`, row.number);
  }

  /** `taken` are the defaults that some model takes. */
  all(taken: ReadonlySet<string>): string[] {
    const left = [...this.leftOut].filter(([key]) => taken.has(key));
    return [
      ...this.inputs.lines(),
      ...left.map(
        ([key, models]) =>
          `the default ${key} is left out for ${[...models].join(", ")}, which does not take it`,
      ),
      ...this.repaired.lines(),
    ];
  }
}

/** Inputs that are not what a model's input type asks for. They are sent all the same: the service may know better. */
function inputNotes(row: Row, model: Model): string[] {
  if (!inputTypes.includes(model.input_type as InputType)) return [];
  const said = judged.filter((field) => row.inputs[field] !== undefined);
  if (said.length === 0) return none;
  const takes = requiredFor(model.input_type);
  return said
    .filter((field) => !takes.includes(field))
    .map((field) => `model ${model.model_key} does not list ${field} as an input; it is sent anyway`);
}

/** A column `aspect_ratio` does nothing, and who wrote it most likely meant `params.aspect_ratio`. */
export function unusedParamColumns(unused: readonly string[], models: readonly Model[]): Finding[] {
  return unused.flatMap((column) => {
    const taking = models.filter((model) =>
      model.parameters?.some(({ key }) => key === column.toLowerCase()),
    );
    if (taking.length === 0) return [];
    const message = `column "${column}" does nothing; did you mean "params.${column.toLowerCase()}"?`;
    return { kind: "unused_param_column", message, column, models: taking.map((model) => model.model_key) };
  });
}
