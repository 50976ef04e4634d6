import type { Problem } from "../core/problem.js";
import type { CheckedRow } from "./check-row.js";
import type { Comparison } from "./compare.js";
import type { Expansion } from "./expand.js";
import type { Existing, Plan, PlanInput } from "./plan.js";
import { everything, isEverything, select, selectionText, unknownKeys } from "./select.js";
import { selectableRow } from "./selectable.js";

interface SelectedPart {
  /** Keys of the items whose rows are selected. */
  selected: ReadonlySet<string>;
  /** Those of the selected rows, and of the file as a whole. */
  problems: Problem[];
  notes: string[];
  selection: Plan["selection"];
}

/** The part of a sheet that is selected. What is wrong in other rows is their affair, and is counted in a note. */
export function selectRows(
  { manifest, selection = everything }: PlanInput,
  existing: readonly Existing[],
  checked: readonly CheckedRow[],
  { items, keys }: Expansion,
  problems: Problem[],
): SelectedPart {
  if (isEverything(selection)) {
    return { selected: new Set(items.map(({ key }) => key)), problems, notes: [], selection: null };
  }
  const rows = selectable(existing, checked, keys);
  const chosen = select(rows, selection);
  const unknown = unknownKeys(rows, selection).map(({ key, near }) =>
    unknownProblem(manifest.file, key, near),
  );
  const text = selectionText(selection);
  const none = chosen.length === 0 && unknown.length === 0 && !selection.onlyFailed;
  const numbers = new Set(chosen.map(({ number }) => number));
  const others = new Set(rows.map(({ number }) => number).filter((number) => !numbers.has(number)));
  const mine = problems.filter(({ place }) => place.row === null || !others.has(place.row));
  const left = problems.length - mine.length;
  return {
    selected: new Set(chosen.flatMap(({ checked: { row } }) => keys.get(row) ?? [])),
    problems: [...unknown, ...(none ? [noRowProblem(manifest.file, text, rows.length)] : []), ...mine],
    notes:
      left === 0 ? [] : [`${left === 1 ? "1 problem" : `${left} problems`} in rows that are not selected`],
    selection: { text, rows: chosen.length, of: rows.length },
  };
}

function selectable(existing: readonly Existing[], checked: readonly CheckedRow[], keys: Expansion["keys"]) {
  const states = new Map(existing.map(({ key, state }) => [key, state]));
  const failedIds = new Set(existing.flatMap(({ rowId, state }) => (state === "failed" ? [rowId] : [])));
  return checked.map((each) => {
    const own = (keys.get(each.row) ?? []).map((key) => states.get(key));
    const failed = own.includes("failed");
    // A row that was mended has other items now, and they are new; once they are made, what failed before is past.
    const mended = own.every((state) => state === undefined);
    return selectableRow(each, mended ? failedIds : new Set(), failed);
  });
}

/** What a comparison has to tell of the selected items. What vanished is in no row, so it is told in any case. */
export function aboutSelected(
  { changed, renamed, restored }: Comparison,
  items: readonly { key: string; rowId: string }[],
): Pick<Comparison, "changed" | "renamed" | "restored"> {
  const keys = new Set(items.map(({ key }) => key));
  const ids = new Set(items.map(({ rowId }) => rowId));
  return {
    changed: changed.filter(({ key }) => keys.has(key)),
    renamed: renamed.filter(({ rowId }) => ids.has(rowId)),
    restored: restored.filter(({ key }) => keys.has(key)),
  };
}

function unknownProblem(file: string, key: string, near: string | undefined): Problem {
  return {
    place: { file, row: null },
    message: `--filter names "${key}", which no row has`,
    expected: "a column of the sheet, params.KEY, id, model, prompt, category, output or priority",
    got: key,
    ...(near === undefined ? {} : { nearest: near }),
  };
}

function noRowProblem(file: string, text: string, of: number): Problem {
  return {
    place: { file, row: null },
    message: `no row is selected by ${text}`,
    expected: `at least one of the ${of === 1 ? "1 row" : `${of} rows`}`,
    got: "none",
  };
}
