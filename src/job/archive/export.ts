import { mediaFields } from "../../api/inputs.js";
import { bucketAddress } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
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
import { openSource } from "../../manifest/read.js";
import { exportedColumns, prefixedName } from "../../manifest/shape/columns.js";
import { noForm, type SheetForm } from "../../manifest/shape/source.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import { terminalText } from "../../text/terminal.js";
import { itemNamed } from "../orders/item-named.js";
import { selectItems } from "../orders/request.js";
import { placed, type ReviewedName } from "../orders/review.js";
import { evidenceIn, evidenceText, reasonOf } from "../workspace/evidence.js";
import { newestRun } from "../workspace/find-run.js";
import { mustHaveRuns } from "../workspace/history.js";
import { withStore } from "../workspace/state.js";
import type { Workspace } from "../workspace/workspace.js";
import { nothingPicked } from "./picks.js";

/** An item as an export shows it. */
export interface FilledItem {
  rowId: string;
  state: ItemState;
  reason: string | null;
  /** Relative to the job's folder. */
  files: readonly string[];
  picked: boolean;
  credits: Credits | null;
  taskId: string | null;
  externalTaskId: string | null;
  /** Evidence for the provider's support about each request that is in doubt or lost. */
  evidence: readonly string[];
}

/** One line of an export: the cells of a row as written, and the result of one of its items. */
export interface FilledLine {
  cells: Readonly<Record<string, string>>;
  item: FilledItem | null;
  /** Why there is no item. */
  reason: string | null;
}

/** A table, for any output format. */
export interface FilledSheet {
  /** The job of which these are only some rows. */
  partOf?: string;
  columns: readonly string[];
  lines: readonly (readonly (string | number | null)[])[];
}

/** Never part of a file name. */
const between = " | ";

/** The state of a row without an item: it was invalid or never selected. */
const notMade = "not made";

/**
 * The user's sheet with the results: all their columns in order, then ours. If a column of theirs has the name of one of
 * ours, ours gets a prefix. If the sheet is itself an export, its result columns are filled in again.
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
      pickedCell(item?.picked ?? false),
      item?.state ?? notMade,
      told(item === null ? reason : item.reason),
      item === null || item.credits === null ? null : toNumber(item.credits),
      item?.taskId ?? null,
      item?.externalTaskId ?? null,
      item === null || item.evidence.length === 0 ? null : item.evidence.join(between),
    ]),
  };
}

/** Our columns, named so that none collides with a column of the sheet. */
function ownNames(columns: Sheet["columns"]): string[] {
  const exported = exportedColumns(columns);
  if (exported) return exported;
  const taken = new Set(columns.map((column) => column.toLowerCase()));
  return filledColumns.map((name) => (taken.has(name) ? prefixedName(name) : name));
}

/** What a selection knows of an item besides its row: some of the columns of ours, as the export names them. */
function ownValues(
  columns: Sheet["columns"],
  files: readonly ArchivedFile[],
  picks: ReadonlySet<number>,
): (item: Item) => Record<string, string> {
  const own = ownNames(columns);
  const nameOf = (name: (typeof filledColumns)[number]) => own[filledColumns.indexOf(name)] ?? name;
  const names = byItem(files);
  return ({ id, rowId }) => ({
    [nameOf("item")]: rowId,
    [nameOf("file")]: (names.get(id) ?? []).map(({ file }) => file).join(between),
    [nameOf("picked")]: pickedCell(picks.has(id)) ?? "",
  });
}

function pickedCell(isPicked: boolean): string | null {
  return isPicked ? "yes" : null;
}

export interface FailedItem {
  item: Pick<Item, "rowId" | "name" | "model" | "prompt" | "params" | "inputs" | "priority" | "cells">;
  reason: string;
}

