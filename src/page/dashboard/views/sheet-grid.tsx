import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DroppedSheet, SheetProblem, SheetRows } from "../../../documents/page.js";
import { number } from "../../parts/amounts.js";
import { visible } from "../../parts/visible.js";
import { useWindowing } from "../../parts/windowing.js";
import { Trouble } from "../parts/empty.js";
import { type RowWindow, useRows } from "../server/answer.js";
import { get, withQuery } from "../server/client.js";

/** A cell by its row as a spreadsheet counts, and its column. */
export interface CellPlace {
  row: number;
  column: string;
}

export function cellKey(row: number, column: string): string {
  return `${row} ${column}`;
}

interface GridProps {
  sheet: DroppedSheet;
  /** Of a workbook, if it is not the first. */
  named: string | null;
  problems: ReadonlyMap<string, SheetProblem[]>;
  /** Cells that were changed here. */
  edits: ReadonlyMap<string, string>;
  place: CellPlace | null;
  onPlace: (place: CellPlace) => void;
  onEdit: (row: number, column: string, value: string) => void;
}

type Row = SheetRows["rows"][number];

const rowHeight = 32;
const headHeight = 34;
/** What is drawn of a cell; the editor has all of it. */
const charactersMax = 200;

/**
 * The rows of a sheet; only rows in view are drawn and loaded. The grid itself has the focus and knows the current
 * cell, because a cell that is scrolled away no longer exists.
 */
export function SheetGrid({ sheet, named, problems, edits, place, onPlace, onEdit }: GridProps) {
  const { file, columns, rows: total, editable } = sheet;
  const scroller = useRef<HTMLDivElement>(null);
  const { list, first, last } = useWindowing<HTMLDivElement>(total, rowHeight);
  // A column that is added moves the cells. A copy has the same rows.
  const key = columns.join("\n");
  const rows = useRows<Row>(
    key,
    first,
    last,
    async (from, limit, signal) => {
      const found = await get<SheetRows>(
        withQuery("/api/sheet/rows", { file, sheet: named, from, limit }),
        signal,
      );
      return { rows: found.rows, total };
    },
    null,
  );
  const { index, column, current, move } = useCurrentCell({ columns, total, rows, place, onPlace });
  const valueAt = (row: Row, at: number): string => {
    const name = columns[at] ?? "";
    return edits.get(cellKey(row.number, name)) ?? row.cells[at] ?? "";
  };
  const value = current === undefined ? undefined : valueAt(current, column);
  const { editing, edit, commit, cancel } = useCellEditing({
    place: editable && column >= 0 ? place : null,
    value,
    onEdit,
    move,
    focus: () => scroller.current?.focus(),
  });
  /** The current cell before the pointer came down: the first press chooses a cell, the next one edits it. */
  const pressedOn = useRef<CellPlace | null>(null);
  const firstNumber = firstNumberOf(rows);
  const numberWidth = 28 + 8 * number(total + firstNumber).length;
  const widths = useWidths(columns, rows.row, rows.total !== null);
  const template = {
    gridTemplateColumns: `${numberWidth}px ${widths.map((width) => `minmax(${width}px, ${width}fr)`).join(" ")}`,
  };
  const width = numberWidth + widths.reduce((sum, each) => sum + each, 0);

  useInView(scroller, { place, index, column, widths, numberWidth });

  const pressed = (event: KeyboardEvent) => {
    const far = event.ctrlKey || event.metaKey;
    const isText = event.key.length === 1 && !far && !event.altKey;
    if (editing !== null && !isText) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / rowHeight) - 2);
    const by = stepsOf(event.key, { far, page, total, columns: columns.length });
    if (by !== undefined) {
      event.preventDefault();
      move(...by);
    } else if (event.key === "Enter" || event.key === "F2") {
      event.preventDefault();
      edit(null);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      if (editable && place !== null && value) onEdit(place.row, place.column, "");
    } else if (isText) {
      event.preventDefault();
      edit(event.key);
    }
  };
  const shown = Array.from({ length: Math.max(0, last - first) }, (_, offset) => first + offset);
  return (
    <>
      {rows.error !== null && <Trouble error={rows.error} />}
      <div
        ref={scroller}
        class="sheet"
        role="grid"
        tabIndex={0}
        data-scroller
        aria-label={`Rows of ${visible(file)}`}
        aria-rowcount={total + 1}
        aria-colcount={columns.length + 1}
        aria-readonly={!editable}
        aria-activedescendant={place === null ? undefined : `cell-${index}-${column}`}
        onKeyDown={pressed}
        onPointerDown={() => {
          pressedOn.current = place;
        }}
        onFocus={() => {
          if (place === null && total > 0) move(0, 0);
        }}
      >
        <GridHead columns={columns} style={{ ...template, minWidth: `${width}px` }} />
        <div
          ref={list}
          class="sheet-rows"
          role="rowgroup"
          style={{ height: `${total * rowHeight}px`, minWidth: `${width}px` }}
        >
          {shown.map((at) => {
            const row = rows.row(at);
            return (
              <GridRow
                key={at}
                at={at}
                number={row?.number ?? firstNumber + at}
                style={{ ...template, transform: `translateY(${at * rowHeight}px)` }}
                problems={row === undefined ? undefined : problems.get(cellKey(row.number, ""))}
              >
                {row !== undefined &&
                  columns.map((name, columnAt) => {
                    const isMeant = place?.row === row.number && place.column === name;
                    return (
                      <GridCell
                        key={name}
                        id={`cell-${at}-${columnAt}`}
                        isMeant={isMeant}
                        problems={problems.get(cellKey(row.number, name))}
                        onPress={() => {
                          const before = pressedOn.current;
                          if (before?.row === row.number && before.column === name) edit(null);
                          else onPlace({ row: row.number, column: name });
                        }}
                      >
                        {isMeant && editing !== null ? (
                          <CellEditor name={name} value={editing.value} onCommit={commit} onCancel={cancel} />
                        ) : (
                          visible(
                            valueAt(row, columnAt)
                              .slice(0, charactersMax)
                              .replace(/[\r\n]+/g, " ⏎ "),
                          )
                        )}
                      </GridCell>
                    );
                  })}
              </GridRow>
            );
          })}
        </div>
      </div>
    </>
  );
}

