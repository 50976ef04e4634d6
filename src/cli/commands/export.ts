import { existsSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { stripVTControlCharacters } from "node:util";
import { EarlyExit, type ExitName } from "../../core/exit.js";
import { inCredits, noCredits } from "../../core/money.js";

import type { Machine } from "../../machine.js";
import { manifestFolder } from "../../manifest/folder.js";
import { filledColumns, foldedName, paramColumn, paramKey } from "../../manifest/shape/columns.js";
import type { SheetForm } from "../../manifest/shape/source.js";
import { type ExportFlags, type SheetFormat, sheetFormats } from "../../options/archive.js";
import { selectionOf } from "../../options/manifest.js";
import { galleryPage } from "../../report/gallery/document.js";
import { encodeSheet, SheetTooLarge } from "../../report/sheet-formats.js";
import { count } from "../../text/amounts.js";
import { nearest } from "../../text/nearest.js";
import { type Export, exportRun } from "../../upkeep/archive/export.js";
import {
  type ChosenColumn,
  chosenSheet,
  columnNamed,
  columnNames,
  type FilledSheet,
  filledSheet,
  mappedLines,
  measuredColumns,
  ownNames,
} from "../../upkeep/archive/filled-sheet.js";
import { pack } from "../../upkeep/archive/pack.js";
import { sheetOfRows } from "../../upkeep/archive/sheet-of-rows.js";
import { writeWhole } from "../../whole-file.js";
import { sayLostPicks, sayMissing, sayMixed } from "../output/missing-rows.js";
import { namesIn } from "../output/review-file.js";
import { namingFile } from "../settings/file-trouble.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function exportSheet({
  flags,
  args,
  machine,
}: Call<ExportFlags, { run?: number }>): Promise<ExitName | undefined> {
  const format = formatOf(flags);
  if (flags.failed && format !== "csv" && format !== "xlsx")
    throw new EarlyExit(
      "usage",
      `--failed: only csv and xlsx can name the job that the rows belong to, got ${format}. Nothing was written.`,
    );
  const reviewed = flags.from === undefined ? null : await namesIn(flags.from, ["pick", "approve"], machine);
  const options = {
    workspace: workspaceOf(flags, machine),
    run: args.run,
    selection: selectionOf(flags),
    failed: flags.failed ?? false,
    picked: flags.picked ?? false,
    final: flags.final ?? false,
    reviewed,
    measured: (flags.columns ?? []).some(isMeasured),
    cwd: machine.cwd,
    clock: machine.clock,
  };
  return exportRun(options, (made) => write(made, format, flags, machine));
}

async function write(
  made: Export,
  format: SheetFormat,
  flags: ExportFlags,
  machine: Machine,
): Promise<ExitName | undefined> {
  sayLostPicks(made.lostPicks, machine);
  if (flags.failed) checkLocalInputs(made, flags, machine);
  const chosen = await chosenColumns(made, flags);
  const sheetOf = (lines: Export["lines"]) => made.failed ?? sheetFrom(made, lines, chosen, flags);
  const sheet = await sheetOf(made.lines);
  const targetOf = async (file: string | undefined) =>
    file === undefined ? null : { file, path: await checkTarget(file, made, flags, machine) };
  const zip = await targetOf(flags.zip);
  const to = await targetOf(flags.to);
  if (zip !== null) {
    const packed = await sheetOf(made.packedLines);
    await namingFile(zip.path, () =>
      writeZip(made, { sheet: packed, format, columns: ofSheet(made, chosen) }, zip, flags, machine),
    );
  }
  if (to !== null) await namingFile(to.path, () => writeSheet(made, { sheet, format }, to, flags, machine));
  else if (zip === null) await toStdout(made, { sheet, format }, machine);
  const isSheet = to !== null || (zip !== null && !flags.filesOnly);
  if (isSheet && listsCredits(made, chosen, flags)) await sayUnlisted(made, flags, machine);
  if (!flags.final) return undefined;
  sayMixed(await made.mixed(), machine);
  return sayMissing(await made.missing(), machine);
}

function listsCredits(
  { columns, failed }: Export,
  chosen: readonly ChosenColumn[] | null,
  { perRow }: ExportFlags,
): boolean {
  if (failed !== null) return false;
  const credits = ownNames(columns)[filledColumns.indexOf("credits")];
  return chosen === null ? !perRow : chosen.some(({ column }) => column === credits);
}

/** The credits of a sheet are less than what was charged once files were replaced. */
async function sayUnlisted(made: Export, flags: ExportFlags, machine: Machine): Promise<void> {
  const unlisted = flags.quiet ? null : await made.unlisted();
  if (unlisted !== null && unlisted > noCredits)
    report(flags, machine, `${inCredits(unlisted)} for replaced, removed or rejected files are not listed`);
}

