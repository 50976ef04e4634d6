import { type Measures, measuresOf } from "../../archive/check/content.js";
import { bucketAddress } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { Indexes, stepOf } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import { type Credits, minus, noCredits, plus } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { Item, KeptSheet, MadeItem, Run } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import { itemNamed } from "../../job/orders/item-named.js";
import { type Chosen, ItemChoice } from "../../job/orders/request.js";
import { placed, type ReviewedName } from "../../job/orders/review.js";
import { isLocalPath } from "../../manifest/local-inputs.js";
import { openSource } from "../../manifest/read.js";
import { type FilledColumn, filledColumns, foldedName } from "../../manifest/shape/columns.js";
import { noForm, type SheetForm } from "../../manifest/shape/source.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import type { Store } from "../../store/workspace/workspace.js";
import { evidenceIn, evidenceText, reasonOf } from "../../workspace/evidence.js";
import { newestRun } from "../../workspace/find-run.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { withStore } from "../../workspace/state.js";
import { lostPicksText } from "../../workspace/takes/lost-picks.js";
import type { Workspace } from "../../workspace/workspace.js";
import {
  between,
  type FailedItem,
  type FilledFile,
  type FilledItem,
  type FilledLine,
  type FilledSheet,
  failedManifest,
  type Lines,
  linesOf,
  ownNames,
  pickedCell,
} from "./filled-sheet.js";
import { type PackedPageOptions, packedPage } from "./gallery.js";
import { refuseKept } from "./kept-files.js";
import { nothingPicked } from "./picks.js";
import {
  finalNames,
  lossOf,
  type MissingRow,
  madeOfOtherTakes,
  missingOf,
  mixedSetText,
  type RowOfItem,
  readRows,
} from "./sheet-rows.js";

/**
 * An export reads the sheet page by page, each row with its items. It reads the sheet once more for each fact that it
 * needs in advance: which items are selected, which columns a manifest of failed items has. It keeps only small values
 * of each row, such as the numbers of selected items, because a sheet may have more rows than fit into memory.
 */

/** A run's sheet with the result of each row. */
export interface Export {
  run: Run;
  /** Every run of the job: files may lie in the folder of an earlier one. */
  runs: readonly Run[];
  /** The columns of the run's sheet. */
  columns: KeptSheet["columns"];
  /** One line for each item, with its files as they are named in the job's folder. */
  lines: AsyncIterable<FilledLine>;
  /** The same with the names that the files have in a ZIP. */
  packedLines: AsyncIterable<FilledLine>;
  /** A manifest of the failed items, if that is what was asked for. */
  failed: FilledSheet | null;
  /** The format of the manifest, if the manifest still exists. */
  form: SheetForm;
  /** The files of the items, and how many rejected ones are left out. */
  files(): Promise<{ files: readonly PackedFile[]; rejected: number }>;
  /** A gallery of the files as they are packed, and the thumbnails that it shows. */
  page(options: Omit<PackedPageOptions, "isFinal">): ReturnType<typeof packedPage>;
  /** With `final`: the rows without a final file. */
  missing(): Promise<readonly MissingRow[]>;
  /** With `final`: which files were made of another take than the set has, and what to do, in words; null if none was. */
  mixed(): Promise<string | null>;
  /**
   * What was charged for items that no line is about: their rows were replaced or removed, or they are no final takes. Null for a part
   * of the sheet, and for an earlier run.
   */
  unlisted(): Promise<Credits | null>;
  /** An input file that the failed items name by a path; null if there is none. */
  localInput: string | null;
  /** The params of all items of the run. */
  params(): Promise<ReadonlySet<string>>;
  /** Throws EarlyExit if a file must not be written there, not even with --force. */
  refuseKept(file: string, path: string): Promise<void>;
  /** Which picks an export of the picked items lacks, in words; null if it lacks none. */
  lostPicks: string | null;
}

/** A file, and how it is named in a ZIP. */
export type PackedFile = MadeItem["files"][number] & { name: string; prompt: string | null };

