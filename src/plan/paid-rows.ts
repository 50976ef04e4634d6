import type { Model } from "../api/records.js";
import { priceGroup } from "../core/identity.js";
import { isPaid } from "../core/item.js";
import { hasReference } from "../core/reference.js";
import type { Row } from "../manifest/shape/manifest.js";
import type { Draft } from "../store/draft/draft.js";
import type { CheckedRow } from "./check-row.js";
import { Gathered } from "./findings.js";
import { type GoodRow, type Items, knownItem } from "./items.js";
import { MadeParams } from "./made-params.js";
import type { PlanInput } from "./plan.js";

/**
 * Rows that are paid for stay as they are, whatever the catalogue says now: the service may have withdrawn or added a
 * model, a param or an option, or renamed a category, and somebody may have tidied away a local input file.
 */
export class PaidRows {
  /** The models of the job's items; null until the history is read. */
  private models: Map<string, Model> | null = null;
  private made: MadeParams | null = null;
  private others: { groups: ReadonlySet<string>; made: MadeParams } | null = null;
  private hasItems = false;
  private readonly kept = new Gathered();

  constructor(
    private readonly input: PlanInput,
    private readonly draft: Draft,
    private readonly items: Items,
  ) {}

  /** The row as it was paid for; the same row if it was not. */
  async asPaid(checked: CheckedRow): Promise<CheckedRow> {
    const others = checked.isUsable ? (this.made?.of(checked) ?? []) : [];
    const mayBeRenamed = checked.isUsable && checked.row.lateName !== undefined;
    // Most rows have nothing that another catalogue could have changed.
    if (!checked.isDoubtful && others.length === 0 && !mayBeRenamed) return checked;
    this.models ??= await this.readHistory();
    const { row } = checked;
    const before = this.models.get(row.model);
    const model = checked.model ?? before;
    if (model === undefined || !this.hasItems) return checked;
    const asBefore = { ...model, category: before?.category ?? model.category };
    if (hasReference(row.inputs)) return this.linkedAsPaid(checked, asBefore, others);
    const contents = this.contentsBefore(checked);
    if (contents === null) return checked;
    const asPaid: GoodRow = { ...checked, model: asBefore, contents, problems: [], without: [] };
    const isWrong = checked.problems.length > 0;
    const isOwn = this.ownOf(row, model);
    const isPaidNow = !isWrong && this.items.arePaid(asPaid);
    // Of identical rows each keeps its own.
    const isAnothers = others.some(isOwn) && !isOwn(checked.params);
    if (isPaidNow && !isAnothers) return asPaid;
    const ownFirst = others.toSorted((a, b) => Number(isOwn(b)) - Number(isOwn(a)));
    for (const params of isWrong ? [checked.params, ...ownFirst] : ownFirst) {
      const then = { ...asPaid, params };
      // What cannot be made any more has to be paid for as a whole.
      const isKept = isWrong ? this.items.arePaid(then) : this.items.isPaidInPart(then);
      if (!isKept) continue;
      this.kept.add(
        `${this.whatChanged(checked, params)}, but its items are paid for and stay as they are`,
        row.number,
      );
      return then;
    }
    return isPaidNow ? asPaid : checked;
  }

  /** Whether the row's own item, by its id, was made with some params. */
  private ownOf({ id }: Row, { model_key: model }: Model): (params: Row["params"]) => boolean {
    const own = id === null ? [] : this.draft.knownOfRow(id).filter(isPaid).map(priceGroup);
    return (params) => own.includes(priceGroup({ model, params }));
  }

  /** Why the row would be made in another way now. */
  private whatChanged({ problems, model, row, params }: CheckedRow, before: Row["params"]): string {
    const [problem] = problems;
    if (problem !== undefined) return problem.message;
    const added = Object.keys(params).filter((key) => before[key] === undefined);
    const name = model?.model_key ?? row.model;
    if (added.length === 0) return `the service lists the parameters of model ${name} in another way now`;
    return `model ${name} takes ${added.map((key) => `"${key}"`).join(" and ")} now (to make them with it, write it into the rows)`;
  }

  /** Learns which params the job's items have. They are few, and cost far less to read than all items. */
  async begin(): Promise<void> {
    if (this.made !== null) return;
    const { groups, leftOut = new Map(), others } = this.input;
    this.made = new MadeParams((await groups?.()) ?? [], leftOut);
    if (others === undefined) return;
    const all = new Set(await others.groups());
    this.others = { groups: all, made: new MadeParams(all, others.leftOut) };
  }

  /** Other params with which something beyond the job's items was made, that the row may stand for. */
  paramsElsewhere(checked: CheckedRow): Row["params"][] {
    if (this.others === null || !checked.isUsable) return [];
    const { groups, made } = this.others;
    return made.of(checked).filter((params) => groups.has(priceGroup({ model: checked.row.model, params })));
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

  /**
   * A row with references may be paid for with other params than it would have now. Whether it is, is known once the items
   * of its inputs are.
   */
  private linkedAsPaid(checked: CheckedRow, model: Model, others: readonly Row["params"][]): CheckedRow {
    const { params, problems, gone } = checked;
    const [unlessPaid] = problems;
    if (gone.length > 0) return checked;
    if (unlessPaid === undefined) return { ...checked, ifPaid: others };
    return { ...checked, model, params, problems: [], without: [], unlessPaid, ifPaid: others };
  }
}

function withdrawnModel(key: string, category: string): Model {
  return { model_key: key, model_name: key, category, credits_cost: 0, input_type: "" };
}
