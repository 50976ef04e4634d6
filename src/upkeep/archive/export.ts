import { bucketAddress } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { ItemState } from "../../core/item.js";
import type { Attempt } from "../../core/ports/attempt.js";
import {
  filledColumns,
  type Item,
  type KeptSheet,
  type MadeItem,
  type Run,
  type SheetRow,
} from "../../core/ports/store.js";
import { itemNamed } from "../../job/orders/item-named.js";
import { type Chosen, ItemChoice, sheetOf, withVariants } from "../../job/orders/request.js";
import { placed, type ReviewedName } from "../../job/orders/review.js";
import { isLocalPath } from "../../manifest/local-inputs.js";
import { openSource } from "../../manifest/read.js";
import { noForm, type SheetForm } from "../../manifest/shape/source.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import type { Store } from "../../store/workspace/workspace.js";
import { evidenceIn, evidenceText, reasonOf } from "../../workspace/evidence.js";
import { newestRun } from "../../workspace/find-run.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { lostPicksText } from "../../workspace/lost-picks.js";
import { withStore } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";
import {
  between,
  type FailedItem,
  type FilledItem,
  type FilledLine,
  type FilledSheet,
  failedManifest,
  filledSheet,
  type Lines,
  linesOf,
  mappedLines,
  ownNames,
  pickedCell,
} from "./filled-sheet.js";
import { nothingPicked } from "./picks.js";

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
  sheet: FilledSheet;
  /** The format of the manifest, if the manifest still exists. */
  form: SheetForm;
  /** The files of the items. */
  files(): Promise<MadeItem["files"]>;
  /** An input file that the failed items name by a path; null if there is none. */
  localInput: string | null;
  /** Which picks an export of the picked items lacks, in words; null if it lacks none. */
  lostPicks: string | null;
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
  return withStore(workspace, clock, async (store) => use(await exportFrom(store, options)));
}

