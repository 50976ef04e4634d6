import { extname, resolve } from "node:path";
import type { Problem } from "../core/problem.js";
import { count } from "../text/amounts.js";
import { isOutside } from "../text/inside.js";
import { wholeOf } from "../text/pieces.js";
import { addedColumns, axesOf, Bound, combinationsOf, itemsMaxDefault } from "./combinations.js";
import { Expander, type Expansion, needsRendering, type Rendering } from "./expand.js";
import { filesAt, filesOfJob, whyNoFiles } from "./files.js";
import { isOfFiles, manifestFolder, manifestStem } from "./folder.js";
import {
  type ByteOptions,
  type Bytes,
  openBytes,
  standardInput,
  standardInputName,
  whyNoFile,
} from "./formats/bytes.js";
import { type CsvOptions, openCsv } from "./formats/csv.js";
import { type Encoded, examined, textPieces, utf8Pieces } from "./formats/encoding.js";
import { formatsByExtension, type ManifestFormat } from "./formats/extensions.js";
import { isOldContainer, markup, oldContainer } from "./formats/foreign-file.js";
import { isWorkbook, readWorkbook, type WorkbookOptions } from "./formats/workbook.js";
import { keyInCommon, withoutKeyRows } from "./keys.js";
import { defaultCells, type RowOptions } from "./row.js";
import {
  columnPrefix,
  environmentName,
  exportedColumns,
  foldedName,
  isKnown,
  unusedNotes,
} from "./shape/columns.js";
import type { Defaults, End, Manifest, Part, Row } from "./shape/manifest.js";
import {
  type Cells,
  isTemplate,
  type RowsFrom,
  type Source,
  type SourceBatch,
  unreadSource,
} from "./shape/source.js";
import { isUsed, namesFrom } from "./templates/scope.js";

export interface SourceOptions extends CsvOptions, WorkbookOptions, ByteOptions {
  /** The folder of files that a manifest from standard input names. */
  cwd?: string;
}

/** Opens a manifest of any format, and the files that it names for its rows. Never throws because of a file's content. */
export async function openSource(path: string, options: SourceOptions): Promise<Source> {
  const isManifest = (options.called ?? "manifest") === "manifest";
  if (isManifest && isOfFiles(path)) return filesAt(path);
  const bytes = await openBytes(path, options);
  if ("problem" in bytes) return unreadSource(bytes.problem);
  const file = namedFile(path);
  const { source, rowsFrom } = await sourceOf(file, bytes, options);
  if (rowsFrom === undefined) return source;
  const folder = folderOf(path, options);
  const hasIds = source.job?.defaults.cells["id"] !== undefined;
  const rows =
    typeof rowsFrom !== "string"
      ? await filesOfJob(file, folder, rowsFrom, hasIds)
      : isOutside(folder, rowsFrom)
        ? unreadSource(rowsOutside(file, rowsFrom))
        : await openRows(resolve(folder, rowsFrom), options);
  return {
    ...source,
    ...(typeof rowsFrom === "string" ? { rowsFile: resolve(folder, rowsFrom) } : {}),
    columns: rows.columns,
    ...(rows.addedColumns ? { addedColumns: rows.addedColumns } : {}),
    problems: [...source.problems, ...rows.problems],
    notes: [...source.notes, ...rows.notes],
    batches: rows.batches,
    ...(rows.form ? { form: rows.form } : {}),
  };
}

/**
 * Why no manifest can be at this path: nothing is there, Excel's own file, or no file is in the folder or matches the pattern.
 * Opens nothing: a pipe can be read only once.
 */
export async function whyNoManifest(path: string): Promise<Problem | null> {
  return isOfFiles(path) ? whyNoFiles(path) : whyNoFile(path);
}

/** The folder of the files that a manifest names. */
function folderOf(path: string, { cwd = "." }: Pick<SourceOptions, "cwd">): string {
  return path === standardInput ? cwd : manifestFolder(resolve(cwd, path));
}

function rowsOutside(file: string, rowsFile: string): Problem {
  return {
    place: { file, row: null, column: "rows" },
    message: "the rows' file cannot be used: it lies outside the manifest's folder",
    expected: "a file in the manifest's folder",
    got: rowsFile,
  };
}

async function openRows(file: string, options: SourceOptions): Promise<Source> {
  const bytes = await openBytes(file, { called: "rows' file" });
  if ("problem" in bytes) return unreadSource(bytes.problem);
  const { source } = await sourceOf(file, bytes, options);
  if (!source.job) return source;
  return unreadSource({
    place: { file, row: null },
    message: "the rows' file is itself a job file",
    expected: "a file with only rows",
    got: "a job",
  });
}

