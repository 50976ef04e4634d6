import { mediaFields } from "../api/inputs.js";
import type { Model } from "../api/records.js";
import { normalText, shortId } from "../core/identity.js";
import { asBalance, type Credits, priceText, sumOf } from "../core/money.js";
import type { ChangedRow, Comparison, RowContent } from "../core/ports/draft.js";
import type { OrderedVariant } from "../core/ports/store.js";
import { type Problem, partOf } from "../core/problem.js";
import { hasReference, isReference } from "../core/reference.js";
import { takeMark } from "../core/variant.js";
import { isLocalPath } from "../manifest/local-inputs.js";
import { cellPlace, type End, type Manifest, type Part, type Row } from "../manifest/shape/manifest.js";
import type { Draft } from "../store/draft/draft.js";
import { count } from "../text/amounts.js";
import { someOf } from "../text/reasons.js";
import { finishChains, References } from "./chains.js";
import { type CheckedRow, checkRow, parameterOf, Said } from "./check-row.js";
import { capWarnings, coverageByCap, modelCosts, moneyOf, noCaps, PlanPrices, paidFor } from "./cost.js";
import {
  blockersOf,
  changedPromptNotes,
  listsNoPrompt,
  missingWarning,
  Notes,
  unusedParamColumns,
  warningsOf,
} from "./findings.js";
import { type GoodRow, Items, knownItem, type Making } from "./items.js";
import { ItemNames } from "./names.js";
import { PaidRows } from "./paid-rows.js";
import { allRows, type Plan, type PlanInput } from "./plan.js";
import { diskWarning, expectedFiles, requestsOf, usualMs } from "./requests.js";
import { Choosing } from "./select.js";
import { workflowOf } from "./workflow.js";

const none: Problem[] = [];
const nothing: Making = { items: [], shares: null, problems: none };

/** Checks a manifest's rows one by one and stores each in the draft, keeping none in memory. */
class Planning {
  readonly prices: PlanPrices;
  readonly items: Items;
  readonly notes = new Notes();
  readonly choosing: Choosing;
  readonly references: References;
  readonly paidRows: PaidRows;
  /** Defaults that at least one model of the manifest takes. */
  readonly taken = new Set<string>();
  /** Those that some model does not take. */
  readonly doubted = new Set<string>();
  readonly usedModels = new Set<string>();
  /** The defaults that are left out, by model. */
  readonly leftOut = new Map<string, Set<string>>();
  /** Other params that what was made elsewhere for an item may have, by its position. */
  private readonly otherParams = new Map<number, readonly Row["params"][]>();
  /** Some item uses the output of another one. */
  hasChains = false;
  private readonly draft: Draft;
  readonly names = new ItemNames();
  private readonly unwritable: { position: number; key: string; problem: Problem }[] = [];
  private readonly said = new Said();
  private readonly models: ReadonlyMap<string, Model>;
  /** The problems of the rows in the current part, by row and by combination. */
  private wrong = new Map<string, string>();

  constructor(private readonly input: PlanInput) {
    const { me, origin, edition, draft, duplicates = "keep" } = input;
    this.draft = draft;
    this.models = new Map(input.models.map((model) => [model.model_key, model]));
    this.prices = new PlanPrices(input.charges ?? new Map());
    this.items = new Items(draft, { origin, account: me.user.id, edition, duplicates, prices: this.prices });
    this.references = new References(draft);
    this.paidRows = new PaidRows(input, draft, this.items);
    this.choosing = new Choosing(input.selection ?? allRows, input.manifest.file);
  }

  async add({ rows, problems }: Part): Promise<void> {
    await this.input.localInputs?.read(rows);
    await this.paidRows.begin();
    const { models, said } = this;
    const localInputs = this.input.localInputs?.found;
    const { unpriced = [] } = this.input;
    const against = { models, unpriced, localInputs, repair: this.input.repair ?? false, said };
    this.wrong = new Map();
    for (const problem of problems) this.note(problem);
    for (const row of rows) {
      const checked = checkRow(row, against);
      this.leave(checked);
      this.row(await this.paidRows.asPaid(checked));
    }
  }

  /** Notes the defaults that the model does not take: it may take them one day. */
  private leave({ row, model, without }: CheckedRow): void {
    if (model === null || without.length === 0) return;
    const keys = this.leftOut.get(row.model) ?? new Set();
    this.leftOut.set(row.model, keys);
    for (const { key } of without) keys.add(key);
  }

  private note(problem: Problem): void {
    const part = partOf(problem.place);
    if (!this.wrong.has(part)) this.wrong.set(part, problem.message);
    this.draft.problem(problem);
  }