export interface ExportOptions {
  workspace: Workspace;
  run: number | undefined;
  selection: Selection;
  /** Only what failed, as a manifest that can be run. */
  failed: boolean;
  /** Only what is picked. */
  picked: boolean;
  /** Only what is handed over: see `finalOf`. */
  final: boolean;
  /** Only these items of a review file; null for all. */
  reviewed: readonly ReviewedName[] | null;
  /** Whether sizes and durations are wanted, which are in the index of the job's folder. */
  measured: boolean;
  /** Paths of files start from here. */
  cwd: string;
  clock: Clock;
}

/**
 * Reads a run from the workspace, offline, without changing it, for as long as `use` takes. Throws EarlyExit if there is
 * no run.
 */
export async function exportRun<Result>(
  options: ExportOptions,
  use: (made: Export) => Promise<Result>,
): Promise<Result> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  return withStore(workspace, clock, async (store) => {
    const made = await exportFrom(store, options);
    const { run } = made;
    return use({
      ...made,
      refuseKept: (file, path) => refuseKept({ file, path, workspace }, store, { run }),
    });
  });
}

/** Reads a run from an open store. Throws EarlyExit if there is no run. */
export async function exportFrom(
  store: Store,
  options: Omit<ExportOptions, "workspace" | "clock">,
): Promise<Omit<Export, "refuseKept">> {
  const { selection, failed, picked, final, reviewed, measured } = options;
  const run = await newestRun(options.run)(store);
  const runs = (await store.runs()).filter(({ jobId }) => jobId === run.jobId);
  const { sheet, picks, rows } = await readRows(store, run, final);
  const chosen = await chosenOf(store, { run, sheet, rows, picks }, options);
  const isWhole = isEverything(selection) && !picked && reviewed === null;
  const checked = final ? lossOf(runs) : (row: RowOfItem) => row;
  const shown = linesOf(async function* () {
    for await (const row of rows)
      if (row.made === null ? isWhole : (chosen?.has(inRow(row.made.item.id, row.number)) ?? true))
        yield checked(row);
  });
  const wanted = failed && chosen !== null ? [...chosen.values()].map(({ id }) => id) : [];
  const retried = linesOf(() => retriedOf(store, new Set(wanted)));
  const indexes = measured ? new Indexes(nodeDisk) : null;
  const lines = (nameOf: NameOf) =>
    linesOf(async function* () {
      for await (const row of shown) yield await lineOf(run, row, { picks, nameOf, indexes });
    });
  const names = final ? await finalNames(shown) : new Map<number, ReadonlyMap<string, string>>();
  // A rejected file is packed only if somebody names it.
  const namesRejected = picked || reviewed !== null || selection.filters.some(({ key }) => isApproval(key));
  return {
    run,
    runs,
    lostPicks: picked || final ? await lostPicksText(store, run.jobId, run) : null,
    columns: sheet.columns,
    lines: lines((_, file) => placeOf(run, file)),
    packedLines: lines((item, file) => names.get(item.id)?.get(file.file) ?? file.file),
    failed: failed
      ? { ...(await failedManifest(sheet.columns, retried)), partOf: run.jobName, edition: run.edition }
      : null,
    form: (await openSource(run.manifest, {})).form ?? noForm,
    files: () => filesOf(shown, names, namesRejected),
    async page(options) {
      const { files } = await filesOf(shown, names, namesRejected);
      const packed = new Map(files.map(({ file, name }) => [file, name]));
      return packedPage(store, run, ({ file }) => packed.get(file) ?? null, { ...options, isFinal: final });
    },
    missing: () => missingOf(shown),
    mixed: async () => (final ? mixedSetText(await madeOfOtherTakes(store, run, rows, shown), run) : null),
    params: () => paramsOf(rows),
    unlisted: async () => (isWhole && !failed && isNewest(run, runs) ? unlistedOf(store, run, shown) : null),
    localInput: await firstLocal(retried),
  };
}

function isNewest({ id, edition }: Run, runs: readonly Run[]): boolean {
  return !runs.some((other) => other.edition === edition && other.id > id);
}

async function unlistedOf(store: Store, { jobId, edition }: Run, shown: Lines<RowOfItem>): Promise<Credits> {
  const seen = new Set<number>();
  let listed = noCredits;
  for await (const { made } of shown) {
    if (made === null || seen.has(made.item.id)) continue;
    seen.add(made.item.id);
    listed = plus(listed, made.attempts.at(-1)?.charged ?? noCredits);
  }
  return minus(await store.chargedOf(jobId, edition), listed);
}

