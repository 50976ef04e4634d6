import { noCredits } from "../core/money.js";
import type { Problem } from "../core/problem.js";
import { byRow } from "../manifest/read.js";
import { type CheckedRow, checkRow } from "./check-row.js";
import { compare } from "./compare.js";
import { affordable, modelCosts, moneyOf, requestsOf, stand } from "./cost.js";
import { copyName, expand, type GoodRow } from "./expand.js";
import { blockersOf, warningsOf } from "./findings.js";
import { nameProblems } from "./names.js";
import { inputNotes, leftOutNotes, takenDefaults, unusedParamColumns } from "./notes.js";
import type { Plan, PlanInput, PlannedItem, Standing } from "./plan.js";

/** Makes the plan. Pure, and it throws for nothing that a manifest, a model list or an account can hold. */
export function makePlan(input: PlanInput): Plan {
  const { manifest, me, origin, edition, maxCredits = null, spent = noCredits } = input;
  const existing = input.existing.filter((item) => item.edition === edition);
  const { checked, problems } = check(input);
  const wrong = new Set(problems.map((problem) => problem.place.row));
  const good = checked.filter((each): each is GoodRow => each.model !== null && !wrong.has(each.row.number));
  const { items: wanted, identical } = expand(good, {
    origin,
    account: me.user.id,
    edition,
    charges: input.charges ?? new Map(),
  });
  const { items, fit } = stand(wanted, existing, affordable(me, maxCredits, spent));
  const money = moneyOf(items, me, maxCredits, spent);
  const requests = requestsOf(items, existing, me);
  const used = new Set(checked.map(({ row }) => row.model));
  const usedModels = input.models.filter((model) => used.has(model.model_key));
  return {
    job: manifest.name,
    file: manifest.file,
    origin,
    edition,
    items,
    problems,
    blockers: blockersOf(me, money, fit),
    warnings: [
      ...warningsOf(me, money, fit, requests),
      ...identical,
      ...unusedParamColumns(manifest, usedModels),
    ],
    notes: [...manifest.notes, ...inputNotes(checked), ...leftOutNotes(checked)],
    ...compare(items, existing, wrongIds(checked, problems)),
    standings: standingsOf(items),
    models: modelCosts(items),
    money,
    requests,
    fit,
  };
}

function check({ manifest, models, localInputs }: PlanInput): { checked: CheckedRow[]; problems: Problem[] } {
  const byKey = new Map(models.map((model) => [model.model_key, model]));
  const taken = takenDefaults(manifest.rows, byKey);
  const checked = manifest.rows.map((row) => checkRow(row, byKey, localInputs, taken));
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
