import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cheapModel } from "../e2e/sheet.js";
import type { Deed } from "./story.js";

/** A row of a sheet: its id, and which of a few pictures it wants, or a drawing of the output of which other row. */
export interface Row {
  id: string;
  picture: number;
  of?: Row;
}

const pictures = 6;
/** The service fails whenever it makes this one, and charges nothing. */
const failing = 5;
const rowsMax = 6;
const names = ["set", "other", "cups", "mugs"];

export function promptOf({ picture, of }: Row): string {
  if (of !== undefined) return `drawing ${picture} of ${promptOf(of)}`;
  return `picture ${picture}${picture === failing ? " [[provider-error]]" : ""}`;
}

export function isFree(prompt: string): boolean {
  return prompt.startsWith(`picture ${failing} `) || prompt.includes(`of picture ${failing} `);
}

/** The sheets of a folder, as a person edits them. */
export class Sheets {
  private readonly sheets = new Map<string, Row[]>();
  private nextId = 0;

  constructor(private readonly folder: () => string) {
    this.sheets.set(
      "set",
      [0, 1, 2].map((picture) => ({ id: this.newId(), picture })),
    );
    this.write();
  }

  names(): string[] {
    return [...this.sheets.keys()];
  }

  nameAt(at: number): string {
    return this.names()[at % this.sheets.size] ?? "set";
  }

  rows(name: string): Row[] {
    return this.sheets.get(name) ?? [];
  }

  idAt(at: number): string {
    const ids = [...this.sheets.values()].flatMap((rows) => rows.map(({ id }) => id));
    return ids[at % ids.length] ?? "r0";
  }

  edit({ sheet, how, row, other }: Deed & { do: "edit" }): void {
    const rows = this.rows(this.nameAt(sheet));
    const one = rows[row % rows.length] as Row;
    const two = rows[other % rows.length] as Row;
    const mayGrow = rows.length < rowsMax;
    if (how === "build on" && mayGrow)
      rows.push({ id: this.newId(), picture: other % 2, of: parentIn(rows, row) });
    else if (how === "add" && mayGrow) rows.push({ id: this.newId(), picture: other % pictures });
    else if (how === "repeat" && mayGrow) rows.push({ ...one, id: this.newId() });
    else if (how === "remove" && rows.length > 1) rows.splice(row % rows.length, 1);
    else if (how === "reword") one.picture = other % pictures;
    else if (how === "rename id") one.id = this.newId();
    else if (how === "swap ids") [one.id, two.id] = [two.id, one.id];
    else if (how === "reverse") rows.reverse();
    this.write();
  }

  refile({ sheet, how, name }: Deed & { do: "file" }): void {
    const from = this.nameAt(sheet);
    const to = names[name % names.length] as string;
    const rows = this.rows(from);
    if (how === "copy") this.sheets.set(to, structuredClone(rows));
    else if (how === "rename" && to !== from) {
      this.sheets.delete(from);
      this.sheets.set(to, rows);
      renameSync(this.file(from), this.file(to));
    } else if (how === "delete" && this.sheets.size > 1) {
      this.sheets.delete(from);
      rmSync(this.file(from));
    }
    this.write();
  }

  private write(): void {
    for (const [name, rows] of this.sheets) {
      const lines = rows.map((row) =>
        row.of === undefined
          ? `${row.id},${cheapModel},${promptOf(row)},`
          : `${row.id},atelier-edit,${promptOf(row)},@${row.of.id}`,
      );
      writeFileSync(this.file(name), ["id,model,prompt,image_url", ...lines, ""].join("\n"));
    }
  }

  private file(name: string): string {
    return join(this.folder(), `${name}.csv`);
  }

  private newId(): string {
    return `r${this.nextId++}`;
  }
}

/** The row whose output another one uses: no chain is longer than two. */
function parentIn(rows: readonly Row[], at: number): Row {
  const row = rows[at % rows.length] as Row;
  return row.of ?? row;
}