  private row(checked: CheckedRow): void {
    const { row } = checked;
    this.learn(checked);
    const reported = this.reportedFor(row);
    const { problems, making } = this.making(checked, reported !== undefined);
    for (const problem of problems) this.draft.problem(problem);
    const { chosen, lot } = this.choosing.of(checked);
    const position = this.draft.add(
      {
        number: row.number,
        id: row.id,
        repeat: row.repeat,
        cells: row.columns,
        problem: reported ?? problems[0]?.message ?? null,
        without: checked.without,
        shares: making.shares,
        chosen,
        lot,
        step: row.step,
      },
      making.items,
    );
    const others = making.items.length === 0 ? [] : this.paidRows.paramsElsewhere(checked);
    if (others.length > 0)
      for (const item of making.items.keys()) this.otherParams.set(position + item, others);
    this.checkNames(row, position, making);
    for (const item of checked.unlessPaid ? making.items.keys() : [])
      this.items.expectPaid(position + item, checked.unlessPaid as Problem);
    if (checked.ifPaid !== undefined && isGood(checked))
      for (const item of making.items.keys()) this.items.expectMade(position + item, checked, checked.ifPaid);
    this.references.add(row, position, making.items.length);
  }

  /** What is paid for is saved all the same, under another name; nothing else is bought for a name that cannot be written. */
  private checkNames(row: Row, position: number, { items }: Making): void {
    const { unwritable = () => null } = this.input;
    const isLinked = hasReference(row.inputs);
    for (const [index, { key, name }] of items.entries()) {
      const trouble = unwritable(name);
      if (trouble === null) continue;
      const problem = {
        place: cellPlace(row, row.output === null ? "id" : "output"),
        message: `the file cannot be saved there: ${trouble}`,
        expected: "a name below folders, or one that nothing else has",
        got: name,
      };
      if (isLinked) this.items.expectPaid(position + index, problem);
      else this.unwritable.push({ position: position + index, key, problem });
    }
  }

  /** Refuses what is not paid for and could not be saved. Call it once the job's items are known. */
  refuseUnwritable(): void {
    for (const { position, key, problem } of this.unwritable) {
      if (this.items.isPaidKey(key)) continue;
      this.draft.problem(problem);
      this.draft.refuseRow(position, problem.message);
    }
  }

  /** Call it once every item has its key. */
  otherParamsByKey(): Plan["otherParams"] {
    return Object.fromEntries(
      [...this.otherParams].flatMap(([position, params]) => {
        const key = this.draft.recordAt(position)?.key;
        return key ? [[key, params]] : [];
      }),
    );
  }

  /** Problems found while reading the row. */
  private reportedFor(row: Row): string | undefined {
    if (this.wrong.size === 0) return undefined;
    return this.wrong.get(partOf({ row: row.number })) ?? this.wrong.get(partOf(row.place));
  }

  /** The items of a row and all its problems. */
  private making(checked: CheckedRow, reported: boolean): { problems: Problem[]; making: Making } {
    const { row, problems } = checked;
    const late = isGood(checked) ? this.nameLate(checked) : none;
    const wrong = [...problems, ...late, ...this.names.check(row)];
    if (!isGood(checked) || reported || wrong.length > 0) return { problems: wrong, making: nothing };
    const isLinked = hasReference(row.inputs);
    if (isLinked) this.hasChains = true;
    const making = isLinked ? this.items.makeLinked(checked) : this.items.make(checked);
    return { problems: making.problems, making };
  }

  /** Gives the row the output that depends on its category or its key. */
  private nameLate(good: GoodRow): Problem[] {
    const { row, model } = good;
    const late = { category: model.category, key: shortId(this.items.keyOf(good, 1)), take: takeMark };
    const named = row.lateName?.({ ...late, copy: 1 });
    if (named === undefined) return none;
    if (typeof named !== "string") return [named];
    row.output = named.trim() || null;
    const copies = Array.from({ length: row.repeat }, (_, index) => index + 1);
    const outputs = copies.map((copy) => (copy === 1 ? named : row.lateName?.({ ...late, copy })));
    const own = outputs.flatMap((each) =>
      typeof each === "string" && each.trim() !== "" ? [each.trim()] : [],
    );
    // A template that does not name the copies leaves them their numbers.
    if (own.length === copies.length && new Set(own).size === own.length && own.length > 1)
      row.copyOutputs = own;
    return none;
  }

  private learn(checked: CheckedRow): void {
    const { row, model, without } = checked;
    this.usedModels.add(row.model);
    this.notes.add(checked);
    for (const { key } of without) this.doubted.add(key);
    for (const key of row.defaultParams) {
      if (model && parameterOf(model, key, row.params)) this.taken.add(key);
    }
  }
}

function isGood(checked: CheckedRow): checked is GoodRow {
  return checked.model !== null;
}

/** A manifest that was read up to its first row. */
export interface Begun {
  first: Part;
  rest: AsyncGenerator<Part, End>;
}