/** The format of the flags; `--json` means JSON, as for every command, and contradicts the name of another format. */
function formatOf({ format, json, to }: ExportFlags): SheetFormat {
  if (format !== undefined) return format;
  const extension = extname(to ?? "")
    .slice(1)
    .toLowerCase();
  const known = sheetFormats.find((name) => name === extension);
  if (json && known !== undefined && known !== "json")
    throw new EarlyExit(
      "usage",
      `--json contradicts the name of --to ${to}. Leave out --json, or end the name in .json. Nothing was written.`,
    );
  if (json) return "json";
  if (to === undefined || extension === "") return "csv";
  if (known) return known;
  throw new EarlyExit(
    "usage",
    `--to ${to}: expected a name that ends in .csv, .xlsx, .json or .jsonl, got .${extension}. Rename it, or add --format.`,
  );
}

function isMeasured(column: string): boolean {
  const [name = ""] = column.split("=");
  return measuredColumns.some((each) => foldedName(name).replace(/^bulkgen_/, "") === each);
}

/** The columns that --columns names; null without it. Throws EarlyExit for one that the export cannot have. */
async function chosenColumns(
  { columns, form, params }: Export,
  { columns: wanted }: ExportFlags,
): Promise<ChosenColumn[] | null> {
  if (wanted === undefined) return null;
  const chosen = wanted.map((name) => chosenColumn(name, columns, form));
  const asked = chosen.flatMap(({ column }) => (columns.includes(column) ? [] : (paramKey(column) ?? [])));
  const known = asked.length === 0 ? null : await params();
  for (const key of known === null ? [] : asked)
    if (!known?.has(key)) throw noColumn(paramColumn(key), [...(known ?? [])].map(paramColumn));
  return chosen;
}

/** The sheet of these lines, with the columns and in the shape that the flags ask for. */
async function sheetFrom(
  { columns, form }: Export,
  lines: Export["lines"],
  wanted: readonly ChosenColumn[] | null,
  { perRow }: ExportFlags,
): Promise<FilledSheet> {
  if (wanted === null && !perRow) return filledSheet(columns, lines);
  // A row with several files has room for their names; everything else about them is asked for.
  const names = [...columns.filter((column) => !ownNames(columns).includes(column)), "file"];
  const chosen = wanted ?? names.map((name) => chosenColumn(name, columns, form));
  return perRow ? sheetOfRows(chosen, lines) : chosenSheet(chosen, lines);
}

/** `column`, or `column=name`. A column of the sheet may have such a name itself. */
function chosenColumn(written: string, columns: Export["columns"], { headers }: SheetForm): ChosenColumn {
  const whole = columnNamed(written, columns, headers);
  const at = written.lastIndexOf("=");
  if (whole && (at < 0 || columns.includes(whole.column))) return { name: whole.column, written, ...whole };
  const [wanted, name] = at < 0 ? [written] : [written.slice(0, at).trim(), written.slice(at + 1).trim()];
  if (wanted === "" || name === "")
    throw new EarlyExit(
      "usage",
      `--columns: expected a column, or COLUMN=NAME to call it by another name, got "${written}". Nothing was written.`,
    );
  const found = columnNamed(wanted, columns, headers);
  if (found && name !== undefined) return { ...found, name, written };
  throw noColumn(wanted, columnNames(columns));
}

/** `all` are the columns that the person may have meant. */
function noColumn(wanted: string, all: readonly string[]): EarlyExit {
  const near = nearest(wanted, all);
  const hint =
    near === undefined
      ? all.length === 0
        ? "No item has any params."
        : `It has: ${all.join(", ")}.`
      : `Did you mean ${near}?`;
  return new EarlyExit(
    "usage",
    `--columns: the sheet has no column "${wanted}". ${hint} Nothing was written.`,
  );
}

/** The columns of the sheet among these, and what they are called. */
function ofSheet(
  { columns }: Export,
  chosen: readonly ChosenColumn[] | null,
): ReadonlyMap<string, string> | null {
  const own = chosen?.filter(({ column }) => columns.includes(column));
  return own === undefined ? null : new Map(own.map(({ column, name }) => [column, name]));
}

interface Formatted {
  sheet: FilledSheet;
  format: SheetFormat;
}

/** The sheet in its format, piece by piece, for a file of this name. */
async function* piecesOf(
  { form }: Export,
  { sheet, format }: Formatted,
  file: string,
): AsyncGenerator<string | Uint8Array> {
  try {
    yield* encodeSheet(sheet, format, form);
  } catch (error) {
    if (error instanceof SheetTooLarge)
      throw new EarlyExit("usage", `${error.message}. ${file} was not written.`);
    throw error;
  }
}