async function paramsOf(rows: Lines<RowOfItem>): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const { made } of rows) for (const key of Object.keys(made?.item.params ?? {})) found.add(key);
  return found;
}

function isApproval(key: string): boolean {
  return foldedName(key).replace(/^bulkgen_/, "") === "approval";
}

type NameOf = (item: Item, file: MadeItem["files"][number]) => string;

interface Reading {
  run: Run;
  sheet: KeptSheet;
  rows: Lines<RowOfItem>;
  picks: ReadonlySet<number>;
}

/** An item in one of its rows. */
function inRow(id: number, row: number | null): string {
  return `${id} ${row}`;
}

/** The selected items in their rows, as `inRow` names them; null for all. Throws EarlyExit if none is selected. */
async function chosenOf(
  store: Store,
  { run, sheet, rows, picks }: Reading,
  {
    selection,
    failed,
    picked,
    reviewed,
    cwd,
  }: Pick<ExportOptions, "selection" | "failed" | "picked" | "reviewed" | "cwd">,
): Promise<ReadonlyMap<string, Chosen> | null> {
  if (isEverything(selection) && !failed && !picked && reviewed === null) return null;
  const named = reviewed && (await namedIn(store, reviewed, cwd));
  const elsewhere = new Map(named);
  const choice = new ItemChoice(run, selection);
  const own = ownValues(sheet.columns, picks);
  let some = false;
  for await (const { made, number, cells } of rows) {
    if (made === null) continue;
    const { id, state } = made.item;
    elsewhere.delete(id);
    if ((failed && state !== "failed") || (picked && !picks.has(id)) || named?.has(id) === false) continue;
    some = true;
    choice.see(made.item, own(made), { number, cells });
  }
  for (const { name, rowId } of elsewhere.values())
    throw new EarlyExit(
      "usage",
      placed(
        name,
        `${rowId} is not among the rows of run ${run.id}: it belongs to another job or edition, or is an earlier version of its row. Nothing was written.`,
      ),
    );
  if (picked && !some)
    throw nothingPicked(`run ${run.id}`, run.options.sandbox, await lostPicksText(store, run.jobId, run));
  if (failed && !some) throw new EarlyExit("done", `no item of run ${run.id} has failed`);
  return new Map(
    choice
      .chosen(picked ? "picked item" : failed ? "failed item" : "item")
      .map((each) => [inRow(each.id, each.row), each]),
  );
}

/** What a selection knows about an item besides its row: some of the added columns, under their names in the export. */
function ownValues(
  columns: KeptSheet["columns"],
  picks: ReadonlySet<number>,
): (made: MadeItem) => Record<string, string> {
  const own = ownNames(columns);
  const nameOf = (name: FilledColumn) => own[filledColumns.indexOf(name)] ?? name;
  return ({ item: { id, rowId, approval, cells }, files }) => ({
    ...Object.fromEntries(cells.filter(([column]) => column === "step")),
    [nameOf("item")]: rowId,
    [nameOf("file")]: files.map(({ file }) => file).join(between),
    [nameOf("picked")]: pickedCell(picks.has(id)) ?? "",
    [nameOf("approval")]: approval ?? "",
  });
}

/** The items of a review file by their ids. */
async function namedIn(
  store: Store,
  names: readonly ReviewedName[],
  cwd: string,
): Promise<Map<number, { name: ReviewedName; rowId: string }>> {
  const found = new Map<number, { name: ReviewedName; rowId: string }>();
  for (const name of names) {
    const { id, rowId } = await itemNamed(store, name, cwd);
    if (!found.has(id)) found.set(id, { name, rowId });
  }
  return found;
}

interface Telling {
  picks: ReadonlySet<number>;
  nameOf: NameOf;
  /** Null if sizes and durations are not wanted. */
  indexes: Indexes | null;
}

async function lineOf(
  run: Run,
  { number, cells, copy, made, problem, without }: RowOfItem,
  telling: Telling,
): Promise<FilledLine> {
  const item = made && (await filledItem(run, made, telling));
  if (without === undefined || item === null) return { number, cells, copy, item, reason: problem };
  return { number, cells, copy, item: { ...item, reason: without.reason }, reason: null };
}

