import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { media } from "../archive/media.js";
import type { MadeTask } from "../e2e/sandbox.js";
import { cheapModel } from "../e2e/sheet.js";
import type { Deed } from "./story.js";

/**
 * A row of a sheet: its id, and which of a few pictures it wants, made after a photo or not, or a drawing of the output of
 * which other row.
 */
export interface Row {
  id: string;
  picture: number;
  /** In a file beside the sheet. */
  photo?: number;
  of?: Row;
  /** In which of the sizes that its sheet asks for. */
  size?: Size;
}

const sizes = ["small", "large"] as const;
type Size = (typeof sizes)[number];

/** The model that makes pictures of others. */
export const editor = "atelier-edit";

const pictures = 6;
/** One that the service always fails to make. */
const failing = 5;
const rowsMax = 6;
export const itemsMax = rowsMax * sizes.length;
const names = ["set", "other", "cups", "mugs"];
const photo = await media.png();
const photos = 2;

export function promptOf({ size, ...row }: Row): string {
  return size === undefined ? plainPromptOf(row) : `${plainPromptOf(row)}, ${size}`;
}

function plainPromptOf({ picture, photo, of }: Row): string {
  if (of !== undefined) return `drawing ${picture} of ${plainPromptOf(of)}`;
  const after = photo === undefined ? "" : ` after photo ${photo}`;
  return `picture ${picture}${after}${picture === failing ? ` ${failure}` : ""}`;
}

/** The prompt that was sent for a task, whatever the service has made of it. */
export function askedOf({ prompt }: MadeTask): string {
  return prompt.startsWith(failure) ? prompt.slice(failure.length + 1) : prompt;
}

/** The service fails whenever it reads this, and charges nothing. */
export const failure = "[[provider-error]]";

export function isFree(prompt: string): boolean {
  return prompt.includes(failure);
}

export function isCharged({ prompt, outcome }: MadeTask): boolean {
  return !isFree(prompt) && outcome !== "failed";
}

/** Whether the service makes two files of it. */
export function isTwofold({ prompt }: MadeTask): boolean {
  return /^picture [34]/.test(prompt);
}

/** The sheets of a folder, as a person edits them. */
export class Sheets {
  private readonly sheets = new Map<string, Row[]>();
  /** Sheets whose outputs a person has to approve. Only a job file can ask for that. */
  private readonly approved = new Set<string>();
  /** Sheets that want each picture in two sizes: job files too. */
  private readonly sized = new Set<string>();
  /** Sheets that name their files, by what is on them, so that some want the same name. */
  private readonly named = new Set<string>();
  /** Whether the photos are in a folder of their own. */
  private areFiled = false;
  private areAway = false;

  constructor(
    private readonly folder: () => string,
    private readonly newId: () => string,
  ) {
    this.sheets.set("set", [
      { id: this.newId(), picture: 0 },
      { id: this.newId(), picture: 1 },
      { id: this.newId(), picture: 1, photo: 0 },
    ]);
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
    return `${name}.${this.approved.has(name) || this.sized.has(name) ? "json" : "csv"}`;
  }

  /** What it asks for. */
  rows(name: string): Row[] {
    const rows = this.sheets.get(name) ?? [];
    if (!this.sized.has(name)) return rows;
    return rows.flatMap((row) => sizes.map((size) => ({ ...row, id: `${row.id}-${size}`, size })));
  }

  idAt(at: number): string {
    const ids = this.names().flatMap((name) => this.rows(name).map(({ id }) => id));
    return ids[at % ids.length] ?? "r0";
  }

  edit({ sheet, how, row, other }: Deed & { do: "edit" }): void {
    const name = this.nameAt(sheet);
    const rows = this.sheets.get(name) ?? [];
    const one = rows[row % rows.length] as Row;
    const two = rows[other % rows.length] as Row;
    const mayGrow = rows.length < rowsMax;
    if (how === "build on" && mayGrow)
      rows.push({ id: this.newId(), picture: other % 2, of: parentIn(rows, row) });
    else if (how === "add" && mayGrow) rows.push({ id: this.newId(), picture: other % pictures });
    else if (how === "add with a photo" && mayGrow)
      rows.push({ id: this.newId(), picture: other % pictures, photo: row % photos });
    else if (how === "repeat" && mayGrow) rows.push({ ...one, id: this.newId() });
    else if (how === "remove" && rows.length > 1) rows.splice(row % rows.length, 1);
    else if (how === "reword") one.picture = other % pictures;
    else if (how === "rename id") one.id = this.newId();
    else if (how === "swap ids") [one.id, two.id] = [two.id, one.id];
    else if (how === "reverse") rows.reverse();
    else if (how === "move photos") this.movePhotos();
    else if (how === "tidy photos away, or put them back") this.tidyAway(!this.areAway);
    else if (how === "ask for approval, or not") this.turn(name, this.approved);
    else if (how === "ask for two sizes, or one") this.turn(name, this.sized);
    else if (how === "name files, or not") this.turn(name, this.named);
    this.write();
  }

