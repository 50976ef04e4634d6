import type { Draft } from "../core/ports/draft.js";
import type { Problem } from "../core/problem.js";
import type { CheckedRow } from "./check-row.js";
import type { Plan } from "./plan.js";
import { isEverything, KeyWatch, lotOf, matcherOf, type Selection, selectionText } from "./select.js";
import { valuesOfRow } from "./selectable.js";

/** Chooses the selected part of a sheet while it is read. What is wrong in other rows is their affair, and is counted in a note. */
export class Choosing {
  private readonly everything: boolean;
  private readonly matches: ReturnType<typeof matcherOf>;
  private readonly keys: KeyWatch;

  constructor(
    private readonly selection: Selection,
    private readonly file: string,
  ) {
    this.everything = isEverything(selection);
    this.matches = matcherOf(selection);
    this.keys = new KeyWatch(selection);
  }

  of(checked: CheckedRow): { chosen: boolean; lot: string | null } {
    if (this.everything) return { chosen: true, lot: null };
    const { row } = checked;
    const values = valuesOfRow(checked);
    this.keys.see(values);
    const { sample, seed } = this.selection;
    const lot = sample === null ? null : lotOf(row.id ?? String(row.number), seed);
    return { chosen: this.matches({ number: row.number, values }), lot };
  }

  /** Leaves only the chosen rows in the draft. */
  settle(draft: Draft): { selection: Plan["selection"]; notes: string[] } {
    if (this.everything) return { selection: null, notes: [] };
    const { selection, file } = this;
    const rows = draft.choose(selection);
    const { rows: of, hidden } = draft.counts();
    const text = selectionText(selection);
    const unknown = this.keys.unknown();
    for (const { key, near } of unknown) draft.problem(unknownProblem(file, key, near));
    if (rows === 0 && unknown.length === 0 && !selection.onlyFailed)
      draft.problem(noRowProblem(file, text, of));
    const left = hidden === 1 ? "1 problem" : `${hidden} problems`;
    return {
      selection: { text, rows, of },
      notes: hidden === 0 ? [] : [`${left} in rows that are not selected`],
    };
  }
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