interface CellMoves {
  columns: readonly string[];
  total: number;
  rows: Pick<RowWindow<Row>, "row">;
  place: CellPlace | null;
  onPlace: (place: CellPlace) => void;
}

/** Where the current cell is among rows and columns, from 0, its row once that is loaded, and how it moves to another. */
function useCurrentCell({ columns, total, rows, place, onPlace }: CellMoves) {
  /**
   * A cell that was moved to, from the current one, before its row was loaded: its number is not known, because the file
   * may have empty rows.
   */
  const [moved, setMoved] = useState<{ from: CellPlace | null; index: number; column: string } | null>(null);
  const goal = moved?.from === place ? moved : null;
  const found = place === null ? -1 : indexOf(place.row, firstNumberOf(rows), rows.row, total);
  const index = goal?.index ?? found;
  const column = columns.indexOf((goal ?? place)?.column ?? "");
  const reached = rows.row(index);
  const current = goal === null && reached?.number === place?.row ? reached : undefined;
  useEffect(() => {
    if (goal !== null && reached !== undefined) onPlace({ row: reached.number, column: goal.column });
  });
  const move = (rowBy: number, columnBy: number) => {
    const to = Math.min(total - 1, Math.max(0, (index < 0 ? 0 : index) + rowBy));
    const at = Math.min(columns.length - 1, Math.max(0, (column < 0 ? 0 : column) + columnBy));
    const row = rows.row(to);
    if (row === undefined) setMoved({ from: place, index: to, column: columns[at] ?? "" });
    else onPlace({ row: row.number, column: columns[at] ?? "" });
  };
  return { index, column, current, move };
}