/**
 * A manifest of the failed items, with the reason, that can be run as it is: its cells hold the values that defaults,
 * templates and matrices produced, and each copy of a repeated row has its own line.
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
      told(reason),
    ]),
  };
}

/** A reason for people; it may be the service's own text. */
function told(reason: string | null): string | null {
  return reason === null ? null : terminalText(reason);
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

/** A run's sheet with the result of each row. */
export interface Export {
  run: Run;
  /** Every run of the job: files may lie in the folder of an earlier one. */
  runs: readonly Run[];
  sheet: FilledSheet;
  /** How the manifest is written, as far as it is still there. */
  form: SheetForm;
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
  /** Only what is picked. */
  picked: boolean;
  /** Only these items of a review file; null for all. */
  reviewed: readonly ReviewedName[] | null;
  /** Paths of files start from here. */
  cwd: string;
  clock: Clock;
}

/** Reads a run from the workspace, offline, without changing it. Throws EarlyExit if there is no run. */
export async function exportRun(options: ExportOptions): Promise<Export> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  return withStore(workspace, clock, (store) => read(store, options));
}

async function read(store: Store, options: ExportOptions): Promise<Export> {
  const { selection, failed, picked } = options;
  const run = await newestRun(options.run)(store);
  const runs = (await store.runs()).filter(({ jobId }) => jobId === run.jobId);
  const items = (await store.itemsOf(run.jobName)).filter(({ edition }) => edition === run.edition);
  const sheet = (await sheetOf(store, run, runs)) ?? sheetFrom(items.filter(({ variant }) => variant === 1));
  const rows = rowsOf(sheet, items);
  const all = rows.flatMap(({ item }) => item ?? []);
  const picks = await store.picks();
  const reviewed = options.reviewed && (await reviewedIds(store, run, all, options.reviewed, options.cwd));
  const wanted = all.filter(
    ({ id, state }) =>
      (!failed || state === "failed") && (!picked || picks.has(id)) && (reviewed?.has(id) ?? true),
  );
  if (picked && wanted.length === 0) throw nothingPicked(`run ${run.id}`, run.options.sandbox);
  if (failed && wanted.length === 0) throw new EarlyExit("done", `no item of run ${run.id} has failed`);
  const allFiles = await store.files(run.jobName);
  const chosen = new Set(selectItems(run, wanted, selection, ownValues(sheet.columns, allFiles, picks)));
  const ids = new Set([...chosen].map(({ id }) => id));
  const files = allFiles.filter(({ itemId }) => ids.has(itemId));
  const shown = rows.filter(({ item }) =>
    item ? chosen.has(item) : isEverything(selection) && !picked && !reviewed,
  );
  const told = files.map((each) => ({ ...each, file: placeOf(run, each) }));
  const lines = await linesOf(store, shown, told, picks);
  const retried = failed ? await retriedOf(store, chosen, items) : [];
  const named = failed ? retried.map(({ item }) => item) : [...chosen];
  return {
    run,
    runs,
    sheet: failed
      ? { ...failedManifest(sheet.columns, retried), partOf: run.jobName }
      : filledSheet(sheet.columns, lines),
    lines,
    form: (await openSource(run.manifest, {})).form ?? noForm,
    files,
    localInputs: named.flatMap(({ inputs }) => Object.values(inputs).filter(isLocalPath)),
  };
}

/** A file as the sheet names it: within the job's folder, or by its address in the bucket that has it. */
function placeOf(run: Run, { file, bucket }: ArchivedFile): string {
  return bucket == null ? file : bucketAddress(bucket, jobFolder(run), file);
}

/** Throws EarlyExit for an item that is not among those of the run. */
async function reviewedIds(
  store: Store,
  run: Run,
  items: readonly Item[],
  names: readonly ReviewedName[],
  cwd: string,
): Promise<ReadonlySet<number>> {
  const ids = new Set(items.map(({ id }) => id));
  const found = new Set<number>();
  for (const name of names) {
    const { id, rowId } = await itemNamed(store, name, cwd);
    if (!ids.has(id))
      throw new EarlyExit(
        "usage",
        placed(
          name,
          `${rowId} is not among the rows of run ${run.id}: it belongs to another job or edition, or is an earlier version of its row. Nothing was written.`,
        ),
      );
    found.add(id);
  }
  return found;
}

