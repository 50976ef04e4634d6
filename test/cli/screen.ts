import { cutToWidth, textWidth } from "../../src/text/terminal.js";

const esc = "\u001b";
/** Control sequences, links, ends of lines, and text. */
const pieces = new RegExp(
  [
    `${esc}\\[(\\??[\\d;]*)([A-Za-z])`,
    `${esc}\\]8;;([^${esc}]*)${esc}\\\\`,
    "\r",
    "\n",
    `[^${esc}\r\n]+`,
    esc,
  ].join("|"),
  "gu",
);

/** What is on a terminal after all that was written to it: as much of one as the live view uses. Unknown sequences are errors. */
export class Screen {
  private readonly page: string[] = [""];
  /** The addresses of all links that were written. */
  readonly links = new Set<string>();
  private row = 0;
  private column = 0;
  private wraps = true;

  constructor(
    private columns: number,
    private readonly rows: number,
  ) {}

  write(text: string): void {
    for (const [piece, number = "", letter, link] of text.matchAll(pieces)) {
      if (piece === "\n") this.down();
      else if (piece === "\r") this.column = 0;
      else if (link !== undefined) this.links.add(link);
      else if (!piece.startsWith(esc)) this.put(piece);
      else this.control(number, letter ?? "");
    }
  }

  /** The lines with something on them, and those between them. */
  lines(): string[] {
    const lines = this.page.map((line) => line.trimEnd());
    while (lines.at(-1) === "") lines.pop();
    return lines.at(0) === "" ? lines.slice(lines.findIndex((line) => line !== "")) : lines;
  }

  /** Breaks the lines that are too wide now, as most terminals do. */
  resize(columns: number): void {
    this.columns = columns;
    const before = this.page.splice(0);
    for (const [index, line] of before.entries()) {
      if (index === this.row) this.row = this.page.length;
      let rest = line.trimEnd();
      do {
        this.page.push(rest.slice(0, columns));
        rest = rest.slice(columns);
      } while (rest !== "");
    }
  }

  private put(text: string): void {
    const line = this.page[this.row] ?? "";
    const room = this.columns - this.column;
    const shown = this.wraps || textWidth(text) <= room ? text : cutToWidth(text, room);
    if (textWidth(shown) > room)
      throw new Error(`a line is wider than ${this.columns} columns: ${line}${text}`);
    this.page[this.row] =
      line.padEnd(this.column).slice(0, this.column) + shown + line.slice(this.column + shown.length);
    this.column += shown.length;
  }

  private down(): void {
    this.row++;
    this.column = 0;
    this.page[this.row] ??= "";
  }

  private control(number: string, letter: string): void {
    const times = Number(number === "" ? 1 : number);
    if (letter === "A") this.row = Math.max(0, this.row - times, this.page.length - this.rows);
    else if (letter === "B") this.row = Math.min(this.page.length - 1, this.row + times);
    else if (letter === "G") this.column = 0;
    else if (letter === "K" && number === "2") this.page[this.row] = "";
    else if (letter === "K") this.page[this.row] = (this.page[this.row] ?? "").slice(0, this.column);
    else if (letter === "J" && number === "") {
      this.page.splice(this.row + 1);
      this.page[this.row] = (this.page[this.row] ?? "").slice(0, this.column);
    } else if (number === "?7") this.wraps = letter === "h";
    else if (letter !== "m" && number !== "?2026")
      throw new Error(`a sequence of no use: ${number}${letter}`);
  }
}
