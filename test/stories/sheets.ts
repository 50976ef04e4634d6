import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Place } from "../e2e/command.js";
import type { MadeTask } from "../e2e/sandbox.js";
import { cheapModel } from "../e2e/sheet.js";
import type { Deed } from "./story.js";

/** A row of a sheet: its id, and which of a few pictures it wants. */
export interface Row {
  id: string;
  picture: number;
}

export const pictures = 6;
/** The service fails whenever it makes this one, and charges nothing. */
const failing = 5;
const rowsMax = 6;
const names = ["set", "other", "cups", "mugs"];

export function promptOf(picture: number): string {
  return `picture ${picture}${picture === failing ? " [[provider-error]]" : ""}`;
}

export function isFree({ prompt }: Pick<MadeTask, "prompt">): boolean {
  return prompt === promptOf(failing);
}

export function wantsFree(rows: readonly Row[]): boolean {
  return rows.some(({ picture }) => picture === failing);
}

/** The sheets of a folder, as a person edits them. */
export class Sheets {
  private readonly sheets = new Map<string, Row[]>();
  private nextId = 0;

  constructor(private readonly place: Place) {
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
    if (how === "add" && mayGrow) rows.push({ id: this.newId(), picture: other % pictures });
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
      const lines = rows.map(({ id, picture }) => `${id},${cheapModel},${promptOf(picture)}`);
      this.place.write(`${name}.csv`, ["id,model,prompt", ...lines, ""].join("\n"));
    }
  }

  private file(name: string): string {
    return join(this.place.folder, `${name}.csv`);
  }

  private newId(): string {
    return `r${this.nextId++}`;
  }
}
