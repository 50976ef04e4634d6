import { createWriteStream, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { mediaFields } from "../../api/inputs.js";
import { jobFolder } from "../../archive/disk/job-folder.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { Indexes } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { variantKey } from "../../core/identity.js";
import type { ItemState } from "../../core/item.js";
import { type Credits, toNumber } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import {
  type ArchivedFile,
  filledColumns,
  type Item,
  type KeptSheet,
  type Run,
  type Sheet,
  type Store,
} from "../../core/ports/store.js";
import { isLocalPath } from "../../manifest/local-inputs.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { selectItems } from "../orders/redo.js";
import { evidenceIn, evidenceText, reasonOf } from "../workspace/evidence.js";
import { mustHaveRuns } from "../workspace/history.js";
import type { Workspace } from "../workspace/workspace.js";

/** An item as an export tells of it. */
export interface FilledItem {
  rowId: string;
  state: ItemState;
  reason: string | null;
  /** Relative to the job's folder. */
  files: readonly string[];
  credits: Credits | null;
  taskId: string | null;
  externalTaskId: string | null;
  /** What the provider's support needs to find each request of it that is in doubt, or was lost and given up. */
  evidence: readonly string[];
}

/** One line of an export: the cells of a row as people wrote them, and what became of one of its items. */
export interface FilledLine {
  cells: Readonly<Record<string, string>>;
  item: FilledItem | null;
  /** Why there is no item. */
  reason: string | null;
}

/** A table as it is written to any format. */
export interface FilledSheet {
  columns: readonly string[];
  lines: readonly (readonly (string | number | null)[])[];
}

/** No name of a file holds one. */
const between = " | ";

/** The state of a row that has no item: it was wrong, or not selected so far. */
const notMade = "not made";

/**
 * The team's own sheet with what became of it: all their columns in their order, then ours. A column of theirs that is
 * called like one of ours keeps its name, and ours gets a prefix; unless the sheet is an export itself, whose columns
 * are filled in anew.
 */
export function filledSheet(columns: Sheet["columns"], lines: readonly FilledLine[]): FilledSheet {
  const own = ownNames(columns);
  const theirs = columns.filter((column) => !own.includes(column));
  return {
    columns: [...theirs, ...own],
    lines: lines.map(({ cells, item, reason }) => [
      ...theirs.map((column) => cells[column] ?? null),
      item?.rowId ?? null,
      item === null || item.files.length === 0 ? null : item.files.join(between),
      item?.state ?? notMade,
      item === null ? reason : item.reason,
      item === null || item.credits === null ? null : toNumber(item.credits),
      item?.taskId ?? null,
      item?.externalTaskId ?? null,
      item === null || item.evidence.length === 0 ? null : item.evidence.join(between),
    ]),
  };
}

/** Our columns, called so that no column of the sheet is called the same. */
function ownNames(columns: Sheet["columns"]): string[] {
  if (filledColumns.every((name) => columns.includes(name))) return [...filledColumns];
  const taken = new Set(columns.map((column) => column.toLowerCase()));
  return filledColumns.map((name) => (taken.has(name) ? `bulkgen_${name}` : name));
}

export interface FailedItem {
  item: Pick<Item, "rowId" | "name" | "model" | "prompt" | "params" | "inputs" | "priority" | "cells">;
  reason: string;
}

/**
 * A manifest of what failed, with the reason, that can be run as it is: what defaults, templates and matrices made of a
 * row stands in its cells, and each copy of a repeated row has a line of its own.
 */
export function failedManifest(columns: Sheet["columns"], failed: readonly FailedItem[]): FilledSheet {
  const lines = failed.map(({ item, reason }) => ({ cells: cellsOf(item, columns), reason }));
  const kept = [
    "id",
    ...columns.filter((column) => column !== "id" && column !== "repeat" && column !== "reason"),
  ];
  const added = [...new Set(lines.flatMap(({ cells }) => [...cells.keys()]))].filter(
    (column) => !kept.includes(column),
  );
  return {
    columns: [...kept, ...added, "reason"],
    lines: lines.map(({ cells, reason }) => [
      ...[...kept, ...added].map((column) => cells.get(column) ?? null),
      reason,
    ]),
  };
}

function cellsOf(item: FailedItem["item"], columns: Sheet["columns"]): Map<string, string> {
  const cells = new Map<string, string>(item.cells.filter(([column]) => columns.includes(column)));
  for (const column of cells.keys()) if (column.startsWith("params.")) cells.delete(column);
  const put = (column: string, value: string | null | undefined) => {
    if (value !== null && value !== undefined && value !== "") cells.set(column, value);
    else cells.delete(column);
  };
  put("id", item.rowId);
  put("model", item.model);
  put("prompt", item.prompt);
  for (const [key, value] of Object.entries(item.params)) put(`params.${key}`, value);
  for (const field of mediaFields) put(field, item.inputs[field]);
  if (columns.includes("output") || item.name !== item.rowId) put("output", item.name);
  if (item.priority !== 0) put("priority", String(item.priority));
  for (const column of ["repeat", "reason"]) cells.delete(column);
  return cells;
}

export interface Pack {
  /** Absolute path of the archive to write. */
  zip: string;
  /** Every run of the job, oldest first. */
  runs: readonly Run[];
  files: readonly ArchivedFile[];
  /** Name and content of the sheet that goes along. */
  sheet: { name: string; content: Uint8Array };
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Packs files with their lines of the index, as a stream: media do not fit into memory. The archive has its name only
 * when it is whole. Throws EarlyExit when a file is not what was archived, and then writes nothing.
 */
export async function pack({ zip, runs, files, sheet, clock, signal }: Pack): Promise<void> {
  const found = located(files, [...new Set(runs.map(jobFolder))].toReversed());
  const { ZipFile } = await import("yazl");
  const archive = new ZipFile();
  const mtime = new Date(clock.now());
  const lines: string[] = [];
  const indexes = new Indexes(nodeDisk);
  for (const { folder, file } of found) {
    // Media are compressed already.
    archive.addFile(join(folder, file), file, { compress: false });
    const index = await indexes.of(folder);
    const identity = index.holder(file);
    const line = typeof identity === "string" ? index.find(identity) : undefined;
    if (line) lines.push(JSON.stringify(line));
  }
  archive.addBuffer(Buffer.from(lines.map((line) => `${line}\n`).join("")), "index.jsonl", { mtime });
  archive.addBuffer(Buffer.from(sheet.content), sheet.name, { mtime });
  archive.end();
  const part = `${zip}.part`;
  try {
    await pipeline(archive.outputStream, createWriteStream(part, { flush: true }), { signal });
    await rename(part, zip);
  } catch (error) {
    await rm(part, { force: true });
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was packed");
    throw error;
  }
}

/** Where each file lies. */
function located(
  files: readonly ArchivedFile[],
  folders: readonly string[],
): { folder: string; file: string }[] {
  const missing: string[] = [];
  const found = files.flatMap(({ file, bytes }) => {
    const folder = folders.find((one) => sizeOf(join(one, file)) === bytes);
    if (folder === undefined) missing.push(file);
    return folder === undefined ? [] : [{ folder, file }];
  });
  if (missing.length === 0) return found;
  const named = missing.slice(0, namesMax).join(", ");
  const more = missing.length > namesMax ? ` and ${missing.length - namesMax} more` : "";
  throw new EarlyExit(
    "usage",
    `${missing.length === 1 ? "1 file is" : `${missing.length} files are`} gone or not as archived: ${named}${more}. ` +
      "Nothing was packed. `bulkgen run MANIFEST --missing fetch` gets lost files again, for no credits.",
  );
}

const namesMax = 5;

function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}

/** A run's sheet with what became of each row. */
export interface Export {
  run: Run;
  /** Every run of the job: files may lie in the folder of an earlier one. */
  runs: readonly Run[];
  sheet: FilledSheet;
  lines: readonly FilledLine[];
  files: readonly ArchivedFile[];
  /** Input files that the lines name by a path. */
  localInputs: readonly string[];
}

export interface ExportOptions {
  workspace: Workspace;
  run: number | undefined;
  selection: Selection;
  /** Only what failed, as a manifest that can be run. */
  failed: boolean;
  clock: Clock;
}

/** Reads a run from the workspace; asks nobody and changes nothing. Throws EarlyExit where there is none. */
export async function exportRun(options: ExportOptions): Promise<Export> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  const store = openWorkspace(workspace, clock);
  try {
    return await read(store, options);
  } finally {
    store.close();
  }
}

