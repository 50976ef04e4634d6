import { existsSync, realpathSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { stripVTControlCharacters } from "node:util";
import { EarlyExit } from "../../core/exit.js";
import { reviewedNames } from "../../job/orders/review.js";
import type { Machine } from "../../machine.js";
import { foldedName } from "../../manifest/shape/columns.js";
import type { ExportFlags } from "../../options/archive.js";
import { selectionOf } from "../../options/manifest.js";
import { encodeSheet, type SheetFormat, SheetTooLarge } from "../../report/sheet-formats.js";
import { count } from "../../text/amounts.js";
import { nearest } from "../../text/nearest.js";
import { terminalText } from "../../text/terminal.js";
import { type Export, exportRun } from "../../upkeep/archive/export.js";
import { type FilledSheet, mappedLines } from "../../upkeep/archive/filled-sheet.js";
import { pack } from "../../upkeep/archive/pack.js";
import { writeWhole } from "../../whole-file.js";
import { namingFile } from "../settings/file-trouble.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function exportSheet({
  flags,
  args,
  machine,
}: Call<ExportFlags, { run?: number }>): Promise<undefined> {
  const format = formatOf(flags);
  if (flags.failed && format !== "csv" && format !== "xlsx")
    throw new EarlyExit(
      "usage",
      `--failed: only csv and xlsx can name the job that the rows belong to, got ${format}. Nothing was written.`,
    );
  const reviewed =
    flags.from === undefined
      ? null
      : await reviewedNames(resolve(machine.cwd, flags.from), ["pick", "approve"]);
  const options = {
    workspace: workspaceOf(flags, machine),
    run: args.run,
    selection: selectionOf(flags),
    failed: flags.failed ?? false,
    picked: flags.picked ?? false,
    reviewed,
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
): Promise<undefined> {
  if (made.lostPicks !== null) machine.stderr.write(`bulkgen: ${terminalText(made.lostPicks)}.\n`);
  if (flags.failed) checkLocalInputs(made, flags, machine);
  if (flags.filesOnly && flags.zip === undefined)
    throw new EarlyExit("usage", "--files-only is for --zip. Add --zip FILE. Nothing was written.");
  const sheet = flags.columns ? withColumns(made, flags.columns) : made.sheet;
  const targetOf = (file: string | undefined) =>
    file === undefined ? null : { file, path: checkTarget(file, made, flags, machine) };
  const zip = targetOf(flags.zip);
  const to = targetOf(flags.to);
  if (zip !== null) await namingFile(zip.path, () => writeZip(made, { sheet, format }, zip, flags, machine));
  if (to !== null) await namingFile(to.path, () => writeSheet(made, { sheet, format }, to, flags, machine));
  else if (zip === null) await toStdout(made, { sheet, format }, machine);
}

/** The format of the flags; `--json` means JSON, as for every command, and contradicts the name of another format. */
function formatOf({ format, json, to }: ExportFlags): SheetFormat {
  if (format !== undefined) return format;
  const extension = extname(to ?? "")
    .slice(1)
    .toLowerCase();
  const known = (["csv", "xlsx", "json", "jsonl"] as const).find((name) => name === extension);
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

/** The sheet with these columns alone, named as in the manifest's header or as bulkgen names them. */
function withColumns({ sheet, form }: Export, wanted: readonly string[]): FilledSheet {
  const indexes = wanted.map((name) => {
    const is = (other: string) => foldedName(other) === foldedName(name);
    const index = sheet.columns.findIndex((column) => is(column) || is(form.headers.get(column) ?? column));
    if (index >= 0) return index;
    const near = nearest(name, sheet.columns);
    const hint = near === undefined ? `It has: ${sheet.columns.join(", ")}.` : `Did you mean ${near}?`;
    throw new EarlyExit(
      "usage",
      `--columns: the sheet has no column "${name}". ${hint} Nothing was written.`,
    );
  });
  return {
    columns: indexes.map((index) => sheet.columns[index] ?? ""),
    lines: mappedLines(sheet.lines, (line) => indexes.map((index) => line[index] ?? null)),
  };
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

/** Existing files are replaced only with --force, and the run's own manifest never. Returns the absolute path. */
function checkTarget(file: string, { run }: Export, { force }: ExportFlags, { cwd }: Machine): string {
  if (file === "-")
    throw new EarlyExit(
      "usage",
      "-: expected a file name. Leave out --to to print the sheet on stdout; a ZIP needs a file. Nothing was written.",
    );
  const path = resolve(cwd, file);
  if (!existsSync(path)) return path;
  if (existsSync(run.manifest) && realpathSync(path) === realpathSync(run.manifest)) {
    throw new EarlyExit(
      "usage",
      `${file} is the manifest of run ${run.id}. Choose another file. Nothing was written.`,
    );
  }
  if (!force) {
    throw new EarlyExit("usage", `${file} exists. Choose another file, or add --force. Nothing was written.`);
  }
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
  formatted: Formatted,
  { file, path }: Target,
  flags: ExportFlags,
  machine: Machine,
): Promise<void> {
  const { runs } = made;
  const { clock } = machine;
  const files = await made.files();
  // Nobody is to hand over an empty archive.
  if (files.length === 0 && (flags.picked || flags.filesOnly)) {
    const which = flags.picked ? "no picked item has a file any more" : "no item has a file";
    throw new EarlyExit("usage", `${which}, so ${file} would be empty. Nothing was written.`);
  }
  const signal = machine.interrupt();
  const sheet = flags.filesOnly
    ? null
    : { name: `sheet.${formatted.format}`, content: piecesOf(made, formatted, file) };
  await pack({ zip: path, runs, files, sheet, clock, signal });
  report(
    flags,
    machine,
    `${file}: ${count(files.length, "file")}${sheet ? `, index.jsonl, ${sheet.name}` : ""}`,
  );
}

/** Paths in a manifest start from its own folder. */
function checkLocalInputs({ localInput, run }: Export, { to }: ExportFlags, { cwd }: Machine): void {
  if (localInput === null || to === undefined) return;
  const folder = resolve(run.manifest, "..");
  if (resolve(cwd, to, "..") === folder) return;
  throw new EarlyExit(
    "usage",
    `the rows name local files (${localInput}) relative to the manifest's folder. Write the new manifest there too, in ${folder}. Nothing was written.`,
  );
}

function report({ quiet }: ExportFlags, { stderr }: Machine, line: string): void {
  if (!quiet) stderr.write(`${line}\n`);
}