/** Reads a run from an open store. Throws EarlyExit if there is no run. */
export async function exportFrom(
  store: Store,
  options: Omit<ExportOptions, "workspace" | "clock">,
): Promise<Export> {
  const { selection, failed, picked } = options;
  const run = await newestRun(options.run)(store);
  const runs = (await store.runs()).filter(({ jobId }) => jobId === run.jobId);
  const sheet = (await sheetOf(store, run)) ?? (await sheetFrom(store, run));
  const picks = await store.picks();
  const variantsMax = await store.variantsMax(run.jobId);
  const rows = linesOf(() => rowsOf(store, run, sheet, variantsMax));
  const chosen = await chosenOf(store, { run, sheet, rows, picks }, options);
  const isWhole = isEverything(selection) && !picked && options.reviewed === null;
  const shown = linesOf(async function* () {
    for await (const row of rows)
      if (row.made === null ? isWhole : (chosen?.has(inRow(row.made.item.id, row.number)) ?? true)) yield row;
  });
  const wanted = failed && chosen !== null ? [...chosen.values()].map(({ id }) => id) : [];
  const retried = linesOf(() => retriedOf(store, new Set(wanted)));
  return {
    run,
    runs,
    lostPicks: picked ? await lostPicksText(store, run.jobId, run) : null,
    sheet: failed
      ? { ...(await failedManifest(sheet.columns, retried)), partOf: run.jobName, edition: run.edition }
      : filledSheet(
          sheet.columns,
          mappedLines(shown, (row) => lineOf(run, row, picks)),
        ),
    form: (await openSource(run.manifest, {})).form ?? noForm,
    files: () => filesOf(shown),
    localInput: await firstLocal(retried),
  };
}

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
  { selection, failed, picked, reviewed, cwd }: Parameters<typeof exportFrom>[1],
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
  const nameOf = (name: (typeof filledColumns)[number]) => own[filledColumns.indexOf(name)] ?? name;
  return ({ item: { id, rowId }, files }) => ({
    [nameOf("item")]: rowId,
    [nameOf("file")]: files.map(({ file }) => file).join(between),
    [nameOf("picked")]: pickedCell(picks.has(id)) ?? "",
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

/** How many items are read at a time. */
const itemsAtOnce = 1_000;

/** For runs without a stored sheet: the rows as their items describe them. */
async function sheetFrom(store: Store, { jobId, jobName, edition }: Run): Promise<KeptSheet> {
  const order: Pick<Item, "position" | "id" | "key">[] = [];
  for await (const page of store.history(jobName))
    for (const item of page)
      if (item.edition === edition) order.push({ position: item.position, id: item.id, key: item.key });
  order.sort((a, b) => a.position - b.position || a.id - b.id);
  async function* pages() {
    for (let from = 0; from < order.length; from += itemsAtOnce) {
      const keys = order.slice(from, from + itemsAtOnce).map(({ key }) => key);
      const made = byKey(await store.made(jobId, keys));
      yield keys.flatMap((key) => made.get(key) ?? []).map(({ item }) => rowFrom(item));
    }
  }
  const columns = new Set<string>();
  for await (const page of pages())
    for (const { cells } of page) for (const column of Object.keys(cells)) columns.add(column);
  return { columns: [...columns], pages };
}

function rowFrom({ key, rowNumber, rowId, model, prompt, params, inputs }: Item): SheetRow {
  const cells = {
    id: rowId,
    model,
    ...(prompt === null ? {} : { prompt }),
    ...Object.fromEntries(Object.entries(params).map(([name, value]) => [`params.${name}`, value])),
    ...inputs,
  };
  return { number: rowNumber, cells, keys: [key], problem: null };
}

function byKey(made: readonly MadeItem[]): Map<string, MadeItem> {
  return new Map(made.map((each) => [each.item.key, each]));
}

interface RowOfItem {
  number: number;
  cells: SheetRow["cells"];
  made: MadeItem | null;
  problem: string | null;
}

/** Each row with its items, each item followed by its variants. */
async function* rowsOf(
  store: Store,
  { jobId, edition }: Run,
  sheet: KeptSheet,
  variantsMax: number,
): AsyncGenerator<RowOfItem> {
  for await (const page of sheet.pages()) {
    // One row may have more items than are read at a time.
    const asked = page.flatMap((row) =>
      (row.keys.length === 0 ? [null] : row.keys).map((key, index) => ({
        row,
        keys: key === null ? [] : withVariants(key, variantsMax),
        isLast: index >= row.keys.length - 1,
      })),
    );
    let isMade = false;
    for (let from = 0; from < asked.length; from += itemsAtOnce) {
      const now = asked.slice(from, from + itemsAtOnce);
      const all = await store.made(
        jobId,
        now.flatMap(({ keys }) => keys),
      );
      const known = byKey(all.filter(({ item }) => item.edition === edition));
      for (const { row, keys, isLast } of now) {
        for (const made of keys.flatMap((key) => known.get(key) ?? [])) {
          isMade = true;
          yield { number: row.number, cells: row.cells, made, problem: null };
        }
        if (!isLast) continue;
        if (!isMade) yield { number: row.number, cells: row.cells, made: null, problem: row.problem };
        isMade = false;
      }
    }
  }
}

function lineOf(run: Run, { cells, made, problem }: RowOfItem, picks: ReadonlySet<number>): FilledLine {
  return { cells, item: made && filledItem(run, made, picks.has(made.item.id)), reason: problem };
}

function filledItem(run: Run, { item, files, attempts }: MadeItem, picked: boolean): FilledItem {
  const { rowId, state, note } = item;
  const newest = attempts.at(-1);
  return {
    rowId,
    state,
    reason: note,
    files: files.map((file) => placeOf(run, file)),
    picked,
    credits: newest?.charged ?? null,
    taskId: newest?.taskId ?? null,
    externalTaskId: newest?.externalTaskId ?? null,
    evidence: evidenceTexts(item, attempts),
  };
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
async function filesOf(rows: Lines<RowOfItem>): Promise<MadeItem["files"]> {
  const found = new Map<number, MadeItem["files"]>();
  for await (const { made } of rows) if (made) found.set(made.item.id, made.files);
  return [...found.values()].flat();
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
