import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MadeTask } from "../e2e/sandbox.js";
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
export const rowsMax = 6;
const names = ["set", "other", "cups", "mugs"];

export function promptOf({ picture, of }: Row): string {
  if (of !== undefined) return `drawing ${picture} of ${promptOf(of)}`;
  return `picture ${picture}${picture === failing ? " [[provider-error]]" : ""}`;
}

export function isFree(prompt: string): boolean {
  return prompt.startsWith(`picture ${failing} `) || prompt.includes(`of picture ${failing} `);
}

export function isCharged({ prompt, outcome }: MadeTask): boolean {
  return !isFree(prompt) && outcome !== "failed";
}

/** The sheets of a folder, as a person edits them. */
export class Sheets {
  private readonly sheets = new Map<string, Row[]>();
  /** Sheets whose outputs a person has to approve. Only a job file can ask for that. */
  private readonly approved = new Set<string>();

  constructor(
    private readonly folder: () => string,
    private readonly newId: () => string,
  ) {
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

  /** Its file. */
  manifest(name: string): string {
    return `${name}.${this.approved.has(name) ? "json" : "csv"}`;
  }

  rows(name: string): Row[] {
    return this.sheets.get(name) ?? [];
  }

  idAt(at: number): string {
    const ids = [...this.sheets.values()].flatMap((rows) => rows.map(({ id }) => id));
    return ids[at % ids.length] ?? "r0";
  }

  edit({ sheet, how, row, other }: Deed & { do: "edit" }): void {
    const name = this.nameAt(sheet);
    const rows = this.rows(name);
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
    else if (how === "ask for approval, or not") this.changeFormat(name);
    this.write();
  }

  refile({ sheet, how, name }: Deed & { do: "file" }): void {
    const from = this.nameAt(sheet);
    const to = names[name % names.length] as string;
    const rows = this.rows(from);
    if (how === "delete" && this.sheets.size > 1) this.remove(from);
    else if (how !== "delete" && to !== from) {
      const isApproved = this.approved.has(from);
      this.remove(how === "rename" ? from : to);
      this.sheets.set(to, how === "rename" ? rows : structuredClone(rows));
      if (isApproved) this.approved.add(to);
    }
    this.write();
  }

  /** A sheet comes from another folder, or goes there. */
  take(from: Sheets, at: number, how: "copy" | "move"): void {
    const name = from.nameAt(at);
    const isApproved = from.approved.has(name);
    this.remove(name);
    this.sheets.set(name, structuredClone(from.rows(name)));
    if (isApproved) this.approved.add(name);
    if (how === "move" && from.sheets.size > 1) from.remove(name);
    this.write();
  }

  private remove(name: string): void {
    rmSync(this.path(name), { force: true });
    this.sheets.delete(name);
    this.approved.delete(name);
  }

  private changeFormat(name: string): void {
    rmSync(this.path(name));
    if (!this.approved.delete(name)) this.approved.add(name);
  }

  private write(): void {
    for (const [name, rows] of this.sheets) {
      const lines = rows.map((row) => ({
        id: row.id,
        model: row.of === undefined ? cheapModel : "atelier-edit",
        prompt: promptOf(row),
        image_url: row.of === undefined ? "" : `@${row.of.id}`,
      }));
      const text = this.approved.has(name)
        ? JSON.stringify({ approve: true, rows: lines })
        : ["id,model,prompt,image_url", ...lines.map((line) => Object.values(line).join(","))].join("\n");
      writeFileSync(this.path(name), text);
    }
  }

  private path(name: string): string {
    return join(this.folder(), this.manifest(name));
  }
}

/** The row whose output another one uses: no chain is longer than two. */
function parentIn(rows: readonly Row[], at: number): Row {
  const row = rows[at % rows.length] as Row;
  return row.of ?? row;
}