  refile({ sheet, how, name }: Deed & { do: "file" }): void {
    const from = this.nameAt(sheet);
    const to = names[name % names.length] as string;
    if (how === "delete" && this.sheets.size > 1) this.remove(from);
    else if (how !== "delete" && to !== from) {
      this.copy({ of: this, name: from }, to);
      if (how === "rename") this.remove(from);
    }
    this.write();
  }

  /** A sheet comes from another folder, or goes there. */
  take(from: Sheets, at: number, how: "copy" | "move"): void {
    const name = from.nameAt(at);
    this.copy({ of: from, name }, name);
    if (how === "move" && from.sheets.size > 1) from.remove(name);
    this.write();
  }

  private copy({ of, name }: { of: Sheets; name: string }, to: string): void {
    this.remove(to);
    this.sheets.set(to, structuredClone(of.sheets.get(name) ?? []));
    for (const which of ["approved", "sized", "named"] as const) if (of[which].has(name)) this[which].add(to);
  }

  private remove(name: string): void {
    rmSync(this.path(name), { force: true });
    this.sheets.delete(name);
    for (const which of [this.approved, this.sized, this.named]) which.delete(name);
  }

  /** A sheet that changes its format is another file. */
  private turn(name: string, which: Set<string>): void {
    rmSync(this.path(name));
    if (!which.delete(name)) which.add(name);
  }

  private movePhotos(): void {
    this.removePhotos();
    this.areFiled = !this.areFiled;
  }

  /** What was made from them needs them no longer. */
  private tidyAway(areAway: boolean): void {
    this.removePhotos();
    this.areAway = areAway;
  }

  /** All photos are there again. */
  putBack(): void {
    this.tidyAway(false);
    this.write();
  }

  private removePhotos(): void {
    for (let each = 0; each < photos; each++) rmSync(join(this.folder(), this.photo(each)), { force: true });
  }

  /** Its file, as the sheets name it. */
  private photo(each: number): string {
    return `${this.areFiled ? "photos/" : ""}photo ${each}.png`;
  }

  private write(): void {
    for (let each = 0; each < (this.areAway ? 0 : photos); each++) {
      const path = join(this.folder(), this.photo(each));
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, Buffer.concat([photo, Buffer.from([each])]));
    }
    for (const [name, rows] of this.sheets) {
      const isSized = this.sized.has(name);
      const [ofSize, inSize] = isSized ? ["-{{ size }}", ", {{ size }}"] : ["", ""];
      const lines = rows.map((row) => ({
        id: row.id,
        model: row.of === undefined && row.photo === undefined ? cheapModel : editor,
        prompt: `${promptOf(row)}${inSize}`,
        image_url: row.of === undefined ? this.photoOf(row) : `@${row.of.id}${ofSize}`,
        priority: `${row.picture % 2}`,
        output: this.named.has(name) ? `${row.of === undefined ? "" : "drawn/"}Of ${row.picture}` : "",
      }));
      const job = {
        ...(this.approved.has(name) ? { approve: true } : {}),
        ...(isSized ? { matrix: { size: sizes } } : {}),
        rows: lines,
      };
      const text = this.manifest(name).endsWith(".json")
        ? JSON.stringify(job)
        : [columns, ...lines.map((line) => Object.values(line))].map((cells) => cells.join(",")).join("\n");
      writeFileSync(this.path(name), text);
    }
  }

  private photoOf({ photo }: Row): string {
    return photo === undefined ? "" : this.photo(photo);
  }

  private path(name: string): string {
    return join(this.folder(), this.manifest(name));
  }
}

const columns = ["id", "model", "prompt", "image_url", "priority", "output"];

/** The row whose output another one uses: no chain is longer than two. */
function parentIn(rows: readonly Row[], at: number): Row {
  const row = rows[at % rows.length] as Row;
  return row.of ?? row;
}
