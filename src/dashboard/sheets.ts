import { existsSync, readdirSync, type Stats, statSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { basename, dirname, extname, join, relative, resolve, sep } from "node:path";
import { stringify } from "csv-stringify/sync";
import { mediaFields } from "../api/inputs.js";
import { safeName } from "../archive/disk/names.js";
import type { CellChange, DroppedSheet, SheetEntry, SheetRows } from "../documents/page.js";
import { formatsByExtension } from "../manifest/formats/extensions.js";
import { isLocalPath } from "../manifest/local-inputs.js";
import { openSource } from "../manifest/read.js";
import { columnName } from "../manifest/shape/columns.js";
import { noForm, type SheetForm } from "../manifest/shape/source.js";
import { promptFile } from "../manifest/templates/prompt-file.js";
import { leavesReally } from "../text/inside.js";
import { fromSpreadsheetText, spreadsheetText } from "../text/spreadsheet-cell.js";
import { writeWhole } from "../whole-file.js";
import { Refused } from "./refused.js";

/**
 * Sheets that are dropped on the page are kept here, below the workspace. Further copies of one name are in numbered
 * folders, because another name would be another job, which pays for everything again.
 */
const ownFolder = "sheets";
const ownFile = /^sheets\/(?:\d+\/)?[^/]+$/;
/** Where else sheets are looked for. */
const otherFolders = [".", "jobs"];
const listedMax = 50;
/** Names of what Excel keeps beside a workbook while it is open, and of hidden files. */
const besideSheets = /^(~\$|\.)/;

/** A sheet as it was read. */
interface ReadSheet {
  /** Of the file, to notice that it has changed. */
  version: string;
  columns: string[];
  rows: { number: number; cells: Readonly<Record<string, string>> }[];
  /** All that the file has, as it is written there: titles, comments and blank rows too. */
  records: (readonly string[])[];
  form: SheetForm;
  /** The records say everything that the file says, and each column has a name of its own. */
  isWhole: boolean;
  sheets: readonly string[];
  trouble: string | null;
}

/** A file, and the sheet of it if it is a workbook: the first by default. */
interface Asked {
  file: string;
  sheet?: string | undefined;
}

/** The sheets of a workspace for a page that shows their rows and changes their cells. Files are named relative to it. */
export class Sheets {
  /** The one that was read last: a page asks for its rows piece by piece. */
  private last: { asked: Asked; read: ReadSheet } | null = null;
  private writing: Promise<unknown> = Promise.resolve();

  constructor(private readonly root: string) {}

  /** Sheets that can be started, the newest first; `used` are those of earlier runs. */
  list(used: readonly string[]): SheetEntry[] {
    const files = new Set([
      ...[ownFolder, ...this.numbered(), ...otherFolders].flatMap((folder) => this.filesIn(folder)),
      ...used.map((path) => relative(this.root, path)).filter((file) => isBelow(file)),
    ]);
    const entries = [...files].flatMap((file): SheetEntry[] => {
      const path = join(this.root, file);
      const stat = leavesReally(this.root, path) ? null : statOf(path);
      return stat?.isFile() ? [{ file, usedAt: stat.mtimeMs }] : [];
    });
    return entries.toSorted((a, b) => b.usedAt - a.usedAt).slice(0, listedMax);
  }

  private numbered(): string[] {
    const names = statOf(join(this.root, ownFolder))?.isDirectory()
      ? readdirSync(join(this.root, ownFolder))
      : [];
    return names.filter((name) => /^\d+$/.test(name)).map((name) => `${ownFolder}/${name}`);
  }

  private filesIn(folder: string): string[] {
    try {
      const names = readdirSync(join(this.root, folder));
      const isText = (name: string) => extname(name).toLowerCase() === ".txt";
      const isOwnFolder = ownFile.test(`${folder}/x`);
      const shown = names.filter(
        (name) => isSheet(name) && (isOwnFolder || !isText(name)) && !besideSheets.test(name),
      );
      return shown.map((name) => (folder === "." ? name : `${folder}/${name}`));
    } catch {
      return [];
    }
  }

  /** Keeps a dropped file. Rejects with Refused if another one of its name is there, unless it may be replaced. */
  async drop(name: string, bytes: Uint8Array, mayReplace: boolean): Promise<DroppedSheet> {
    const plain = name.split(/[/\\]/).at(-1) ?? "";
    if (!isSheet(plain))
      throw new Refused(
        `expected a sheet (${sheetExtensions.join(", ")}), got ${JSON.stringify(plain.slice(0, 100))}`,
      );
    const extension = extname(plain);
    const file = `${ownFolder}/${basename(safeName(plain.slice(0, -extension.length)))}${extension.toLowerCase()}`;
    return this.afterOthers(async () => {
      const path = this.pathOf(file);
      if (!mayReplace && existsSync(path) && !(await readFile(path)).equals(bytes))
        throw new Refused(`${file} exists and is different`, "exists");
      await this.write(file, bytes);
      return this.open({ file });
    });
  }

  async open(asked: Asked): Promise<DroppedSheet> {
    const { file } = asked;
    const { version, columns, rows, sheets, trouble, isWhole } = await this.read(asked);
    const format = formatsByExtension[extname(file).toLowerCase()];
    const isSheet = format === "csv" || format === "workbook";
    // Files are named from the folder of the sheet, where a copy is not.
    const editable = isSheet && isWhole && (this.isOwn(file) || !rows.some(namesFile));
    return { file, version, editable, columns, rows: rows.length, sheets: [...sheets], trouble };
  }

  async rows(asked: Asked, from: number, limit: number): Promise<SheetRows> {
    const { columns, rows } = await this.read(asked);
    return {
      rows: rows.slice(from, from + limit).map(({ number, cells }) => ({
        number,
        // A column may be called `constructor`, and rows of a job have no cells for some columns.
        cells: columns.map((column) => (Object.hasOwn(cells, column) ? (cells[column] ?? "") : "")),
      })),
    };
  }

  /**
   * Changes cells, and nothing else: rows with problems, comments and blank rows stay where they are. A workbook becomes a
   * CSV of its name in the folder of dropped sheets, because writing it would lose its formats; a sheet from elsewhere is
   * copied there, so that nothing of the user's own is changed. Rejects with Refused if the sheet is not of this version.
   */
  change(asked: Asked, changes: readonly CellChange[], version: string): Promise<DroppedSheet> {
    return this.afterOthers(async () => {
      const { file } = asked;
      const opened = await this.open(asked);
      if (!opened.editable) throw new Refused(`${file} is changed in an editor, not here`);
      if (opened.version !== version)
        throw new Refused(`${file} has changed since this page read it, so your change was not saved`);
      const { records, form } = await this.read(asked);
      const changed = changedRecords(records, form.headerRow, changes);
      const own = extname(file).toLowerCase();
      const ending = formatsByExtension[own] === "csv" ? own : form.delimiter === "\t" ? ".tsv" : ".csv";
      const to = this.copyOf(file, ending);
      await this.write(to, Buffer.from(csvText(changed, form.delimiter)));
      return this.open({ file: to });
    });
  }

  /** One after the other: each change is made to what the one before has written. */
  private afterOthers<Result>(write: () => Promise<Result>): Promise<Result> {
    const done = this.writing.then(write);
    this.writing = done.catch(() => undefined);
    return done;
  }

  /** The absolute path of a sheet of the workspace. Throws Refused. */
  pathOf(file: string): string {
    const path = resolve(this.root, file);
    const isOwn = isBelow(relative(this.root, path)) && isSheet(path) && !path.includes("\0");
    // A link may lead out of the workspace, to be read or written over.
    if (isOwn && !leavesReally(this.root, path)) return path;
    throw new Refused(`expected a sheet of the workspace, got ${JSON.stringify(file.slice(0, 200))}`);
  }

  private isOwn(file: string): boolean {
    return ownFile.test(relative(this.root, this.pathOf(file)));
  }

  /** Where the changed sheet goes: never over another one, which may have changes too. */
  private copyOf(file: string, extension: string): string {
    if (this.isOwn(file) && extname(file) === extension) return file;
    const name = basename(file, extname(file));
    for (let number = 1; ; number++) {
      const copy = `${ownFolder}/${number === 1 ? "" : `${number}/`}${name}${extension}`;
      if (!existsSync(this.pathOf(copy))) return copy;
    }
  }

  private async write(file: string, bytes: Uint8Array): Promise<void> {
    const path = this.pathOf(file);
    await mkdir(dirname(path), { recursive: true });
    await writeWhole(path, bytes);
  }

  private async read({ file, sheet }: Asked): Promise<ReadSheet> {
    const path = this.pathOf(file);
    const stat = statOf(path);
    if (stat === null) throw new Refused(`${file} is gone`, "missing");
    const version = `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
    const { asked, read: before } = this.last ?? {};
    if (asked?.file === file && asked.sheet === sheet && before?.version === version) return before;
    const records: ReadSheet["records"] = [];
    const each = (record: readonly string[]) => void records.push(record);
    const source = await openSource(path, { each, ...(sheet === undefined ? {} : { sheet }) });
    const { columns, problems, job, form = noForm, sheets = [], batches } = source;
    const rows: ReadSheet["rows"] = [];
    const troubles = [...problems];
    let hasLost = false;
    for await (const batch of batches()) {
      rows.push(...batch.rows);
      hasLost ||= batch.rows.some(({ lost }) => lost !== undefined);
      troubles.push(...batch.problems.filter(({ place }) => place.row === null));
    }
    const [first] = troubles;
    const trouble =
      columns.length > 0 || first === undefined
        ? null
        : `${first.message}: expected ${first.expected}, got ${first.got}`;
    const isWhole = job === undefined && troubles.length === 0 && columns.length > 0 && !hasLost;
    const read = { version, columns, rows, records, form, isWhole, sheets, trouble };
    this.last = { asked: { file, sheet }, read };
    return read;
  }
}

function namesFile({ cells }: ReadSheet["rows"][number]): boolean {
  if (promptFile(cells["prompt"] ?? "") !== null) return true;
  return mediaFields.some((field) => cells[field] !== undefined && isLocalPath(cells[field]));
}

/** The records with the changes; a column that is missing is added after the last one. Throws Refused. */
function changedRecords(
  records: ReadSheet["records"],
  headerRow: number,
  changes: readonly CellChange[],
): string[][] {
  const changed = records.map((record) => [...record]);
  const header = changed[headerRow - 1] ?? [];
  const names = header.map(columnName);
  for (const { row, column, value } of changes) {
    const record = row > headerRow ? changed[row - 1] : undefined;
    if (record === undefined) throw new Refused(`the sheet has no row ${row}`);
    let index = names.indexOf(column);
    if (index < 0) {
      index = names.push(column) - 1;
      // A cell that stands beyond the header stays there.
      for (const each of changed)
        if (each.length >= index) each.splice(index, 0, each === header ? column : "");
    }
    while (record.length < index) record.push("");
    record[index] = value;
  }
  return changed;
}

/** Cells with a character that could be taken for the delimiter are quoted, so that it is found again. */
function csvText(records: readonly (readonly string[])[], delimiter = ","): string {
  const safe = records.map((record) => record.map((cell) => spreadsheetText(fromSpreadsheetText(cell))));
  return stringify(safe, { delimiter, bom: true, quoted_match: /[,;\p{Cc}\p{Cf}]/u });
}

/** Null if there is nothing, also where a file has the place of a folder in the path. */
function statOf(path: string): Stats | null {
  return existsSync(path) ? statSync(path) : null;
}

/** What a person may drop or name. A text may be a sheet of prompts, but a folder has other texts too. */
const sheetExtensions = Object.keys(formatsByExtension);

function isSheet(path: string): boolean {
  return sheetExtensions.includes(extname(path).toLowerCase());
}

/** A relative path that stays below its start, and not in a hidden folder. */
function isBelow(way: string): boolean {
  return way !== "" && !way.split(sep).some((name) => name.startsWith("."));
}
