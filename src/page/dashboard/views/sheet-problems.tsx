import { useState } from "preact/hooks";
import { asideWords, numbersOf, rowsText } from "../../../core/problem.js";
import type { CellChange, SheetProblem } from "../../../documents/page.js";
import { number } from "../../parts/amounts.js";
import { visible } from "../../parts/visible.js";
import { Words } from "../parts/words.js";
import type { CellPlace } from "./sheet-grid.js";

interface ProblemsProps {
  problems: readonly SheetProblem[];
  total: number;
  editable: boolean;
  columns: readonly string[];
  place: CellPlace | null;
  onPlace: (place: CellPlace) => void;
  onFix: (changes: CellChange[]) => void;
  /** Leaves out the rows that look like headings or totals. */
  onSkipHeadings: () => void;
}

const shownMax = 100;

/**
 * Every problem of the sheet, with what would be right. A mistake in several rows is listed once. Those of the chosen cell
 * come first.
 */
export function Problems(props: ProblemsProps) {
  const { problems, total, editable, columns, place, onPlace, onFix, onSkipHeadings } = props;
  const [isOpen, setOpen] = useState(false);
  if (problems.length === 0) return null;
  const asides = problems.filter(({ aside }) => aside !== null);
  const isHere = ({ row, column }: SheetProblem) =>
    place !== null && row === place.row && column === place.column;
  const ordered = [...problems.filter(isHere), ...problems.filter((problem) => !isHere(problem))];
  const groups = groupsOf(ordered.filter(({ aside }) => aside === null));
  const shown = groups.slice(0, isOpen ? shownMax : 6);
  return (
    <section class="panel problems" aria-label="Problems">
      <h2>
        Problems <span class="quiet">{number(total)}</span>
      </h2>
      <ul>
        {asides.length > 0 && (
          <li>
            <p>{capital(asideWords(rowsOf(asides, "heading"), rowsOf(asides, "total")))}.</p>
            <div class="fixes">
              <button type="button" class="chip" onClick={onSkipHeadings}>
                Leave out {asides.length === 1 ? "this row" : `these ${number(asides.length)} rows`}
              </button>
            </div>
          </li>
        )}
        {shown.map(([problem, ...others]) => (
          <Problem
            key={`${problem.row} ${problem.column} ${problem.id} ${problem.line} ${problem.message}`}
            problem={problem}
            others={others}
            alike={alike(problem, problems)}
            areAll={total === problems.length}
            isHere={isHere(problem)}
            editable={editable}
            onPlace={onPlace}
            onFix={onFix}
            isColumn={problem.column !== null && columns.includes(problem.column)}
          />
        ))}
      </ul>
      {groups.length > shown.length && !isOpen && (
        <button type="button" class="link" onClick={() => setOpen(true)}>
          Show {number(Math.min(shownMax, groups.length) - shown.length)} more
        </button>
      )}
      {isOpen && groups.length > shownMax && (
        <p class="quiet">
          {number(groups.length - shownMax)} more {groups.length - shownMax === 1 ? "comes" : "come"} up when
          these are fixed.
        </p>
      )}
    </section>
  );
}

type Group = [SheetProblem, ...SheetProblem[]];

/** Problems of several rows that are the same for a person: the same words, and the same ways to fix them. */
function groupsOf(problems: readonly SheetProblem[]): Group[] {
  const groups = new Map<string, Group>();
  for (const problem of problems) {
    const { row, column, message, expected, got, fixes } = problem;
    // Without a row, each has a place of its own.
    const own = row === null || fixes.length > 0 ? [row === null ? problem.line : got] : [];
    const key = JSON.stringify([column, message, expected, row === null, ...own]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [problem]);
    else group.push(problem);
  }
  return [...groups.values()];
}

function rowsOf(asides: readonly SheetProblem[], which: SheetProblem["aside"]) {
  return numbersOf(asides.flatMap(({ aside, row }) => (aside === which && row !== null ? [row] : [])));
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Cells of other rows with the same wrong value in the same column. */
function alike(problem: SheetProblem, problems: readonly SheetProblem[]): SheetProblem[] {
  return problems.filter(
    ({ column, got, message, row }) =>
      row !== null && column === problem.column && got === problem.got && message === problem.message,
  );
}

interface ProblemProps {
  problem: SheetProblem;
  /** Problems of other rows that are listed together with this one. */
  others: SheetProblem[];
  alike: SheetProblem[];
  /** No more problems than these are known, so those alike are all. */
  areAll: boolean;
  isHere: boolean;
  isColumn: boolean;
  editable: boolean;
  onPlace: (place: CellPlace) => void;
  onFix: (changes: CellChange[]) => void;
}

const buttonsMax = 4;
const otherRowsMax = 6;

function cutText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

function Problem({
  problem,
  others,
  alike,
  areAll,
  isHere,
  isColumn,
  editable,
  onPlace,
  onFix,
}: ProblemProps) {
  const { row, column, id, line, message, expected, got, fixes } = problem;
  const canFix = editable && row !== null && column !== null && fixes.length > 0;
  const fix = (value: string, all: boolean) => {
    const rows = all ? alike : [problem];
    onFix(rows.flatMap(({ row }) => (row === null || column === null ? [] : [{ row, column, value }])));
  };
  const [best] = fixes;
  const place = [
    ...(row === null ? [line === null ? "the whole file" : `line ${line}`] : [`row ${number(row)}`]),
    ...(column === null ? [] : [column]),
    ...(id === null ? [] : [id]),
  ].join(" · ");
  const rest = [
    ...new Set(others.flatMap(({ row: other }) => (other === null || other === row ? [] : [other]))),
  ];
  return (
    <li class={isHere ? "here" : ""}>
      <p>
        {row !== null && isColumn ? (
          <button type="button" class="link" onClick={() => onPlace({ row, column: column ?? "" })}>
            <Words text={place} />
          </button>
        ) : (
          <b>
            <Words text={place} />
          </b>
        )}{" "}
        {rest.length > 0 && (
          <b>and {rowsText({ first: rest.slice(0, otherRowsMax), count: rest.length })}: </b>
        )}
        <Words text={message} />
      </p>
      <p class="quiet">
        expected <Words text={cutText(expected, 140)} />, got <Words text={cutText(got, 140)} />
      </p>
      {canFix && (
        <div class="fixes">
          {fixes.slice(0, buttonsMax).map((value) => (
            <button type="button" key={value} class="chip" onClick={() => fix(value, false)}>
              Use {visible(value)}
            </button>
          ))}
          {fixes.length > buttonsMax && (
            <select
              aria-label={`Other values for ${place}`}
              value=""
              onChange={(event) => {
                if (event.currentTarget.value !== "") fix(event.currentTarget.value, false);
              }}
            >
              <option value="">other…</option>
              {fixes.slice(buttonsMax).map((value) => (
                <option key={value} value={value}>
                  {visible(value)}
                </option>
              ))}
            </select>
          )}
          {alike.length > 1 && best !== undefined && (
            <button type="button" class="chip" onClick={() => fix(best, true)}>
              Use {visible(best)} in {areAll && "all "}
              {number(alike.length)} rows alike
            </button>
          )}
        </div>
      )}
    </li>
  );
}