async function filledItem(
  run: Run,
  { item, files, attempts }: MadeItem,
  { picks, nameOf, indexes }: Telling,
): Promise<FilledItem> {
  const { rowId, state, note, model, prompt, params, approval } = item;
  const newest = attempts.at(-1);
  const filled: FilledFile[] = [];
  for (const file of files) {
    const { bytes, sha256, mime } = file;
    const measures = indexes === null ? {} : await measuresIn(indexes, run, file);
    filled.push({ name: nameOf(item, file), bytes, sha256, mime, ...measures });
  }
  return {
    rowId,
    id: rowIdOf(item),
    state,
    reason: note,
    model,
    prompt,
    params,
    step: stepOf(item),
    files: filled,
    picked: picks.has(item.id),
    approval,
    credits: newest?.charged ?? null,
    taskId: newest?.taskId ?? null,
    externalTaskId: newest?.externalTaskId ?? null,
    evidence: evidenceTexts(item, attempts),
  };
}

/** As the index has them; older lines and rebuilt ones have none. */
async function measuresIn(
  indexes: Indexes,
  { jobName }: Run,
  { file, outFolder }: MadeItem["files"][number],
): Promise<Measures> {
  const index = await indexes.of(jobFolder({ outFolder, jobName }));
  const identity = index.identityAt(file);
  const line = typeof identity === "string" ? index.find(identity) : undefined;
  return line === undefined ? {} : measuresOf(line);
}

/** A file as named in the sheet: within the job's folder, or by its address in the bucket that has it. */
function placeOf(run: Run, { file, bucket }: MadeItem["files"][number]): string {
  return bucket == null ? file : bucketAddress(bucket, jobFolder(run), file);
}

/** States that may need the provider's support. */
const inDoubt: readonly ItemState[] = ["submitting", "unknown", "held", "overdue"];

/** The newest request if it is in doubt, and all earlier lost requests, decided or not. */
function evidenceTexts({ state }: Item, attempts: readonly Attempt[]): string[] {
  const newest = attempts.at(-1);
  const doubtful = attempts.filter((one) => isLost(one) || (one === newest && inDoubt.includes(state)));
  return doubtful.map((attempt) => {
    const evidence = evidenceIn(attempt);
    return evidenceText(evidence, evidence.bodySha256.length);
  });
}

/** It was or may have been charged, and its task is unknown. */
function isLost({ outcome, verdict }: Attempt): boolean {
  return outcome === "unanswered" && (verdict === "charged" || verdict === "undecided");
}

/** The files of the items, each once: several rows may have the same item. */
async function filesOf(
  rows: Lines<RowOfItem>,
  names: ReadonlyMap<number, ReadonlyMap<string, string>>,
  namesRejected: boolean,
): Promise<{ files: PackedFile[]; rejected: number }> {
  const seen = new Set<number>();
  const files: PackedFile[] = [];
  let rejected = 0;
  for await (const { made } of rows) {
    if (made === null || seen.has(made.item.id)) continue;
    const { id, approval, prompt } = made.item;
    seen.add(id);
    if (approval === "rejected" && !namesRejected) rejected += made.files.length;
    else
      for (const file of made.files)
        files.push({ ...file, name: names.get(id)?.get(file.file) ?? file.file, prompt });
  }
  return { files, rejected };
}

/**
 * The failed items, and after them the items whose outputs they use: their rows could not be run without these. Every
 * reference names an id, because the sheet has no steps.
 */
async function* retriedOf(store: Store, failed: ReadonlySet<number>): AsyncGenerator<FailedItem> {
  const wanted = new Set(failed);
  // The set grows while it is read.
  for (const itemId of wanted) {
    const item = await store.item(itemId);
    const inputs = { ...item.inputs };
    for (const { id, rowId, field, output } of await store.parentsOf(itemId)) {
      if (id === null || field === "canary") continue;
      wanted.add(id);
      inputs[field] = `@${rowId}${output === 1 ? "" : `[${output}]`}`;
    }
    const reason = failed.has(itemId) ? reasonOf(item) : `${item.state}; another row takes its output`;
    yield { item: { ...item, inputs }, reason };
  }
}

async function firstLocal(items: Lines<FailedItem>): Promise<string | null> {
  for await (const { item } of items) {
    const local = Object.values(item.inputs).find(isLocalPath);
    if (local !== undefined) return local;
  }
  return null;
}