interface CellEdits {
  /** The current cell; null if there is none, or it cannot be edited. */
  place: CellPlace | null;
  /** Of the current cell; undefined until its row is loaded. */
  value: string | undefined;
  onEdit: (row: number, column: string, value: string) => void;
  move: (rowBy: number, columnBy: number) => void;
  /** Gives the focus back to the grid. */
  focus: () => void;
}

/** The cell that is being edited, from the first key to its new value. */
function useCellEditing({ place, value: before, onEdit, move, focus }: CellEdits) {
  const [editing, setEditing] = useState<{ place: CellPlace; value: string } | null>(null);
  const edit = (typed: string | null) => {
    if (place === null || before === undefined) return;
    // What is typed before the cell is in view, and its editor has the focus, is not lost.
    setEditing((begun) => ({ place, value: typed === null ? before : `${begun?.value ?? ""}${typed}` }));
  };
  const commit = (value: string, rowBy: number, columnBy: number, isElsewhere: boolean) => {
    if (editing === null) return;
    if (before !== value) onEdit(editing.place.row, editing.place.column, value);
    setEditing(null);
    if (rowBy !== 0 || columnBy !== 0) move(rowBy, columnBy);
    // The focus of another field stays there: what is typed for it must not go into this cell.
    if (!isElsewhere) focus();
  };
  const cancel = () => {
    setEditing(null);
    focus();
  };
  return { editing, edit, commit, cancel };
}

type Style = Readonly<Record<string, string>>;

function GridHead({ columns, style }: { columns: readonly string[]; style: Style }) {
  return (
    <div class="sheet-head" role="row" aria-rowindex={1} style={style}>
      <span role="columnheader" class="corner">
        <span class="unseen">row</span>
      </span>
      {columns.map((name) => (
        <span key={name} role="columnheader" title={visible(name)} dir="auto">
          {visible(name)}
        </span>
      ))}
    </div>
  );
}

interface RowProps {
  /** Its place among the rows, from 0, and its number as a spreadsheet counts. */
  at: number;
  number: number;
  style: Style;
  /** Those of the row as a whole. */
  problems: readonly SheetProblem[] | undefined;
  /** Its cells, once they are loaded. */
  children: ComponentChildren;
}

function GridRow({ at, number: shown, style, problems, children }: RowProps) {
  const isBad = problems !== undefined;
  return (
    <div class="sheet-row" role="row" aria-rowindex={at + 2} style={style}>
      <span role="rowheader" class={isBad ? "corner bad" : "corner"} title={problems?.[0]?.message}>
        {number(shown)}
      </span>
      {children}
    </div>
  );
}

interface CellProps {
  id: string;
  /** It is the current cell. */
  isMeant: boolean;
  problems: readonly SheetProblem[] | undefined;
  onPress: () => void;
  children: ComponentChildren;
}

function GridCell({ id, isMeant, problems, onPress, children }: CellProps) {
  return (
    <span
      id={id}
      role="gridcell"
      dir="auto"
      class={`${problems === undefined ? "" : "bad"} ${isMeant ? "meant" : ""}`}
      aria-selected={isMeant}
      aria-invalid={problems !== undefined}
      title={problems?.map(({ message }) => visible(message)).join("\n")}
      onClick={onPress}
    >
      {children}
    </span>
  );
}

/** By how many rows and columns a key moves; undefined for any other key. */
function stepsOf(
  key: string,
  { far, page, total, columns }: { far: boolean; page: number; total: number; columns: number },
): [rows: number, columns: number] | undefined {
  const steps: Record<string, [number, number]> = {
    ArrowDown: [far ? total : 1, 0],
    ArrowUp: [far ? -total : -1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    PageDown: [page, 0],
    PageUp: [-page, 0],
    Home: [far ? -total : 0, -columns],
    End: [far ? total : 0, columns],
  };
  return steps[key];
}

interface Viewed {
  place: CellPlace | null;
  index: number;
  column: number;
  widths: readonly number[];
  numberWidth: number;
}

/** Brings the current cell into view, also when its place is known better. */
function useInView(
  scroller: { readonly current: HTMLDivElement | null },
  { place, index, column, widths, numberWidth }: Viewed,
): void {
  useEffect(() => {
    const element = scroller.current;
    if (element === null || index < 0) return;
    const top = index * rowHeight;
    const visibleHeight = element.clientHeight - headHeight - rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top > element.scrollTop + visibleHeight) element.scrollTop = top - visibleHeight;
    const left = widths.slice(0, Math.max(0, column)).reduce((sum, each) => sum + each, 0);
    const right = left + (widths[column] ?? 0);
    if (left < element.scrollLeft) element.scrollLeft = left;
    else if (right > element.scrollLeft + element.clientWidth - numberWidth)
      element.scrollLeft = right - element.clientWidth + numberWidth;
  }, [place, index, column]);
}