/** The source in these bytes; `rowsFrom` is the file that a job names for its rows, or the patterns of files that are rows. */
export async function sourceOf(
  file: string,
  bytes: Bytes,
  options: SourceOptions,
): Promise<{ source: Source; rowsFrom?: RowsFrom }> {
  const refused = (problem: Omit<Problem, "place">) => ({
    source: unreadSource({ place: { file, row: null }, ...problem }),
  });
  const firstBytes = await startOf(bytes);
  if (isWorkbook(firstBytes))
    return { source: await readWorkbook(file, await wholeOf(bytes.pieces()), options) };
  if (isOldContainer(firstBytes)) return refused(oldContainer(await wholeOf(bytes.pieces())));
  const found = await examined(file, bytes);
  if ("problem" in found) return { source: unreadSource(found.problem) };
  const start = await startText(bytes, found.encoding);
  const format = formatOf(file, start);
  const page = format === "csv" ? markup(start) : null;
  if (page !== null) return refused(page);
  // A job may name a workbook for its rows; then the flag means that workbook.
  const { sheet } = options;
  const chooses = sheet !== undefined && ["csv", "lines", "prompts"].includes(format);
  if (chooses) return { source: unreadSource(noSheets(file, sheet)) };
  const parsed = await parsedAs(format, file, { bytes, found, start }, options);
  const notes = [...found.notes, ...parsed.source.notes];
  return { ...parsed, source: { ...parsed.source, notes } };
}

interface Opened {
  bytes: Bytes;
  found: Encoded;
  start: string;
}

/** Only sheets are read in pieces: any part of a document may be at its end. */
async function parsedAs(
  format: Format,
  file: string,
  { bytes, found, start }: Opened,
  options: CsvOptions,
): Promise<{ source: Source; rowsFrom?: RowsFrom }> {
  if (format === "csv") {
    const pieces = () => utf8Pieces(bytes, found.encoding);
    return { source: await openCsv(file, { pieces, start, returns: found.returns }, options) };
  }
  let text = "";
  for await (const piece of textPieces(bytes, found.encoding)) text += piece;
  const { readDocument, readLines, readPrompts } = await import("./job-file/rows.js");
  if (format === "prompts") return { source: readPrompts(file, text) };
  return format === "lines" ? { source: readLines(file, text) } : readDocument(file, text, format);
}

async function startOf(bytes: Bytes): Promise<Uint8Array> {
  for await (const piece of bytes.pieces()) return piece;
  return new Uint8Array();
}

/** The beginning of the text, enough to recognise its format. */
async function startText(bytes: Bytes, encoding: Encoded["encoding"]): Promise<string> {
  let text = "";
  for await (const piece of textPieces(bytes, encoding)) {
    text += piece;
    if (text.length >= startCharactersMax) break;
  }
  return text.slice(0, startCharactersMax);
}

type Format = Exclude<ManifestFormat, "workbook">;

/** Characters in which the format shows. */
const startCharactersMax = 65_536;

