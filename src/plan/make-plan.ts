import { balanceTold } from "../core/money.js";
import type { Comparison, Draft } from "../core/ports/draft.js";
import type { End, Manifest, Part } from "../manifest/shape/manifest.js";
import { capWarnings, noCaps } from "./caps.js";
import { differences } from "./compare.js";
import { modelCosts, moneyOf, paidFor, reachesOf } from "./cost.js";
import { diskWarning, expectedFiles } from "./expected-files.js";
import { blockersOf, missingWarning, warningsOf } from "./findings.js";
import { unusedParamColumns } from "./notes.js";
import { keepOccurrences } from "./occurrences.js";
import type { Plan, PlanInput } from "./plan.js";
import { Planning } from "./planning.js";
import { requestsOf } from "./requests.js";

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
 * Makes the plan of a manifest in the draft, which the plan then reads from. The same input gives the same plan, and it
 * throws for nothing that a manifest, a model list or an account can hold. Null when the manifest asks for more than
 * anybody means; why is in the draft.
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
  draft.know(ofEdition(input.existing, edition), input.missing ?? new Set());
  const { known } = draft.counts();
  if (known > 0) keepOccurrences(draft, planning.items.keyOf);
  const { selection, notes } = planning.choosing.settle(draft);
  if (input.order === "sheet" || input.order === "cheapest") draft.reorder(input.order);
  const again = { failed: input.selection?.onlyFailed ?? false, missing: input.onMissing === "pay" };
  if (known > 0) draft.stand(again);
  if (known > 0) draft.compare(differences);
  return concluded(input, planning, {
    ...end,
    selection,
    notes: [...end.notes, ...planning.notes.all(planning.taken), ...planning.names.notes(), ...notes],
  });
}

async function readRest(rest: AsyncGenerator<Part, End>, planning: Planning): Promise<End> {
  for (;;) {
    const { value, done } = await rest.next();
    if (done) return value;
    await planning.add(value);
  }
}

function* ofEdition(existing: PlanInput["existing"], edition: string) {
  for (const item of existing) {
    const { edition: own, name, vanished = false, attempted = false } = item;
    if (own === edition) yield { ...item, name: name ?? null, vanished, attempted };
  }
}

const nothingBefore: Comparison = { changed: [], vanished: [], renamed: [], restored: [] };

type Concluding = Pick<Plan, "selection" | "notes"> & Pick<End, "unusedColumns">;

/** What the plan comes to, once every row is in the draft. */
function concluded(
  input: PlanInput,
  planning: Planning,
  { selection, notes, unusedColumns }: Concluding,
): Plan {
  const { manifest, draft, me, origin, edition } = input;
  const totals = draft.totals();
  const sums = totals.groups.map((sum) => ({ ...sum, ...planning.prices.groupOf(sum.group) }));
  const purse = { caps: { ...noCaps, ...input.caps }, balance: balanceTold(me.credits.balance) };
  const reaches = reachesOf(draft, sums, purse);
  const { fit, last } = reaches.all;
  const money = moneyOf(sums, purse, reaches.caps.fit.credits);
  const { due, items } = totals;
  const { known, open } = draft.counts();
  const made = paidFor(sums, reaches.all);
  const requests = requestsOf({ sums: made, open, isShortOfCredits: fit.items < due }, input);
  const files = expectedFiles(made, input.sizes ?? []);
  const usedModels = input.models.filter((model) => planning.usedModels.has(model.model_key));
  const missing = known > 0 ? draft.missing() : [];
  return {
    job: manifest.name,
    file: manifest.file,
    origin,
    user: me.user.id,
    edition,
    items: draft.items(edition, last, items),
    due,
    problems: draft.problems(),
    blockers: blockersOf(me, money, fit),
    warnings: [
      ...capWarnings(sums, purse, reaches),
      ...warningsOf(me, money, requests),
      ...diskWarning(files, input.roomBytes ?? null),
      ...missingWarning(missing, input.onMissing ?? "report"),
      ...planning.items.identical(),
      ...unusedParamColumns(unusedColumns, usedModels),
    ],
    notes,
    ...(known > 0 ? draft.comparison() : nothingBefore),
    selection,
    unselected: draft.unselected(),
    sheet: draft.sheet(manifest.columns),
    missing: missing.map(({ rowId, key }) => ({ rowId, key })),
    standings: totals.standings,
    models: modelCosts(sums, input),
    money,
    requests,
    fit,
    files,
  };
}