/** Reads up to the first row; null for a manifest that has none, whose problems are in the draft. */
export async function begin(manifest: Manifest, draft: Draft): Promise<Begun | null> {
  const rest = manifest.parts();
  for (;;) {
    const { value, done } = await rest.next();
    if (done) {
      if (value.refusal) draft.problem(value.refusal);
      return null;
    }
    if (value.rows.length > 0) return { first: value, rest };
    for (const problem of value.problems) draft.problem(problem);
  }
}

/**
 * Makes the plan of a manifest in the draft, from which the plan then reads. The same input gives the same plan, and
 * nothing that a manifest, a model list or an account may contain makes it throw. Null if the manifest asks for too
 * many items; the draft has the reason.
 */
export async function makePlan(input: PlanInput, begun: Begun): Promise<Plan | null> {
  const { draft, edition } = input;
  const planning = new Planning(input);
  await planning.add(begun.first);
  const end = await readRest(begun.rest, planning);
  if (end.refusal) {
    draft.clear();
    draft.problem(end.refusal);
    return null;
  }
  draft.refuseWithout([...planning.doubted].filter((key) => !planning.taken.has(key)));
  for await (const page of input.existing) {
    const ours = page.filter((item) => item.edition === edition);
    draft.know(
      ours.map((item) => knownItem(item, planning.hasChains)),
      input.missing ?? new Set(),
    );
    for (const item of ours) planning.items.know(item);
  }
  const { known } = draft.counts();
  if (known > 0) planning.items.keepOccurrences();
  planning.refuseUnwritable();
  planning.references.flush();
  const chained = finishChains(draft, planning.items, known > 0);
  const { selection, notes } = planning.choosing.finish(draft);
  const added = selection === null ? 0 : draft.wantParents();
  if (input.order === "sheet" || input.order === "cheapest") draft.reorder(input.order);
  const again = { failed: input.selection?.onlyFailed ?? false, missing: input.onMissing === "pay" };
  if (known > 0) {
    draft.stand(again);
    draft.compare(differences);
  }
  return concluded(input, planning, {
    ...end,
    selection,
    notes: [
      ...end.notes,
      ...planning.notes.all(planning.taken),
      ...planning.paidRows.notes(),
      ...planning.names.notes(),
      ...chained,
      ...notes,
      ...addedNote(added),
      ...approvalNote(draft.counts().toApprove),
    ],
  });
}

function addedNote(items: number): string[] {
  if (items === 0) return [];
  return [
    `${count(items, "item is", "items are")} added to the selection: selected items take their outputs`,
  ];
}

function approvalNote(items: number): string[] {
  if (items === 0) return [];
  return [
    `${count(items, "item")} will wait for your approval (\`bulkgen approve\`) before anything is made of ${items === 1 ? "its" : "their"} outputs`,
  ];
}

async function readRest(rest: AsyncGenerator<Part, End>, planning: Planning): Promise<End> {
  for (;;) {
    const { value, done } = await rest.next();
    if (done) return value;
    await planning.add(value);
  }
}

function afterOf({ after }: Manifest): Plan["after"] {
  if (after === undefined) return null;
  const { file = null, set = null, timeoutMs = null } = after;
  return { file, set, timeoutMs };
}

function publishOf({ publish }: Manifest): Plan["publish"] {
  return publish ? { to: publish.to, expiresMs: publish.expiresMs } : null;
}

const nothingBefore: Comparison = { changed: [], vanished: [], renamed: [], restored: [] };

type Concluding = Pick<Plan, "selection" | "notes"> & Pick<End, "unusedColumns">;