interface EditorProps {
  name: string;
  value: string;
  /** `isElsewhere`: the focus is on something else by now. */
  onCommit: (value: string, rowBy: number, columnBy: number, isElsewhere: boolean) => void;
  onCancel: () => void;
}

function CellEditor({ name, value: given, onCommit, onCancel }: EditorProps) {
  const [value, setValue] = useState(given);
  const input = useRef<HTMLTextAreaElement & HTMLInputElement>(null);
  const isDone = useRef(false);
  // Before the next key: an effect after the frame would lose what is typed until then.
  useLayoutEffect(() => {
    input.current?.focus();
    const end = input.current?.value.length ?? 0;
    input.current?.setSelectionRange(end, end);
  }, []);
  const done = (rowBy: number, columnBy: number, isElsewhere = false) => {
    if (isDone.current) return;
    isDone.current = true;
    onCommit(value, rowBy, columnBy, isElsewhere);
  };
  // What was typed stays when the cell is scrolled away: not every browser tells of the lost focus then.
  const latest = useRef(done);
  latest.current = done;
  useLayoutEffect(() => () => latest.current(0, 0), []);
  const shared = {
    ref: input,
    value,
    "aria-label": name,
    class: "cell-editor",
    onInput: (event: Event) => setValue((event.currentTarget as HTMLInputElement).value),
    onBlur: ({ relatedTarget }: FocusEvent) => done(0, 0, relatedTarget !== null),
    onClick: (event: Event) => event.stopPropagation(),
    onKeyDown: (event: KeyboardEvent) => {
      event.stopPropagation();
      if (event.key === "Escape") {
        isDone.current = true;
        onCancel();
      } else if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        done(1, 0);
      } else if (event.key === "Tab") {
        event.preventDefault();
        done(0, event.shiftKey ? -1 : 1);
      }
    },
  };
  const isLong = given.length > 60 || given.includes("\n") || name === "prompt";
  return isLong ? (
    <textarea {...shared} rows={4} />
  ) : (
    <input {...shared} list={name === "model" ? "models" : undefined} />
  );
}

/** The number of the first row, as a spreadsheet counts: below the header, until it is loaded. */
function firstNumberOf(rows: Pick<RowWindow<Row>, "row">): number {
  return rows.row(0)?.number ?? 2;
}

/** The place of a row, by its number: rows follow each other, unless the file has empty rows. */
function indexOf(
  wanted: number,
  firstNumber: number,
  row: (index: number) => Row | undefined,
  total: number,
): number {
  let index = Math.min(total - 1, Math.max(0, wanted - firstNumber));
  for (let found = row(index); found !== undefined && found.number > wanted && index > 0; found = row(index))
    index--;
  return index;
}

/** As wide as the content of the first rows needs, within limits. */
function useWidths(
  columns: readonly string[],
  row: (index: number) => Row | undefined,
  isRead: boolean,
): number[] {
  // Measured once, when the first rows are there.
  return useMemo(
    () =>
      columns.map((name, at) => {
        const lengths = Array.from({ length: 40 }, (_, index) => row(index)?.cells[at]?.length ?? 0);
        return Math.min(340, Math.max(88, 28 + Math.max(8.2 * name.length, 7.2 * Math.max(...lengths))));
      }),
    [columns.join("\n"), isRead],
  );
}
