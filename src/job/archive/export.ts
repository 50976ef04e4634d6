import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { variantKey } from "../../core/identity.js";
import type { ItemState } from "../../core/item.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { KeptSheet } from "../../core/ports/sheet.js";
import type { ArchivedFile, Item, Run, Store } from "../../core/ports/store.js";
import { isLocalPath } from "../../manifest/local-inputs.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { selectItems } from "../orders/retry.js";
import { evidenceIn, reasonOf } from "../workspace/evidence.js";
import { evidenceText } from "../workspace/evidence-text.js";
import { mustHaveRuns } from "../workspace/history.js";
import type { Workspace } from "../workspace/workspace.js";
import { type FailedItem, failedManifest } from "./failed-manifest.js";
import { type FilledItem, type FilledLine, type FilledSheet, filledSheet } from "./filled-sheet.js";

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
