import { join } from "node:path";
import { foldName, jobFolder } from "../../archive/disk/names.js";
import type { ExitName } from "../../core/exit.js";
import type { Item, KeptSheet, MadeItem, Run, SheetRow } from "../../core/ports/store.js";
import { type OtherTake, otherTakesText } from "../../job/orders/other-takes.js";
import type { Store } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import { type Decisions, decisionsOn, finalFileNames, finalOf } from "../../workspace/takes/final-set.js";
import { byKey, itemsAtOnce, sheetOf, withTakes } from "../../workspace/takes/sheet-takes.js";
import { type Lines, linesOf, mappedLines } from "./filled-sheet.js";
import type { FinalSet } from "./final-files.js";
import { locator } from "./folder-of-file.js";

/**
 * The sheet of a run, and its rows with what was made of them, which are read page by page: there may be more than fit into
 * memory. With `final`, only the final takes.
 */
export async function readRows(store: Store, run: Run, final: boolean) {
  const sheet = await rowsSheet(store, run);
  const picks = await store.picks();
  const variantsMax = await store.variantsMax(run.jobId);
  const takes = () => rowsOf(store, run, sheet, variantsMax);
  if (!final) return { sheet, picks, rows: linesOf(() => eachTake(takes())) };
  const decisions = await decisionsOn(store, run.jobId);
  return { sheet, picks, rows: linesOf(() => finalRows(takes(), decisions)) };
}

/**
 * What the files of final rows are called in a ZIP: by item, and by their names in the job's folder. The number of a variant
 * is left out where the item has no other take in the set.
 */
export async function finalNames(rows: Lines<RowOfItem>): Promise<Map<number, ReadonlyMap<string, string>>> {
  const names = new Map<number, Map<string, string>>();
  const taken = new Set<string>();
  const renamed: { made: MadeItem; own: Map<string, string> }[] = [];
  for await (const { made, isAlone } of rows) {
    if (made === null || made.files.length === 0 || names.has(made.item.id)) continue;
    const own = new Map<string, string>();
    names.set(made.item.id, own);
    for (const { file } of made.files) own.set(file, file);
    if (isAlone === true && made.item.variant > 1) renamed.push({ made, own });
    else for (const { file } of made.files) taken.add(foldName(file));
  }
  for (const { made, own } of renamed) {
    const wanted = finalFileNames(made);
    for (const [index, { file }] of made.files.entries()) {
      const name = wanted[index] ?? file;
      // Where another row's file has that name, this one keeps its own.
      if (taken.has(foldName(name))) continue;
      taken.add(foldName(name));
      own.set(file, name);
    }
  }
  return names;
}

/** The sheet of a run as it was kept, or as its items describe it. */
async function rowsSheet(store: Store, run: Run): Promise<ReadSheet> {
  const kept = await sheetOf(store, run);
  return kept === null
    ? { ...(await sheetFrom(store, run)), isKept: false }
    : { columns: kept.columns, pages: () => kept.pages(), isKept: true };
}

interface ReadSheet extends KeptSheet {
  /** Whether it is the sheet as it was read: one that is made from its items does not say how their rows were combined. */
  isKept: boolean;
}

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

/** An item's takes in one of its rows: the item, followed by its variants. None for a row that nothing was made of. */
interface RowOfTakes {
  number: number;
  cells: SheetRow["cells"];
  takes: readonly MadeItem[];
  problem: string | null;
  /** Which copy of its row's combination the item is, from 1; null where no sheet was kept. */
  copy: number | null;
}

export interface RowOfItem extends Omit<RowOfTakes, "takes"> {
  made: MadeItem | null;
  /** In a final set: no other take of the item is in it. */
  isAlone?: boolean;
  /** In a final set: every take of the item. */
  takes?: readonly MadeItem[];
  /** In a final set: why there is no file. */
  without?: { reason: string; exit: ExitName };
}

async function* rowsOf(
  store: Store,
  { jobId, edition }: Run,
  sheet: ReadSheet,
  variantsMax: number,
): AsyncGenerator<RowOfTakes> {
  for await (const page of sheet.pages()) {
    // One row may have more items than are read at a time.
    const asked = page.flatMap((row) =>
      (row.keys.length === 0 ? [null] : row.keys).map((key, index) => ({
        row,
        key,
        copy: sheet.isKept ? index + 1 : null,
        isLast: index >= row.keys.length - 1,
      })),
    );
    let isMade = false;
    for await (const items of withTakes(store, jobId, asked, variantsMax))
      for (const { row, copy, isLast, takes: all } of items) {
        const { number, cells, problem } = row;
        const takes = all.filter(({ item }) => item.edition === edition);
        if (takes.length > 0) yield { number, cells, takes, problem: null, copy };
        isMade ||= takes.length > 0;
        if (!isLast) continue;
        if (!isMade) yield { number, cells, takes, problem, copy: sheet.isKept ? 1 : null };
        isMade = false;
      }
  }
}

async function* eachTake(rows: AsyncIterable<RowOfTakes>): AsyncGenerator<RowOfItem> {
  for await (const { takes, ...row } of rows) {
    if (takes.length === 0) yield { ...row, made: null };
    for (const made of takes) yield { ...row, made };
  }
}