async function toStdout(made: Export, formatted: Formatted, { stdout }: Machine): Promise<void> {
  const { format } = formatted;
  if (format === "xlsx" && stdout.isTTY) {
    throw new EarlyExit("usage", "a workbook cannot be shown on a terminal. Add --to FILE.xlsx.");
  }
  const pieces = piecesOf(made, formatted, "The sheet");
  const isShown = stdout.isTTY === true && format === "csv";
  const shown = isShown ? mappedLines(pieces, (piece) => sheetOnTerminal(String(piece))) : pieces;
  // The machine reports its own standard output, and a reader that closes the pipe early wants no more.
  let ofStdout: unknown;
  stdout.once("error", (error) => {
    ofStdout = error;
  });
  await pipeline(shown, stdout, { end: false }).catch((error: unknown) => {
    if (error !== ofStdout) throw error;
  });
}

/** Cells may have sequences that change the terminal. The joiners that some scripts and emoji need stay. */
function sheetOnTerminal(text: string): string {
  return stripVTControlCharacters(text).replace(/(?![\t\r\n\u200c\u200d])[\p{Cc}\p{Cf}]/gu, "");
}

/** A file to write, as it was named and with its absolute path. */
interface Target {
  file: string;
  path: string;
}

/** Existing files are replaced only with --force, and those that bulkgen needs never. Returns the absolute path. */
async function checkTarget(
  file: string,
  made: Export,
  { force }: ExportFlags,
  { cwd }: Machine,
): Promise<string> {
  if (file === "-")
    throw new EarlyExit(
      "usage",
      "-: expected a file name. Leave out --to to print the sheet on stdout; a ZIP needs a file. Nothing was written.",
    );
  const path = resolve(cwd, file);
  await made.refuseKept(file, path);
  if (existsSync(path) && !force)
    throw new EarlyExit("usage", `${file} exists. Choose another file, or add --force. Nothing was written.`);
  return path;
}

async function writeSheet(
  made: Export,
  { sheet, format }: Formatted,
  { file, path }: Target,
  flags: ExportFlags,
  machine: Machine,
): Promise<void> {
  let rows = 0;
  const counted = mappedLines(sheet.lines, (line) => {
    rows++;
    return line;
  });
  const pieces = piecesOf(made, { sheet: { ...sheet, lines: counted }, format }, file);
  const signal = machine.interrupt();
  try {
    await writeWhole(path, pieces, signal);
  } catch (error) {
    if (signal.aborted) throw new EarlyExit("interrupted", `interrupted; ${file} was not written`);
    throw error;
  }
  report(flags, machine, `${file}: ${count(rows, "row")}, ${count(sheet.columns.length, "column")}`);
}

async function writeZip(
  made: Export,
  formatted: Formatted & { columns: ReadonlyMap<string, string> | null },
  { file, path }: Target,
  flags: ExportFlags,
  machine: Machine,
): Promise<void> {
  const { runs } = made;
  const { clock } = machine;
  const { files, rejected } = await made.files();
  // Nobody is to hand over an empty archive.
  if (files.length === 0 && (flags.picked || flags.final || flags.filesOnly)) {
    const which = flags.picked
      ? "no picked item has a file any more"
      : flags.final
        ? "no row has a final file yet"
        : "no item has a file";
    throw new EarlyExit("usage", `${which}, so ${file} would be empty. Nothing was written.`);
  }
  const signal = machine.interrupt();
  const name = sheetName(formatted);
  const sheet = flags.filesOnly ? null : { name, content: piecesOf(made, formatted, file) };
  const page = flags.withGallery
    ? await made.page({
        clock,
        signal,
        onProgress: () => {},
        render: galleryPage,
        columns: formatted.columns,
      })
    : null;
  await pack({ zip: path, runs, files, sheet, captions: flags.sidecars !== undefined, page, clock, signal });
  const more = [
    ...(sheet ? ["index.jsonl", sheet.name] : []),
    ...(page ? ["gallery.html"] : []),
    ...(flags.sidecars === undefined ? [] : ["a .txt beside each"]),
  ];
  report(flags, machine, [`${file}: ${count(files.length, "file")}`, ...more].join(", "));
  if (rejected > 0)
    report(
      flags,
      machine,
      `${count(rejected, "rejected file is", "rejected files are")} left out; --filter approval=rejected packs them`,
    );
}

/** Datasets of Hugging Face are read from files of this name. */
function sheetName({ sheet, format }: Formatted): string {
  return format === "jsonl" && sheet.columns.includes("file_name") ? "metadata.jsonl" : `sheet.${format}`;
}

/** Paths in a manifest start from its own folder. */
function checkLocalInputs({ localInput, run }: Export, { to }: ExportFlags, { cwd }: Machine): void {
  if (localInput === null || to === undefined) return;
  const folder = manifestFolder(resolve(cwd, run.manifest));
  if (resolve(cwd, to, "..") === folder) return;
  throw new EarlyExit(
    "usage",
    `the rows name local files (${localInput}) relative to the manifest's folder. Write the new manifest there too, in ${folder}. Nothing was written.`,
  );
}

function report({ quiet }: ExportFlags, { stderr }: Machine, line: string): void {
  if (!quiet) stderr.write(`${line}\n`);
}