/** Finishes the plan once every row is in the draft. */
function concluded(
  input: PlanInput,
  planning: Planning,
  { selection, notes, unusedColumns }: Concluding,
): Plan {
  const { manifest, draft, me, origin, edition } = input;
  const totals = draft.totals();
  const sums = totals.groups.map((sum) => ({ ...sum, ...planning.prices.groupOf(sum.group) }));
  const budget = { caps: { ...noCaps, ...input.caps }, balance: asBalance(me.credits.balance) };
  const coverage = coverageByCap(draft, sums, budget);
  const { fit, last } = coverage.all;
  const { due, items, inDoubt } = totals;
  const ordered = orderedVariants(input);
  const money = moneyOf(sums, budget, {
    within: coverage.caps.fit.credits,
    inDoubt,
    ordered: ordered.credits,
  });
  const { known, open } = draft.counts();
  const made = paidFor(sums, coverage.all);
  const chainMs = draft.longestChain((group) => usualMs(planning.prices.groupOf(group), input));
  const requests = requestsOf({ sums: made, open, isShortOfCredits: fit.items < due, chainMs }, input);
  const files = expectedFiles(made, input.sizes ?? []);
  const usedModels = input.models.filter((model) => planning.usedModels.has(model.model_key));
  const unprompted = usedModels.filter(listsNoPrompt).map(({ model_key: key }) => key);
  const missing = known > 0 ? draft.missing() : [];
  return {
    job: manifest.name,
    isPart: manifest.isPart,
    file: manifest.file,
    origin,
    user: me.user.id,
    edition,
    items: draft.items(edition, last, items),
    due,
    ordered: { items: ordered.made.length, credits: ordered.credits },
    problems: draft.problems(),
    blockers: blockersOf(me, money, fit),
    warnings: [
      ...capWarnings(sums, budget, coverage),
      ...warningsOf(me, money, requests),
      ...diskWarning(files, input.roomBytes ?? null),
      ...missingWarning(missing, input.onMissing ?? "report"),
      ...planning.items.identical(selection !== null),
      ...unusedParamColumns(unusedColumns, usedModels),
    ],
    notes: [
      ...notes,
      ...ordered.notes,
      ...(known > 0 && unprompted.length > 0 ? changedPromptNotes(draft.changedPrompts(unprompted)) : []),
    ],
    publish: publishOf(manifest),
    after: afterOf(manifest),
    ...(known > 0 ? draft.comparison() : nothingBefore),
    ...(manifest.isPart ? { vanished: nothingBefore.vanished } : {}),
    selection,
    unselected: draft.unselected(),
    otherParams: planning.otherParamsByKey(),
    sheet: draft.sheet(manifest.columns),
    leftOut: leftOut(planning.leftOut, input.leftOut ?? new Map()),
    missing: missing.map(({ rowId, key }) => ({ rowId, key })),
    states: totals.states,
    models: modelCosts(sums, input),
    workflow: workflowOf(draft),
    money,
    requests,
    fit,
    files,
  };
}

/** Variants that a person has ordered: those of selected rows of the plan are made too. */
function orderedVariants({ ordered = [], draft }: PlanInput): {
  made: OrderedVariant[];
  credits: Credits;
  notes: string[];
} {
  const unselected = ordered.length === 0 ? new Set() : new Set(draft.unselected());
  const isOfRow = ({ of }: OrderedVariant) => of !== null && draft.holds(of);
  const made = ordered.filter((each) => isOfRow(each) && !unselected.has(each.of));
  const left = ordered.filter((each) => !isOfRow(each));
  const credits = sumOf(made.map(({ price }) => price));
  const named = (some: readonly OrderedVariant[]) => someOf(some.map(({ rowId }) => rowId));
  const [are, they] =
    left.length === 1 ? ["is", "its row has changed or is"] : ["are", "their rows have changed or are"];
  return {
    made,
    credits,
    notes: [
      ...(made.length === 0
        ? []
        : [
            `${named(made)}, which you ordered, ${made.length === 1 ? "is" : "are"} made too: ${priceText(credits)}`,
          ]),
      ...(left.length === 0 ? [] : [`${named(left)}, which you ordered, ${are} not made: ${they} gone`]),
    ],
  };
}

/** What was left out once stays on record: items that were made so may still be there. */
function leftOut(...all: NonNullable<PlanInput["leftOut"]>[]): Plan["leftOut"] {
  const models = new Set(all.flatMap((each) => [...each.keys()]));
  return Object.fromEntries(
    [...models].map((model) => [model, [...new Set(all.flatMap((each) => [...(each.get(model) ?? [])]))]]),
  );
}

/** How a row's request changed. */
export function differences(old: RowContent, now: RowContent): ChangedRow["fields"] {
  const params = new Set([...Object.keys(old.params), ...Object.keys(now.params)]);
  const pairs: [string, string | null | undefined, string | null | undefined][] = [
    ["model", old.model, now.model],
    ["prompt", old.prompt, now.prompt],
    ...[...params]
      .sort()
      .map((key): [string, string | undefined, string | undefined] => [
        `params.${key}`,
        old.params[key],
        now.params[key],
      ]),
    ...mediaFields.map((field): [string, string | undefined, string | undefined] => [
      field,
      old.inputs[field],
      now.inputs[field],
    ]),
  ];
  const different = pairs.filter(([, from, to]) => normalText(from ?? "") !== normalText(to ?? ""));
  if (different.length > 0) {
    return different.map(([field, from, to]) => ({ field, from: from ?? null, to: to ?? null }));
  }
  // The text is the same as before, so a file or the parent of a reference must have changed.
  return mediaFields.flatMap((field) => {
    const value = now.inputs[field] ?? "https:";
    if (isReference(value)) return [{ field, from: `the previous ${value}`, to: `the new ${value}` }];
    if (!isLocalPath(value)) return [];
    return [{ field, from: "the previous file content", to: "the current file content", file: value }];
  });
}