async function* finalRows(rows: AsyncIterable<RowOfTakes>, decisions: Decisions): AsyncGenerator<RowOfItem> {
  for await (const { takes, ...row } of rows) {
    const final = finalOf(takes, decisions);
    if ("takes" in final)
      for (const made of final.takes) yield { ...row, made, takes, isAlone: final.takes.length === 1 };
    else {
      const [first = null] = takes;
      yield { ...row, made: first && { ...first, files: [] }, without: { ...final, reason: final.without } };
    }
  }
}

/**
 * Says of a final row whose file is not where it was archived that it is without one. `runs` are all of the job. A bucket's files
 * are not looked for.
 */
export function lossOf(runs: readonly Run[]): (row: RowOfItem) => RowOfItem {
  const folderOf = locator(runs);
  const sandbox = runs.at(-1)?.options.sandbox ? " --sandbox" : "";
  return (row) => {
    const gone = row.made?.files.find((file) => file.bucket == null && folderOf(file) === undefined);
    if (gone === undefined) return row;
    const reason = `${gone.file} is missing or changed; \`bulkgen verify${sandbox} --repair\` downloads it again, free of charge`;
    return { ...row, without: { reason, exit: "failed" } };
  };
}

export interface MissingRow {
  row: number;
  rowId: string;
  reason: string;
  exit: ExitName;
}

/** The rows without a final file. */
export async function missingOf(rows: Lines<RowOfItem>): Promise<MissingRow[]> {
  const found: MissingRow[] = [];
  for await (const { number, cells, made, without, problem } of rows)
    if (without !== undefined)
      found.push({
        row: number,
        rowId: made?.item.rowId ?? cells["id"] ?? "",
        reason: problem ?? without.reason,
        exit: without.exit,
      });
  return found;
}

const missingShown = 10;

/** Which rows have no final file, and why, a line each; null if none lacks one. */
export function missingText(missing: readonly Omit<MissingRow, "exit">[]): string | null {
  if (missing.length === 0) return null;
  const named = missing
    .slice(0, missingShown)
    .map(
      ({ row, rowId, reason }) =>
        `  row ${row}${rowId === "" ? "" : ` (${terminalText(rowId)})`}: ${terminalText(reason)}`,
    );
  const more = missing.length > missingShown ? [`  and ${missing.length - missingShown} more`] : [];
  return [`${count(missing.length, "row has", "rows have")} no final file:`, ...named, ...more].join("\n");
}

/**
 * The rows of a final set whose files were made of another take than the set has of that item. `shown` are the rows that are
 * handed over, of `all` rows of the set.
 */
export async function madeOfOtherTakes(
  store: Store,
  { jobId }: Run,
  all: Lines<RowOfItem>,
  shown: Lines<RowOfItem> = all,
): Promise<OtherTake[]> {
  if ((await store.variantsMax(jobId)) === 1) return [];
  const finals = new Map<string, Item>();
  const others = new Map<string, { item: Item; chosen: Item }>();
  for await (const { made, takes = [] } of all) {
    if (made === null || takes.length < 2) continue;
    finals.set(made.item.key, made.item);
    for (const { item } of takes) others.set(item.key, { item, chosen: made.item });
  }
  for (const key of finals.keys()) others.delete(key);
  const found: OtherTake[] = [];
  for await (const { made, without, takes = [] } of others.size === 0 ? [] : shown) {
    if (made === null || without !== undefined) continue;
    const { rowId, price, parents = [] } = made.item;
    const instead = takes.findLast(
      ({ item, files }) =>
        files.length > 0 &&
        (item.approval ?? "approved") === "approved" &&
        item.parents?.every(({ key }) => !others.has(key)),
    );
    for (const { key } of parents) {
      const other = others.get(key);
      if (other === undefined) continue;
      const { rowId: madeOf, approval } = other.item;
      found.push({
        chosen: other.chosen,
        other: { rowId, madeOf, approval, price },
        instead: instead?.item.rowId,
      });
    }
  }
  return found;
}

/** The same in words; null if there are none. */
export function mixedSetText(takes: readonly OtherTake[], { options }: Run): string | null {
  const advice = otherTakesText(takes, options.sandbox ? " --sandbox" : "");
  const items = new Set(takes.map(({ other }) => other.rowId)).size;
  return (
    advice && `${count(items, "file was", "files were")} made of another take than the set has. ${advice}`
  );
}

export async function finalSetOf(store: Store, run: Run): Promise<FinalSet> {
  const runs = (await store.runs()).filter(({ jobId }) => jobId === run.jobId);
  const rows = mappedLines((await readRows(store, run, true)).rows, lossOf(runs));
  const names = await finalNames(rows);
  const files: FinalSet["files"] = [];
  for await (const { number: row, made, without } of rows) {
    if (made === null || without !== undefined) continue;
    const { id, rowId, prompt } = made.item;
    for (const { file, outFolder } of made.files) {
      const path = join(jobFolder({ outFolder, jobName: run.jobName }), file);
      files.push({ row, rowId, path, name: names.get(id)?.get(file) ?? file, prompt });
    }
  }
  const missing = (await missingOf(rows)).map(({ row, rowId, reason }) => ({ row, rowId, reason }));
  return { files, missing, mixed: mixedSetText(await madeOfOtherTakes(store, run, rows), run) };
}