/** The sheet of the run. A redo run has no sheet and uses the one of the run before it. */
async function sheetOf(store: Store, run: Run, runs: readonly Run[]): Promise<KeptSheet | null> {
  for (const { id } of runs.filter((one) => one.edition === run.edition && one.id <= run.id).toReversed()) {
    const sheet = await store.sheetOf(id);
    if (sheet) return sheet;
  }
  return null;
}

/** For runs without a stored sheet: the rows as their items describe them. */
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

/** Each row with its items, each item followed by its variants. */
function rowsOf(sheet: KeptSheet, items: readonly Item[]): RowOfItem[] {
  const byKey = new Map(items.map((item) => [item.key, item]));
  const variantsMax = items.reduce((most, { variant }) => Math.max(most, variant), 1);
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
  picks: ReadonlySet<number>,
): Promise<FilledLine[]> {
  const filesOf = byItem(files);
  const lines: FilledLine[] = [];
  for (const { cells, item, problem } of rows) {
    const filled = item && (await filledItem(store, item, filesOf.get(item.id) ?? [], picks.has(item.id)));
    lines.push({ cells, item: filled, reason: problem });
  }
  return lines;
}

function byItem(files: readonly ArchivedFile[]): Map<number, ArchivedFile[]> {
  const filesOf = new Map<number, ArchivedFile[]>();
  for (const file of files) {
    const others = filesOf.get(file.itemId);
    if (others) others.push(file);
    else filesOf.set(file.itemId, [file]);
  }
  return filesOf;
}

async function filledItem(
  store: Store,
  item: Item,
  files: readonly ArchivedFile[],
  picked: boolean,
): Promise<FilledItem> {
  const attempt = await store.attempt(item.id);
  const { rowId, state, note } = item;
  return {
    rowId,
    state,
    reason: note,
    files: files.map(({ file }) => file),
    picked,
    credits: attempt?.charged ?? null,
    taskId: attempt?.taskId ?? null,
    externalTaskId: attempt?.externalTaskId ?? null,
    evidence: await evidenceTexts(store, item, attempt),
  };
}

/** States that may need the provider's support. */
const inDoubt: readonly ItemState[] = ["submitting", "unknown", "held", "overdue"];

/** The newest request if it is in doubt, and all earlier lost requests, decided or not. */
async function evidenceTexts(store: Store, { id, state }: Item, newest: Attempt | null): Promise<string[]> {
  const lost = await store.orphans({ item: id });
  const isOpen = newest !== null && inDoubt.includes(state) && !lost.some((one) => one.id === newest.id);
  return [...lost, ...(isOpen ? [newest] : [])].map((attempt) => {
    const evidence = evidenceIn(attempt);
    return evidenceText(evidence, evidence.bodySha256.length);
  });
}

/**
 * The failed items, and after them the items whose outputs they take: without these their rows could not be run. Every
 * reference names an id, because the sheet has no steps.
 */
async function retriedOf(
  store: Store,
  failed: ReadonlySet<Item>,
  items: readonly Item[],
): Promise<FailedItem[]> {
  const byId = new Map(items.map((item) => [item.id, item]));
  const wanted = new Set(failed);
  const retried: FailedItem[] = [];
  // The set grows while it is read.
  for (const item of wanted) {
    const inputs = { ...item.inputs };
    for (const { id, rowId, field, output } of await store.parentsOf(item.id)) {
      const parent = byId.get(id ?? 0);
      if (parent === undefined || field === "canary") continue;
      wanted.add(parent);
      inputs[field] = `@${rowId}${output === 1 ? "" : `[${output}]`}`;
    }
    const reason = failed.has(item) ? reasonOf(item) : `${item.state}; another row takes its output`;
    retried.push({ item: { ...item, inputs }, reason });
  }
  return retried;
}
