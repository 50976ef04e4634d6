import {
  type ChosenColumn,
  distinctNames,
  type FilledLine,
  type FilledSheet,
  type Lines,
  linesOf,
  mappedLines,
} from "./filled-sheet.js";

/**
 * A sheet with one line for each row, whose files stand side by side: `file_1`, `file_2` and so on. A number means the same in
 * every row: a combination, a copy of it, one of its takes and one of its outputs. What a row lacks leaves its cells empty.
 */
export async function sheetOfRows(
  chosen: readonly ChosenColumn[],
  lines: Lines<FilledLine>,
): Promise<FilledSheet> {
  const rows = linesOf(() => rowsOf(lines));
  const { axes, numbered } = await differing(rows, chosen);
  const places = await placesOf(rows, axes);
  const isNumbered = (column: ChosenColumn) => column.ofItem || numbered.has(column);
  return {
    columns: distinctNames(
      chosen.flatMap((column) => {
        const { name, written } = column;
        return isNumbered(column)
          ? places.map((_, at) => ({ name: `${name}_${at + 1}`, written }))
          : [{ name, written }];
      }),
    ),
    lines: mappedLines(rows, (row) => {
      const placed = new Map(placedIn(row, axes));
      const [first] = row;
      return chosen.flatMap((column) => {
        const values = isNumbered(column) ? places.map((place) => placed.get(place)) : [first];
        return values.map((line) => (line === undefined ? null : column.cell(line)));
      });
    }),
  };
}

type RowLines = readonly FilledLine[];

/** The lines of each row; at least one. */
async function* rowsOf(lines: Lines<FilledLine>): AsyncGenerator<RowLines> {
  let row: FilledLine[] = [];
  for await (const line of lines) {
    if (row.length > 0 && row[0]?.number !== line.number) {
      yield row;
      row = [];
    }
    row.push(line);
  }
  if (row.length > 0) yield row;
}

/** What differs within a row: the columns of the sheet that its combinations set, and the chosen columns. */
async function differing(rows: Lines<RowLines>, chosen: readonly ChosenColumn[]) {
  const axes = new Set<string>();
  const numbered = new Set<ChosenColumn>();
  for await (const [first, ...others] of rows)
    for (const line of first === undefined ? [] : others) {
      for (const column of Object.keys({ ...first?.cells, ...line.cells }))
        if (first?.cells[column] !== line.cells[column]) axes.add(column);
      for (const column of chosen)
        if (first !== undefined && column.cell(first) !== column.cell(line)) numbered.add(column);
    }
  return { axes: [...axes], numbered };
}

/** The files of a row, each with its place; of takes without a file one, and only where their item has none. */
function* placedIn(row: RowLines, axes: readonly string[]): Generator<[place: string, line: FilledLine]> {
  const items = new Map<string, FilledLine[]>();
  for (const [index, line] of row.entries()) {
    const { cells, copy } = line;
    const item = JSON.stringify(copy === null ? index : [copy, ...axes.map((axis) => cells[axis] ?? null)]);
    items.set(item, [...(items.get(item) ?? []), line]);
  }
  for (const [item, takes] of items) {
    const whole = takes.filter((line) => (line.item?.files.length ?? 0) > 0);
    for (const [take, line] of (whole.length > 0 ? whole : takes.slice(0, 1)).entries())
      for (const [output, each] of outputsOf(line).entries()) yield [`${take} ${output} ${item}`, each];
  }
}

/** A line for each file of an item. */
function outputsOf(line: FilledLine): FilledLine[] {
  const { item } = line;
  if (item === null || item.files.length < 2) return [line];
  return item.files.map((file) => ({ ...line, item: { ...item, files: [file] } }));
}

/** All places, in the order of the row that has most of them. A place that it lacks follows the one before it in another row. */
async function placesOf(rows: Lines<RowLines>, axes: readonly string[]): Promise<readonly string[]> {
  const orders = new Map<string, string[]>();
  for await (const row of rows) {
    const order = [...placedIn(row, axes)].map(([place]) => place);
    orders.set(JSON.stringify(order), order);
  }
  const [longest = ["0 0"], ...others] = [...orders.values()].toSorted((a, b) => b.length - a.length);
  const all = [...longest];
  for (const order of others) {
    let before = -1;
    for (const place of order) {
      const at = all.indexOf(place);
      before = at < 0 ? before + 1 : at;
      if (at < 0) all.splice(before, 0, place);
    }
  }
  return all;
}