async function read(store: Store, { run: which, selection, failed }: ExportOptions): Promise<Export> {
  const run = await store.run(which ?? "newest");
  if (!run) {
    throw new EarlyExit(
      "usage",
      which === undefined
        ? "no run in this workspace yet; begin with `bulkgen run`"
        : `no run ${which} in this workspace; \`bulkgen status --all\` lists them`,
    );
  }
  const runs = (await store.runs()).filter(({ jobId }) => jobId === run.jobId);
  const items = (await store.itemsOf(run.jobName)).filter(({ edition }) => edition === run.edition);
  const sheet = (await sheetOf(store, run, runs)) ?? sheetFrom(items.filter(({ variant }) => variant === 1));
  const rows = rowsOf(sheet, items);
  const all = rows.flatMap(({ item }) => item ?? []);
  const wanted = failed ? all.filter(({ state }) => state === "failed") : all;
  if (failed && wanted.length === 0) throw new EarlyExit("done", `no item of run ${run.id} has failed`);
  const chosen = new Set(selectItems(run, wanted, selection));
  const ids = new Set([...chosen].map(({ id }) => id));
  const files = (await store.files(run.jobName)).filter(({ itemId }) => ids.has(itemId));
  const shown = rows.filter(({ item }) => (item ? chosen.has(item) : isEverything(selection)));
  const lines = await linesOf(store, shown, files);
  return {
    run,
    runs,
    sheet: failed ? failedManifest(sheet.columns, failedOf(chosen)) : filledSheet(sheet.columns, lines),
    lines,
    files,
    localInputs: [...chosen].flatMap(({ inputs }) => Object.values(inputs).filter(isLocalPath)),
  };
}

