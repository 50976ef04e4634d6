import { pathToFileURL } from "node:url";
import Table from "cli-table3";
import pc from "picocolors";
import { charactersOf, terminalText, textWidth } from "./terminal.js";
import { plainStyle, type TerminalStyle } from "./terminal-style.js";

export interface Column {
  title: string;
  align?: "left" | "right";
  /** May be wrapped when the terminal is narrow. Other columns are only when nothing else helps. */
  flexible?: boolean;
}

export type Tone = "good" | "bad" | "warning" | "dim" | "strong";
/** Text in a tone, or the name of a file or folder with its absolute path, for terminals that take links. */
export type Cell = string | number | { text: string; tone: Tone } | { text: string; file: string };

const gap = 2;
/** The least width of a flexible column, and of any other if nothing else helps; numbers keep up to the first. */
const flexibleMin = 12;
const columnMin = 3;

/** Plain lines, no frame: a table reads well on a terminal, in a file and in a pipe. */
const frame = Object.fromEntries(
  ["top", "bottom", "left", "mid", "right"]
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat("middle")
    .map((name) => [name, ""]),
);

/** A table as wide as its content and no wider than the terminal. Every cell is cleaned here. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  style: TerminalStyle = plainStyle,
): string {
  const cells = rows.map((row) => row.map((cell) => painted(cell, style)));
  const natural = draw(columns, cells, style, null);
  if (style.width === null) return natural.text;
  const widths = narrowed(columns, rows, natural.widths, style.width);
  if (widths === null) return natural.text;
  const broken = rows.map((row) => row.map((cell, at) => painted(cell, style, (widths[at] ?? 0) - gap)));
  return draw(columns, broken, style, widths).text;
}

/**
 * A text whose words are broken where they are wider than the column, which would cut them off: behind a hyphen, a slash
 * or an underscore if there is one.
 */
function broken(text: string, width: number): string {
  return text.replace(/\S+/gu, (word) => {
    if (textWidth(word) <= width) return word;
    let [line, before] = ["", ""];
    for (const piece of word.split(/(?<=[-/_])/u))
      for (const part of textWidth(piece) <= width ? [piece] : charactersOf(piece)) {
        if (line !== "" && textWidth(line + part) > width) {
          before += `${line} `;
          line = "";
        }
        line += part;
      }
    return before + line;
  });
}

/** A text on lines no wider than the terminal. */
export function wrapped(text: string, style: TerminalStyle): string {
  return table([{ title: "", flexible: true }], [[text]], style);
}

/** Labels and what they say, one below the other. */
export function labelled(
  lines: readonly (readonly [string, Cell])[],
  style: TerminalStyle = plainStyle,
): string {
  return table([{ title: "" }, { title: "", flexible: true }], lines, style);
}

export function paint(text: string, tone: Tone, style: TerminalStyle): string {
  const colours = pc.createColors(style.colour);
  const brushes: Record<Tone, (text: string) => string> = {
    good: colours.green,
    bad: colours.red,
    warning: colours.yellow,
    dim: colours.dim,
    strong: colours.bold,
  };
  return text === "" ? "" : brushes[tone](text);
}

/** The text of a cell, and what it links to. */
type DrawnCell = string | { content: string; href: string };

function painted(cell: Cell, style: TerminalStyle, width = Number.POSITIVE_INFINITY): DrawnCell {
  const text = broken(textOf(cell), width);
  if (typeof cell !== "object") return text;
  if ("tone" in cell) return paint(text, cell.tone, style);
  return style.links === true && text !== "" ? { content: text, href: pathToFileURL(cell.file).href } : text;
}

function textOf(cell: Cell): string {
  return terminalText(String(typeof cell === "object" ? cell.text : cell));
}

/** What was drawn, and how wide each column is with its gap. */
interface Drawing {
  text: string;
  widths: number[];
}

