import { noCredits } from "../core/money.js";
import { type Problem, partOf } from "../core/problem.js";
import type { NewItem } from "../core/store.js";
import { copyName } from "../manifest/item-names.js";
import { byRow } from "../manifest/read.js";
import { type CheckedRow, checkRow } from "./check-row.js";
import { compare } from "./compare.js";
import { affordable, modelCosts, moneyOf, stand } from "./cost.js";
import { type Expansion, expand, type GoodRow } from "./expand.js";
import { blockersOf, missingWarning, warningsOf } from "./findings.js";
import { nameProblems } from "./names.js";
import { inputNotes, leftOutNotes, repairNotes, takenDefaults, unusedParamColumns } from "./notes.js";
import type { Existing, Plan, PlanInput, PlannedItem, Standing } from "./plan.js";
import { requestsOf } from "./requests.js";
import { aboutSelected, selectRows } from "./select-rows.js";
import { sheetOf } from "./sheet.js";

/** Makes the plan. Pure, and it throws for nothing that a manifest, a model list or an account can hold. */
export function makePlan(input: PlanInput): Plan {
  const { manifest, me, origin, edition, maxCredits = null, spent = noCredits } = input;
  const existing = input.existing.filter((item) => item.edition === edition);
  const { checked, problems: found } = check(input);
  const expansion = expandGood(input, existing, checked, found);
  const all = byRow([...found, ...expansion.problems]);
  const { selected, problems, notes, selection } = selectRows(input, existing, checked, expansion, all);
  const wanted = expansion.items.filter((item) => selected.has(item.key));
  const missing = wanted.filter((item) => input.missing?.has(item.key));
  const again = againOf(input, wanted, existing, missing);
  const reach = affordable(me, maxCredits, spent);
  const { items, fit } = stand(wanted, existing, reach, { order: input.order ?? "priority", again });
  const money = moneyOf(items, me, maxCredits, spent);
  const requests = requestsOf(items, existing, fit, input);
  const used = new Set(checked.map(({ row }) => row.model));
  const usedModels = input.models.filter((model) => used.has(model.model_key));
  const wrong = wrongIds(checked, all);
  const comparison = compare(expansion.items, existing, wrong);
  return {
    job: manifest.name,
    file: manifest.file,
    origin,
    user: me.user.id,
    edition,
    items,
    problems,
    blockers: blockersOf(me, money, fit),
    warnings: [
      ...warningsOf(me, money, fit, requests),
      ...missingWarning(missing, input.onMissing ?? "report"),
      ...expansion.identical,
      ...unusedParamColumns(manifest, usedModels),
    ],
    notes: [
      ...manifest.notes,
      ...inputNotes(checked),
      ...leftOutNotes(checked),
      ...repairNotes(checked),
      ...notes,
    ],
    ...comparison,
    ...aboutSelected(comparison, wanted),
    selection,
    unselected: leftAlone(expansion, selected, existing, wrong),
    sheet: sheetOf(manifest, expansion.keys, all),
    missing: missing.map(({ rowId, key }) => ({ rowId, key })),
    standings: standingsOf(items),
    models: modelCosts(items),
    money,
    requests,
    fit,
  };
}

/** Items that stay as they are: their rows are not selected, or wrong for now. */
function leftAlone(
  { items }: Expansion,
  selected: ReadonlySet<string>,
  existing: readonly Existing[],
  wrongIds: ReadonlySet<string>,
): string[] {
  const wrong = existing.filter(({ key, rowId }) => wrongIds.has(rowId) && !selected.has(key));
  return [...new Set([...items.filter(({ key }) => !selected.has(key)), ...wrong].map(({ key }) => key))];
}

function expandGood(
  { me, origin, edition, charges, duplicates }: PlanInput,
  existing: readonly Existing[],
  checked: readonly CheckedRow[],
  problems: readonly Problem[],
): Expansion {
  const wrong = new Set(problems.map(({ place }) => partOf(place)));
  const good = checked.filter(
    (each): each is GoodRow =>
      each.model !== null &&
      !wrong.has(partOf(each.row.place)) &&
      !wrong.has(partOf({ row: each.row.number })),
  );
  return expand(good, {
    origin,
    account: me.user.id,
    edition,
    charges: charges ?? new Map(),
    duplicates: duplicates ?? "keep",
    rowIds: new Map(existing.map(({ key, rowId }) => [key, rowId])),
  });
}

/** Items that are paid once more because a person asked for it: failed ones, and lost ones. */
function againOf(
  { selection, onMissing }: PlanInput,
  wanted: readonly NewItem[],
  existing: readonly Existing[],
  missing: readonly NewItem[],
): Set<string> {
  const failed = new Set(existing.flatMap(({ key, state }) => (state === "failed" ? [key] : [])));
  return new Set([
    ...(selection?.onlyFailed ? wanted.flatMap(({ key }) => (failed.has(key) ? [key] : [])) : []),
    ...(onMissing === "pay" ? missing.map(({ key }) => key) : []),
  ]);
}

function check({ manifest, models, localInputs, repair = false }: PlanInput): {
  checked: CheckedRow[];
  problems: Problem[];
} {
  const byKey = new Map(models.map((model) => [model.model_key, model]));
  const taken = takenDefaults(manifest.rows, byKey);
  const checked = manifest.rows.map((row) => checkRow(row, { models: byKey, localInputs, taken, repair }));
  const found = checked.flatMap((each) => each.problems);
  const names = nameProblems(manifest.rows);
  return { checked, problems: byRow([...manifest.problems, ...found, ...names]) };
}

/** The ids of the items that wrong rows would have had, also of rows that could not even be read. */
function wrongIds(checked: readonly CheckedRow[], problems: readonly Problem[]): Set<string> {
  const ids = new Set(problems.flatMap(({ place }) => place.id ?? []));
  for (const { row } of checked) {
    if (row.id === null || !ids.has(row.id)) continue;
    for (let copy = 2; copy <= row.repeat; copy++) ids.add(copyName(row.id, copy));
  }
  return ids;
}

function standingsOf(items: readonly PlannedItem[]): Partial<Record<Standing, number>> {
  const standings: Partial<Record<Standing, number>> = {};
  for (const { standing } of items) standings[standing] = (standings[standing] ?? 0) + 1;
  return standings;
}