/** The format by the file's extension, else by its beginning: no header of a sheet begins with a bracket or like YAML. */
function formatOf(file: string, text: string): Format {
  const named = formatsByExtension[extname(file).toLowerCase()];
  const isNamed = named !== undefined && named !== "workbook";
  if (isNamed && (named !== "prompts" || isOfPrompts(text))) return named;
  // Any format may begin with comments.
  const start = text.replace(/^(?:\s*#[^\n]*\n)+/, "").trimStart();
  if (/^\{.*\}[ \t]*\r?\n\s*(\{|$)/.test(start) && !/^\{\s*"?(rows|files|name)"?\s*:/.test(start))
    return "lines";
  if (/^[[{]/.test(start)) return "JSON";
  return /^(---\s|- +[\w"']+ *:|\w+ *:\s)/.test(start) ? "YAML" : "csv";
}

/** Whether each line of a text is a prompt: it is no sheet, whose first line names a column, and plainly no document. */
function isOfPrompts(text: string): boolean {
  const [first, ...others] = text.split(/\r\n|\n|\r/).filter((line) => !/^\s*(#|$)/.test(line));
  if (first === undefined) return false;
  if (first.split(/[,;\t|]/).some((cell) => isKnown(foldedName(cell)))) return false;
  const isJson = /^\s*(\{\s*["}]|\[\s*[[{"\]])/.test(first);
  const isYaml = /^---|^- +[\w"']+ *:/.test(first) || jobKey.test(first);
  if (isJson || isYaml) return false;
  const [key] = ambiguousKey.exec(first) ?? [];
  return key === undefined || !others.some((line) => isOtherKey(line, key));
}

/** The beginning of a line that a job file has and a prompt hardly has. */
const jobKey = /^(name|defaults|rows|files|vars|tables|matrix|zip|steps|publish|after|\$schema) *:/;
/** One that a prompt may have too, if no line with another key follows. */
const ambiguousKey = /^(prompt|output|repeat|approve)(?= *:)/;

function isOtherKey(line: string, key: string): boolean {
  const [other] = ambiguousKey.exec(line) ?? [];
  return jobKey.test(line) || (other !== undefined && other !== key);
}

function noSheets(file: string, sheet: string): Problem {
  return {
    place: { file, row: null },
    message: "the file has no sheets to choose from",
    expected: "a workbook (.xlsx) with --sheet",
    got: `--sheet ${sheet}`,
  };
}

export interface ReadOptions extends SourceOptions, Partial<RowOptions> {
  /** From the command line; the manifest's defaults and its rows override them. */
  defaults?: Defaults;
  /** A job with more combinations is refused before any item is made. */
  itemsMax?: number;
  /** The local date, `YYYY-MM-DD`: the variable `today` of templates. */
  today?: string;
  /** What flags or settings want to be run after each file. A job file may say it itself. */
  afterFile?: string;
}

/**
 * Opens a manifest that is read a part at a time: each row in every combination of its job, with its templates rendered.
 * Checks everything that needs no service. Problems come with the parts; none is thrown.
 */
export async function openManifest(path: string, options: ReadOptions = {}): Promise<Manifest> {
  return manifestOf(path, await openSource(path, options), options);
}

/** The manifest that a source makes. */
export function manifestOf(path: string, source: Source, options: ReadOptions): Manifest {
  const file = namedFile(path);
  return {
    name: source.job?.name ?? source.partOf ?? manifestStem(file),
    isPart: source.partOf !== undefined,
    ...(source.edition === undefined ? {} : { edition: source.edition }),
    file,
    ...(source.job?.publish ? { publish: source.job.publish } : {}),
    ...(source.job?.after ? { after: source.job.after } : {}),
    columns: [...new Set([...source.columns, ...addedColumns(source.job)])],
    parts: () => partsOf(path, file, source, options),
  };
}

async function* partsOf(
  path: string,
  file: string,
  source: Source,
  options: ReadOptions,
): AsyncGenerator<Part, End> {
  const key = keyInCommon(file, source, options.defaults ?? {});
  if (key !== null) return { notes: [], unusedColumns: [], refusal: key };
  const bound = new Bound(source.job, options.itemsMax ?? itemsMaxDefault);
  const expansion = expansionOf(file, source, options, bound);
  const expander = new Expander(expansion);
  const notes = [...source.notes];
  let wrong = source.problems.length > 0;
  yield withoutKeyRows({ rows: [], problems: source.problems });
  for await (const batch of source.batches()) {
    expander.rendering ??= needsEngine(batch, expansion)
      ? await renderingOf(path, source, expansion, options)
      : null;
    const rows: Row[] = [];
    for (const row of batch.rows) {
      bound.add(row.cells);
      if (!bound.exceeded) expander.add(row, bound.rows, rows);
    }
    notes.push(...(batch.notes ?? []));
    const problems = [...batch.problems, ...expander.take()];
    wrong ||= problems.length > 0;
    yield withoutKeyRows({ rows, problems });
  }
  notes.push(...expander.asideNotes(), ...expander.emptyNotes(), ...expander.meantAsNoNotes());
  const { count: unwanted, isAll } = expander.leftOutByWhen;
  const things = expansion.combinations.length > 1 ? "combination" : "row";
  if (unwanted > 0) notes.push(`${count(unwanted, `${things} is`, `${things}s are`)} left out by when`);
  const none = bound.rows === expander.leftOut && !wrong;
  return {
    ...unusedOf(source, notes, {
      used: expander.rendering?.templates.used ?? new Set(),
      command: [options.afterFile, source.job?.after?.file].join("\n"),
      empty: bound.rows === 0,
    }),
    refusal: none
      ? noRows(file)
      : bound.exceeded
        ? bound.problem(file)
        : isAll && !wrong
          ? allUnwanted(file, unwanted)
          : null,
  };
}

function unusedOf(
  source: Source,
  notes: readonly string[],
  { used, command, empty }: { used: ReadonlySet<string>; command: string; empty: boolean },
): Pick<End, "notes" | "unusedColumns"> {
  const { columns, addedColumns = [] } = source;
  const named = new Set(command.match(/\bBULKGEN_COLUMN_[A-Z0-9_]+/g));
  const isNamed = (column: string) => named.has(columnPrefix + environmentName(column));
  const isUnused = (column: string) =>
    !isUsed(column, used) && !isNamed(column) && !addedColumns.includes(column);
  const unusedColumns = empty ? [] : columns.filter(isUnused);
  const own = empty ? [] : [...noIdNotes(source), ...idleNotes(source, used)];
  return { notes: [...notes, ...notesOfUnused(unusedColumns, columns), ...own], unusedColumns };
}

/** In a sheet with columns of its own, one of them usually names the rows, such as an article number. */
function noIdNotes({ columns, job }: Source): string[] {
  const haveIds = columns.includes("id") || job?.defaults.cells["id"] !== undefined;
  if (haveIds || columns.every(isKnown)) return [];
  return [
    "no column is named id, so messages and files name the rows by ten digits; if a column has a name for each row, call it id",
  ];
}

function expansionOf(file: string, { job, columns }: Source, options: ReadOptions, bound: Bound): Expansion {
  return {
    file,
    job,
    defaults: {
      cells: { ...defaultCells(options.defaults ?? {}), ...job?.defaults.cells },
      marks: job?.defaults.marks ?? {},
    },
    // There may be more than fit in memory.
    combinations: bound.eachExceeds ? [] : combinationsOf(job),
    today: options.today ?? "",
    repair: options.repair ?? false,
    allowDamagedText: options.allowDamagedText ?? false,
    skipHeadings: options.skipHeadings ?? false,
    columns,
  };
}

/** Loads the template engine only when a template is found. */
async function renderingOf(
  path: string,
  { columns, job }: Source,
  { defaults }: Expansion,
  options: ReadOptions,
): Promise<Rendering> {
  const [{ Templates }, { PromptFiles }] = await Promise.all([
    import("./templates/template.js"),
    import("./templates/prompt-file.js"),
  ]);
  const names = namesFrom([
    ...columns,
    ...Object.keys(defaults.cells),
    ...Object.keys(job?.vars.cells ?? {}),
    ...(job?.steps.flatMap((step) => Object.keys(step.cells)) ?? []),
    ...axesOf(job).flatMap(({ keys }) => keys),
  ]);
  return {
    templates: new Templates(names, job?.tables),
    names,
    files: new PromptFiles(folderOf(path, options)),
  };
}

function needsEngine({ rows }: SourceBatch, { defaults, job }: Expansion): boolean {
  const hasOne = (cells: Cells) => {
    for (const column in cells) if (needsRendering("prompt", cells[column] as string)) return true;
    return false;
  };
  if (hasOne(defaults.cells) || rows.some(({ cells }) => hasOne(cells))) return true;
  const settings = axesOf(job).flatMap((axis) => axis.settings);
  const conditions = [
    job?.when,
    ...(job?.steps ?? []).map(({ when }) => when),
    ...settings.flatMap(({ when }) => when),
  ];
  if (conditions.some((when) => when !== undefined && isTemplate(when.text))) return true;
  return [...(job?.steps ?? []), ...settings].some(({ cells }) => hasOne(cells));
}

/** Notes about variables and axes that are not used: such an axis makes the same item several times. */
function idleNotes({ job }: Source, used: ReadonlySet<string>): string[] {
  if (!job) return [];
  return [
    ...axesOf(job)
      .filter(({ keys }) => !keys.some((key) => isKnown(key) || used.has(key)))
      .map(({ keys, settings }) => {
        const same = `, so each of its ${settings.length} values makes the same thing`;
        return `nothing uses ${keys.join(" and ")}${settings.length > 1 ? same : ""}`;
      }),
    ...Object.keys(job.vars.cells)
      .filter((name) => !used.has(name))
      .map((name) => `the variable "${name}" is not used`),
  ];
}

/** The file of a manifest as messages name it. */
function namedFile(path: string): string {
  return path === standardInput ? standardInputName : path;
}

function notesOfUnused(unused: readonly string[], columns: readonly string[]): string[] {
  const filled = exportedColumns(columns) ?? [];
  return unusedNotes(unused.filter((column) => !filled.includes(column)));
}

function allUnwanted(file: string, unwanted: number): Problem {
  return {
    place: { file, row: null, column: "when" },
    message: "when leaves out everything",
    expected: "something to make: a when that is not empty, false, no or 0",
    got: `${unwanted} left out`,
  };
}

function noRows(file: string): Problem {
  return {
    place: { file, row: null },
    message: "the manifest has no rows",
    expected: "at least one row",
    got: "none",
  };
}
