import { useState } from "preact/hooks";
import type { CellChange, SheetProblem } from "../../shapes.js";
import { number } from "../parts/amounts.js";
import { visible } from "../parts/visible.js";
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
}

const shownMax = 100;

/** Every problem of the sheet, with what would be right. Those of the chosen cell come first. */
export function Problems({ problems, total, editable, columns, place, onPlace, onFix }: ProblemsProps) {
  const [isOpen, setOpen] = useState(false);
  if (problems.length === 0) return null;
  const isHere = ({ row, column }: SheetProblem) =>
    place !== null && row === place.row && column === place.column;
  const ordered = [...problems.filter(isHere), ...problems.filter((problem) => !isHere(problem))];
  const shown = ordered.slice(0, isOpen ? shownMax : 6);
  return (
    <section class="panel problems" aria-label="Problems">
      <h2>
        Problems <span class="quiet">{number(total)}</span>
      </h2>
      <ul>
        {shown.map((problem) => (
          <Problem
            key={`${problem.row} ${problem.column} ${problem.id} ${problem.line} ${problem.message}`}
            problem={problem}
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
      {ordered.length > shown.length && !isOpen && (
        <button type="button" class="link" onClick={() => setOpen(true)}>
          Show {number(Math.min(shownMax, ordered.length) - shown.length)} more
        </button>
      )}
      {isOpen && total > shownMax && (
        <p class="quiet">
          {number(total - shownMax)} more {total - shownMax === 1 ? "comes" : "come"} up when these are fixed.
        </p>
      )}
    </section>
  );
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

function cutText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

function Problem({ problem, alike, areAll, isHere, isColumn, editable, onPlace, onFix }: ProblemProps) {
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