/** The sheet of the run; a redo's run has none of its own and shows the one before. */
async function sheetOf(store: Store, run: Run, runs: readonly Run[]): Promise<KeptSheet | null> {
  for (const { id } of runs.filter((one) => one.edition === run.edition && one.id <= run.id).toReversed()) {
    const sheet = await store.sheetOf(id);
    if (sheet) return sheet;
  }
  return null;
}

/** For runs of programs that kept no sheet: the rows as the items know them. */
function sheetFrom(items: readonly Item[]): KeptSheet {
  const content = items.map(({ rowId, model, prompt, params, inputs }) => ({
    id: rowId,
    model,
    ...(prompt === null ? {} : { prompt }),
    ...Object.fromEntries(Object.entries(params).map(([key, value]) => [`params.${key}`, value])),
    ...inputs,
  }));
  return {
    columns: [...new Set(content.flatMap((cells) => Object.keys(cells)))],
    rows: items.map(({ key, rowNumber }, index) => ({
      number: rowNumber,
      cells: content[index] ?? {},
      keys: [key],
      problem: null,
    })),
  };
}

interface RowOfItem {
  cells: KeptSheet["rows"][number]["cells"];
  item: Item | null;
  problem: string | null;
}

/** Each row with each of its items, and each item followed by the variants that were made of it. */
function rowsOf(sheet: KeptSheet, items: readonly Item[]): RowOfItem[] {
  const byKey = new Map(items.map((item) => [item.key, item]));
  const variantsMax = Math.max(1, ...items.map(({ variant }) => variant));
  const withVariants = (item: Item): Item[] => {
    const keys = Array.from({ length: variantsMax - 1 }, (_, index) => variantKey(item.key, index + 2));
    return [item, ...keys.flatMap((key) => byKey.get(key) ?? [])];
  };
  return sheet.rows.flatMap(({ cells, keys, problem }): RowOfItem[] => {
    const made = keys.flatMap((key) => byKey.get(key) ?? []).flatMap(withVariants);
    if (made.length === 0) return [{ cells, item: null, problem }];
    return made.map((item) => ({ cells, item, problem: null }));
  });
}

async function linesOf(
  store: Store,
  rows: readonly RowOfItem[],
  files: readonly ArchivedFile[],
): Promise<FilledLine[]> {
  const filesOf = new Map<number, ArchivedFile[]>();
  for (const file of files) filesOf.set(file.itemId, [...(filesOf.get(file.itemId) ?? []), file]);
  const lines: FilledLine[] = [];
  for (const { cells, item, problem } of rows) {
    const filled = item && (await filledItem(store, item, filesOf.get(item.id) ?? []));
    lines.push({ cells, item: filled, reason: problem });
  }
  return lines;
}

async function filledItem(store: Store, item: Item, files: readonly ArchivedFile[]): Promise<FilledItem> {
  const attempt = await store.attempt(item.id);
  const { rowId, state, note } = item;
  return {
    rowId,
    state,
    reason: note,
    files: files.map(({ file }) => file),
    credits: attempt?.charged ?? null,
    taskId: attempt?.taskId ?? null,
    externalTaskId: attempt?.externalTaskId ?? null,
    evidence: await evidenceTexts(store, item, attempt),
  };
}

/** States in which the provider's support may have to be asked. */
const inDoubt: readonly ItemState[] = ["submitting", "unknown", "held", "overdue"];

/** The newest request where it is in doubt, and those that were lost before, whatever was decided on them since. */
async function evidenceTexts(store: Store, { id, state }: Item, newest: Attempt | null): Promise<string[]> {
  const lost = await store.orphans({ item: id });
  const isOpen = newest !== null && inDoubt.includes(state) && !lost.some((one) => one.id === newest.id);
  return [...lost, ...(isOpen ? [newest] : [])].map((attempt) => {
    const evidence = evidenceIn(attempt);
    return evidenceText(evidence, evidence.bodySha256.length);
  });
}

function failedOf(items: ReadonlySet<Item>): FailedItem[] {
  return [...items].map((item) => ({ item, reason: reasonOf(item) }));
}
