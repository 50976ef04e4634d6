import type { Model } from "../api/records.js";
import { priceGroup } from "../core/identity.js";
import type { Draft } from "../core/ports/draft.js";
import { hasReference } from "../core/reference.js";
import type { CheckedRow } from "./check-row.js";
import { Gathered } from "./findings.js";
import { type GoodRow, type Items, knownItem } from "./items.js";
import type { PlanInput } from "./plan.js";

/**
 * Rows that are paid for stay as they are, whatever has gone since: the service may have withdrawn a model, a param or an
 * option, and somebody may have tidied away a local input file.
 */
export class PaidRows {
  /** The models of the job's items; null until the history is read. */
  private models: Map<string, Model> | null = null;
  private hasItems = false;
  private readonly kept = new Gathered();

  constructor(
    private readonly input: PlanInput,
    private readonly draft: Draft,
    private readonly items: Items,
  ) {}

  /** A doubtful row as it was paid for; the same row if it was not. */
  async asPaid(checked: CheckedRow): Promise<CheckedRow> {
    this.models ??= await this.readHistory();
    const { row } = checked;
    const model = checked.model ?? this.models.get(row.model);
    if (model === undefined || !this.hasItems) return checked;
    if (hasReference(row.inputs)) return this.linkedAsPaid(checked, model);
    const contents = this.contentsBefore(checked);
    if (contents === null) return checked;
    const asPaid: GoodRow = { ...checked, model, contents, problems: [], without: [] };
    if (checked.problems.length === 0) {
      if (this.items.arePaid(asPaid)) return asPaid;
      if (this.items.isKnown(asPaid)) return checked;
    }
    for (const params of paramsBefore(checked)) {
      const before = { ...asPaid, params };
      if (!this.items.arePaid(before)) continue;
      for (const { message } of checked.problems.slice(0, 1))
        this.kept.add(`${message}, but its items are paid for and stay as they are`, row.number);
      return before;
    }
    return checked;
  }

  /** Reads the job's items, which most plans need only at their end. Returns their models, as if they were not listed. */
  private async readHistory(): Promise<Map<string, Model>> {
    const { existing, edition, missing = new Set() } = this.input;
    const models = new Map<string, Model>();
    for await (const page of existing) {
      const ours = page.filter((item) => item.edition === edition);
      this.draft.know(
        ours.map((item) => knownItem(item, false)),
        missing,
      );
      this.hasItems ||= ours.length > 0;
      for (const { model, category } of ours) models.set(model, withdrawnModel(model, category));
    }
    return models;
  }

  /** The row's inputs as identity counts them. Files that are not there are those that its item was made from. */
  private contentsBefore({ row, contents, gone }: CheckedRow): CheckedRow["contents"] | null {
    if (gone.length === 0) return contents;
    if (row.id === null) return null;
    const made = this.draft
      .knownOfRow(row.id)
      .find(({ inputs }) => gone.every((field) => inputs[field] === row.inputs[field]));
    if (made === undefined) return null;
    return { ...contents, ...Object.fromEntries(gone.map((field) => [field, made.files?.[field] ?? ""])) };
  }

  notes(): string[] {
    return this.kept.lines();
  }

  /** A row with references may be paid for if the item of its id was made with the same params. */
  private linkedAsPaid(checked: CheckedRow, model: Model): CheckedRow {
    const { row, problems, gone } = checked;
    const [unlessPaid] = problems;
    if (row.id === null || row.repeat > 1 || unlessPaid === undefined || gone.length > 0) return checked;
    const made = this.draft.knownOfRow(row.id).map(priceGroup);
    const params = paramsBefore(checked).find((some) =>
      made.includes(priceGroup({ model: model.model_key, params: some })),
    );
    if (params === undefined) return checked;
    return { ...checked, model, params, problems: [], without: [], unlessPaid };
  }
}

function withdrawnModel(key: string, category: string): Model {
  return { model_key: key, model_name: key, category, credits_cost: 0, input_type: "" };
}

/** A row of more such defaults is tried with all of them and with none. */
const defaultsMax = 4;

/** The params that may have been sent for the row: the model may have accepted any of its defaults then. */
function paramsBefore({ row, model, params, without }: CheckedRow): CheckedRow["params"][] {
  const doubtful = model === null ? row.defaultParams : without.map(({ key }) => key);
  const certain =
    model === null
      ? Object.fromEntries(Object.entries(row.params).filter(([key]) => !doubtful.includes(key)))
      : params;
  const sent = doubtful.length > defaultsMax ? [doubtful, []] : subsets(doubtful);
  return sent.map((keys) => ({
    ...certain,
    ...Object.fromEntries(keys.map((key) => [key, row.params[key] ?? ""])),
  }));
}

/** The largest first. */
function subsets([first, ...others]: readonly string[]): string[][] {
  if (first === undefined) return [[]];
  const rest = subsets(others);
  return [...rest.map((some) => [first, ...some]), ...rest];
}