/** cli-table3's time grows with the square of the rows, so long tables are drawn this many rows at a time. */
const rowsAtOnce = 100;

/** Without widths, each column is as wide as its widest cell; with them, what is wider is wrapped. */
function draw(
  columns: readonly Column[],
  rows: readonly DrawnCell[][],
  style: TerminalStyle,
  widths: readonly number[] | null,
): Drawing {
  const wordWrap = widths !== null;
  const roomAt = (at: number) => (widths === null ? Number.POSITIVE_INFINITY : (widths[at] ?? 0) - gap);
  const head = columns.map(({ title }, at) => paint(broken(title, roomAt(at)), "strong", style));
  const titles = head.some((title) => title !== "") ? head : null;
  const parts = [rows.slice(0, rowsAtOnce)];
  for (let at = rowsAtOnce; at < rows.length; at += rowsAtOnce) parts.push(rows.slice(at, at + rowsAtOnce));
  const drawParts = (colWidths: readonly number[]) =>
    parts.map((part, index) =>
      drawPart(columns, part, { head: index === 0 ? titles : null, colWidths, wordWrap }),
    );
  const drawn = drawParts(widths ?? []);
  if (widths === null && drawn.length > 1) {
    const widest = columns.map((_, column) => Math.max(...drawn.map((part) => part.widths[column] ?? 0)));
    return joined(drawParts(widest), widest);
  }
  return joined(drawn, drawn[0]?.widths ?? []);
}

function joined(parts: readonly Drawing[], widths: number[]): Drawing {
  return { text: parts.map(({ text }) => text).join("\n"), widths };
}

interface PartOptions {
  head: string[] | null;
  colWidths: readonly number[];
  wordWrap: boolean;
}

function drawPart(
  columns: readonly Column[],
  rows: readonly DrawnCell[][],
  { head, colWidths, wordWrap }: PartOptions,
): Drawing {
  const drawn = new Table({
    ...(head === null ? {} : { head }),
    chars: frame,
    style: { head: [], border: [], "padding-left": 0, "padding-right": gap, compact: true },
    colAligns: columns.map((column) => column.align ?? "left"),
    colWidths: [...colWidths],
    wordWrap,
  });
  drawn.push(...rows.map((row) => [...row]));
  const lines = drawn.toString().split("\n");
  // Drawing works out the widths of columns that have none, and leaves them in the options.
  return {
    text: lines.map((line) => line.trimEnd()).join("\n"),
    widths: columns.map((_, index) => drawn.options.colWidths[index] ?? 0),
  };
}

/**
 * Widths that fit, taken from the widest flexible columns, and if that is not enough from all; null when all fits as it
 * is. A number is not broken: its beginning would be read as a smaller one.
 */
function narrowed(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  natural: readonly number[],
  width: number,
): number[] | null {
  // The last column's gap is cut off at the end of the line.
  const room = width + gap;
  if (sum(natural) <= room) return null;
  const widths = shrunk(natural, room, (at) => (columns[at]?.flexible === true ? flexibleMin + gap : null));
  if (sum(widths) <= room) return widths;
  const numbers = columns.map(({ align }, at) =>
    align === "right" ? rows.reduce((most, row) => Math.max(most, textWidth(textOf(row[at] ?? ""))), 0) : 0,
  );
  return shrunk(widths, room, (at) => Math.max(columnMin, Math.min(numbers[at] ?? 0, flexibleMin)) + gap);
}

/** `leastOf` says how narrow a column may become; null if it stays as it is. */
function shrunk(from: readonly number[], room: number, leastOf: (index: number) => number | null): number[] {
  const widths = [...from];
  while (sum(widths) > room) {
    const candidates = widths.flatMap((width, index) => {
      const least = leastOf(index);
      return least !== null && width > least ? [{ width, index }] : [];
    });
    const [widest] = candidates.toSorted((a, b) => b.width - a.width);
    if (widest === undefined) break;
    widths[widest.index] = widest.width - 1;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
