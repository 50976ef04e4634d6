import { createHash } from "node:crypto";
import { accessSync, constants, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { mediaFields } from "../../api/inputs.js";
import { bucketAddress } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { isAccepted } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { inCredits } from "../../core/money.js";
import type { ArchivedOutput, Item, Run } from "../../core/ports/store.js";
import { rowIdOf } from "../../core/variant.js";
import { madeWritable } from "../../store/open.js";
import type { Store } from "../../store/workspace/workspace.js";
import { shellWord } from "../../text/shell.js";
import { terminalText } from "../../text/terminal.js";
import { leaves } from "../../text/within.js";
import { writeWhole } from "../../whole-file.js";
import { evidenceOf, evidenceText, reasonOf } from "../../workspace/evidence.js";
import { newestRun } from "../../workspace/find-run.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { withStore } from "../../workspace/state.js";
import { lostPicks, lostPicksText, rowOf } from "../../workspace/takes/lost-picks.js";
import type { Workspace } from "../../workspace/workspace.js";
import { mappedLines } from "./filled-sheet.js";
import { refuseKept } from "./kept-files.js";
import { nothingPicked } from "./picks.js";
import { openPreviews, type Preview, type Previews } from "./previews.js";
import {
  lossOf,
  type MissingRow,
  madeOfOtherTakes,
  missingOf,
  mixedSetText,
  readRows,
} from "./sheet-rows.js";

export interface GalleryOptions {
  workspace: Workspace;
  /** The gallery shows the job of this run; of the newest run if none is named. */
  run: number | undefined;
  clock: Clock;
  signal: AbortSignal;
  onProgress(done: number, all: number): void;
  /**
   * Only the picked files, or only those of the final set (see `finalOf`), on a separate page for a client: without failed items,
   * and without choices.
   */
  only: "picked" | "final" | null;
  /** Show what each file cost. A page for a client has no prices. */
  prices: boolean;
  /** The file, or the existing folder, where the page goes. Default: the job's folder. */
  to?: string | undefined;
  /** Renders the HTML page. */
  render(page: GalleryPage): string;
}

export interface Gallery {
  /** Absolute path of the page. */
  page: string;
  job: string;
  files: number;
  /** Which picks a page of the picked files lacks, in words; null if it lacks none. */
  lostPicks: string | null;
  /** The rows that a page of the final set lacks; none on other pages. */
  missing: readonly MissingRow[];
  /** Which files of the final set were made of another take than it has, and what to do, in words; null if none was. */
  mixed: string | null;
}

/** What the page holds, as it is embedded in it. */
export interface GalleryPage {
  job: string;
  /** A run of the job: other commands mean the newest run, which may be of another job by then. */
  run: number;
  madeAt: number;
  /** Distinguishes the choices made on this page from those of other jobs and workspaces. */
  key: string;
  /** What to type after a command to mean this workspace: nothing, or ` --sandbox`. */
  flags: string;
  /** Everything is picked, and nobody is asked to choose. */
  isForClient: boolean;
  cards: readonly GalleryCard[];
}

/** A file, or an item without a file because it failed or is held. */
export interface GalleryCard {
  /** The name by which commands find exactly this item; empty if nothing can be chosen. */
  name: string;
  rowId: string;
  rowNumber: number;
  /** Identifies the row: an item, its variants and their earlier versions have the same value. */
  row: string;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  /** Other columns by which the job's rows differ, such as the axes of a matrix. */
  columns: Readonly<Record<string, string>>;
  /** The empty text for the first edition. */
  edition: string;
  /** 1, or the number of the variant that a redo made. */
  variant: number;
  /** An earlier version of its row, for which no row asks any more. */
  isEarlier: boolean;
  /** A person has picked it; never set on a page that shows only picked files. */
  isPicked: boolean;
  state: "archived" | "waiting" | "approved" | "rejected" | "failed" | "held";
  file: GalleryFile | null;
  /** Why there is no file, and what can be done about it. */
  trouble: GalleryTrouble | null;
}

export interface GalleryFile extends Preview {
  /** Relative to the page, with `/` between segments. */
  path: string;
  /** Where it is, if a bucket has it instead of this disk: `s3://…`. A page cannot show it. */
  address: string | null;
  mime: string;
  bytes: number;
  savedAt: number;
  /** Why it is not proven to be whole, if a person accepted it as it came. */
  unproven: string | null;
  /** Null if prices are not shown, and for files without a cost of their own. */
  price: string | null;
}

interface GalleryTrouble {
  reason: string;
  /** About the request, for the service's support. */
  evidence: string | null;
  commands: readonly string[];
}

/** The names of the pages in a job's folder. */
const pageNames = { all: "gallery.html", picked: "picked.html", final: "final.html" };

/**
 * Writes the gallery of a job, with the files of all its runs, into its folder. Throws EarlyExit when there is no such
 * run.
 */
export async function writeGallery(options: GalleryOptions): Promise<Gallery> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  return withStore(workspace, clock, async (store) => {
    const run = await newestRun(options.run)(store);
    const folder = jobFolder(run);
    const picks = await store.picks();
    const { only } = options;
    const lostText = only === null ? null : await lostPicksText(store, run.jobId, run);
    const final = only === "final" ? await finalItems(store, run) : null;
    const wanted = final?.items ?? (only === null ? null : await pickedOnes(store, picks));
    const outputs = await outputsOf(store, run, wanted);
    if (only === "picked" && outputs.length === 0)
      throw nothingPicked(`job ${run.jobName}`, run.options.sandbox, lostText);
    if (only === "final" && outputs.length === 0)
      throw new EarlyExit("usage", `job ${run.jobName} has no final file yet. Nothing was written.`);
    const path = pagePath(folder, options);
    if (options.to !== undefined) await refuseKept({ file: path, path, workspace }, store, { run });
    const pageFolder = dirname(path);
    const troubled = only !== null ? [] : (await store.itemsOf(run.jobName)).filter(isInTrouble);
    const things = [...outputs, ...troubled.map((item) => ({ item, number: 1 }))];
    const flags = run.options.sandbox ? " --sandbox" : "";
    await inFolder(path, options, async () => {
      const previews = await openPreviews(pageFolder);
      const isFinal = only === "final";
      const making = {
        ...options,
        isFinal,
        columns: null,
        store,
        folder,
        pageFolder,
        picks,
        flags,
        previews,
      };
      const cards = await cardsOf(inSheetOrder(things), making);
      if (only === null && pageFolder === folder) await previews.keep(outputs);
      const page = options.render({
        job: run.jobName,
        run: run.id,
        madeAt: clock.now(),
        key: await keyOf(store, run),
        flags,
        isForClient: only !== null,
        cards,
      });
      await writeWhole(path, page);
    });
    const { missing = [], mixed = null } = final ?? {};
    return { page: path, job: run.jobName, files: outputs.length, lostPicks: lostText, missing, mixed };
  });
}

/** The items of the final set whose files are there, the rows without one, and what does not go together. */
async function finalItems(
  store: Store,
  run: Run,
): Promise<{ items: ReadonlySet<number>; missing: readonly MissingRow[]; mixed: string | null }> {
  const runs = (await store.runs()).filter(({ jobId }) => jobId === run.jobId);
  const rows = mappedLines((await readRows(store, run, true)).rows, lossOf(runs));
  const items = new Set<number>();
  for await (const { made, without } of rows)
    if (made !== null && without === undefined) items.add(made.item.id);
  const mixed = mixedSetText(await madeOfOtherTakes(store, run, rows), run);
  return { items, missing: await missingOf(rows), mixed };
}

async function pickedOnes(store: Store, picks: ReadonlySet<number>): Promise<ReadonlySet<number>> {
  const lost = await lostPicks(store);
  return new Set([...picks].filter((id) => !lost.has(id)));
}

async function outputsOf(
  store: Store,
  run: Run,
  wanted: ReadonlySet<number> | null,
): Promise<ArchivedOutput[]> {
  const folder = jobFolder(run);
  const outputs: ArchivedOutput[] = [];
  for await (const page of store.archived(run.jobId))
    for (const output of page)
      if (jobFolder(output) === folder && (wanted?.has(output.item.id) ?? true)) outputs.push(output);
  return outputs;
}

export interface PackedPageOptions
  extends Pick<GalleryOptions, "clock" | "signal" | "onProgress" | "render"> {
  /** It shows a final set. */
  isFinal: boolean;
  /** The only columns of the sheet that it shows, and what it calls them; null for all. */
  columns: ReadonlyMap<string, string> | null;
}

/**
 * A page of these files for a client, as it lies beside them under other names, such as in a ZIP; and the thumbnails that it
 * shows. Thumbnails are kept in the job's folder.
 */
export async function packedPage(
  store: Store,
  run: Run,
  nameOf: (output: ArchivedOutput) => string | null,
  options: PackedPageOptions,
): Promise<{ html: string; thumbnails: { path: string; name: string }[] }> {
  const folder = jobFolder(run);
  const outputs = (await outputsOf(store, run, null)).filter((output) => nameOf(output) !== null);
  const previews = await openPreviews(folder);
  const flags = run.options.sandbox ? " --sandbox" : "";
  const making = { ...options, only: "final" as const, prices: false, store, folder, pageFolder: folder };
  const things = inSheetOrder(outputs) as ArchivedOutput[];
  const cards = await cardsOf(things, { ...making, picks: new Set(), flags, previews });
  const thumbnails = new Map<string, string>();
  for (const [index, { file }] of cards.entries()) {
    const output = things[index];
    const name = output && nameOf(output);
    if (!file || !output || name == null) continue;
    if (file.thumbnail?.file === file.path) file.thumbnail = { ...file.thumbnail, file: name };
    else if (file.thumbnail) thumbnails.set(file.thumbnail.file, join(folder, file.thumbnail.file));
    file.path = name;
  }
  const html = options.render({
    job: run.jobName,
    run: run.id,
    madeAt: options.clock.now(),
    key: await keyOf(store, run),
    flags,
    isForClient: true,
    cards,
  });
  return { html, thumbnails: [...thumbnails].map(([name, path]) => ({ name, path })) };
}

function pagePath(folder: string, { to, only }: Pick<GalleryOptions, "to" | "only">): string {
  const name = pageNames[only ?? "all"];
  if (to === undefined) return join(folder, name);
  if (statSync(to, { throwIfNoEntry: false })?.isDirectory()) return join(to, name);
  if (/\.html?$/i.test(to)) return to;
  throw new EarlyExit("usage", `--to: expected a folder, or a file whose name ends with .html, got ${to}`);
}

/**
 * Makes a page in its folder. Throws EarlyExit where no file can be written, as for a colleague who may only read the workspace.
 */
async function inFolder(
  path: string,
  { to }: Pick<GalleryOptions, "to">,
  make: () => Promise<void>,
): Promise<void> {
  const folder = dirname(path);
  try {
    await nodeDisk.makeFolder(folder);
    accessSync(folder, constants.W_OK);
    await make();
  } catch (error) {
    const { code, syscall, path: at = folder } = error as NodeJS.ErrnoException;
    if (syscall === undefined || leaves(folder, at)) throw error;
    const other = to === undefined ? "write the page elsewhere with --to FOLDER" : "choose another place";
    throw new EarlyExit(
      "usage",
      `${path} cannot be written (${code}). Either ${madeWritable(code, folder)}, or ${other}.`,
    );
  }
}

/** Failed items whose rows are still in the manifest, and held ones. */
function isInTrouble({ state, vanished }: Item): boolean {
  return state === "held" || (state === "failed" && !vanished);
}

/** The job is identified by its first run, because other workspaces may use the same job name. */
async function keyOf(store: Store, { jobId, jobName }: Run): Promise<string> {
  const first = (await store.runs()).find((run) => run.jobId === jobId);
  const facts = JSON.stringify([jobName, first?.startedAt, first?.accountId, first?.manifest]);
  return createHash("sha256").update(facts).digest("hex").slice(0, 24);
}

type Thing = ArchivedOutput | { item: Item; number: number };

/**
 * The newest edition first, and each in the order of its sheet. Variants and earlier versions of a row follow the row's
 * own files.
 */
function inSheetOrder(things: readonly Thing[]): Thing[] {
  const editions = new Map<string, number>();
  const places = new Map<string, number>();
  for (const { item } of things.toSorted((a, b) => a.item.id - b.item.id)) {
    if (!editions.has(item.edition)) editions.set(item.edition, editions.size);
    if (!item.vanished || !places.has(rowOf(item))) places.set(rowOf(item), item.position);
  }
  const place = ({ item, number }: Thing) => [
    -(editions.get(item.edition) ?? 0),
    places.get(rowOf(item)) ?? item.position,
    item.vanished ? 1 : 0,
    item.variant,
    -item.id,
    number,
  ];
  return things
    .map((thing) => ({ thing, place: place(thing) }))
    .toSorted((a, b) => a.place.map((at, index) => at - (b.place[index] ?? 0)).find((by) => by !== 0) ?? 0)
    .map(({ thing }) => thing);
}

interface Making
  extends Pick<GalleryOptions, "only" | "prices" | "signal" | "onProgress">,
    Pick<PackedPageOptions, "isFinal" | "columns"> {
  store: Store;
  folder: string;
  /** Where the page is. */
  pageFolder: string;
  picks: ReadonlySet<number>;
  previews: Previews;
  /** What is typed after a command to mean this workspace. */
  flags: string;
}

async function cardsOf(things: readonly Thing[], making: Making): Promise<GalleryCard[]> {
  const { picks, signal, onProgress } = making;
  const isForClient = making.only !== null;
  const columns = shownColumns(things, making.columns);
  const named = making.isFinal ? namedAsRows(things) : new Map<number, never>();
  const cards: GalleryCard[] = [];
  const files = previewsOf(things, making);
  for (const thing of things) {
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; the gallery was not written");
    const { item } = thing;
    const { rowNumber, model, prompt, params, edition, vanished, cells } = item;
    const { rowId, variant } = named.get(item.id) ?? item;
    const isFile = "file" in thing;
    cards.push({
      name: isForClient || !isFile ? "" : thing.taskId || thing.file,
      rowId,
      rowNumber,
      row: rowOf(item),
      model,
      prompt,
      params,
      columns: Object.fromEntries(
        cells.flatMap(([column, text]) => {
          const name = columns.get(column);
          return name === undefined ? [] : [[name, text]];
        }),
      ),
      edition,
      variant,
      isEarlier: vanished,
      isPicked: !isForClient && picks.has(item.id),
      state: stateOf(item, isForClient),
      file: isFile ? ((await files.next()).value ?? null) : null,
      trouble: isFile ? null : await troubleOf(item, making),
    });
    onProgress(cards.length, things.length);
  }
  return cards;
}

/** Items of which no other take is on the page, with the names of their rows: how often they were made is nobody's concern. */
function namedAsRows(things: readonly Thing[]): Map<number, Pick<Item, "rowId" | "variant">> {
  const takes = new Map<string, Map<number, Item>>();
  for (const { item } of things) {
    const row = takes.get(rowOf(item)) ?? new Map<number, Item>();
    takes.set(rowOf(item), row.set(item.id, item));
  }
  const alone = [...takes.values()].filter(({ size }) => size === 1).flatMap((row) => [...row.values()]);
  return new Map(alone.map((item) => [item.id, { rowId: rowIdOf(item), variant: 1 }]));
}

/** How many pictures are shrunk at once: most of that work is outside of JavaScript. */
const atOnce = 4;

/** The files in their order, some of them made ahead. */
async function* previewsOf(things: readonly Thing[], making: Making): AsyncGenerator<GalleryFile, undefined> {
  const outputs = things.filter((thing) => "file" in thing);
  const ahead: Promise<GalleryFile>[] = [];
  for (let next = 0; next < outputs.length || ahead.length > 0; ) {
    while (ahead.length < atOnce && next < outputs.length) {
      const made = fileOf(outputs[next++] as ArchivedOutput, making);
      // It is awaited in its turn; until then its error is not one that nobody handles.
      made.catch(() => undefined);
      ahead.push(made);
    }
    yield (await ahead.shift()) as GalleryFile;
  }
  return undefined;
}

function stateOf({ state, approval }: Item, isForClient: boolean): GalleryCard["state"] {
  if (state === "failed" || state === "held") return state;
  return isForClient ? "archived" : (approval ?? "archived");
}

async function fileOf(
  output: ArchivedOutput,
  { folder, pageFolder, prices, previews }: Making,
): Promise<GalleryFile> {
  const { file, bucket, mime, bytes, savedAt, charged, number, check } = output;
  const unproven = isAccepted(check) ? check : null;
  const isAway = bucket != null && (await nodeDisk.size(join(folder, file))) === null;
  const address = isAway ? bucketAddress(bucket, folder, file) : null;
  const path = relative(pageFolder, join(folder, file)).split(sep).join("/");
  const preview = await previews.of({ ...output, file: path });
  // The price is the task's, not each file's.
  const price = prices && number === 1 && charged !== null ? inCredits(charged) : null;
  return { path, address, mime, bytes, savedAt, unproven, ...preview, price };
}

async function troubleOf(item: Item, { store, flags }: Making): Promise<GalleryTrouble> {
  const reason = terminalText(reasonOf(item));
  const { runId, rowId } = item;
  if (item.state === "failed")
    return { reason, evidence: null, commands: [`bulkgen retry ${runId ?? ""}`.trimEnd() + flags] };
  const evidence = await evidenceOf(store, item.id);
  // Another job may have an item of this name.
  const resolve = `bulkgen resolve ${shellWord(runId === null ? rowId : `${runId}:${rowId}`)}`;
  return {
    reason,
    evidence: evidence && evidenceText(evidence),
    commands: ["--adopt TASK", "--resubmit", "--skip"].map((way) => `${resolve} ${way}${flags}`),
  };
}

/** Columns that differ for each item, or that are shown elsewhere on the page. */
const shownElsewhere = new Set<string>([
  "id",
  "model",
  "prompt",
  "output",
  "priority",
  "repeat",
  ...mediaFields,
]);
const valuesMax = 40;
const valueCharactersMax = 80;

/** What a page shows of the sheet, and what it calls that: of the wanted columns, or of all, those by which rows differ. */
function shownColumns(
  things: readonly Thing[],
  wanted: PackedPageOptions["columns"],
): ReadonlyMap<string, string> {
  const differing = [...differingColumns(things)];
  return new Map(
    differing.flatMap((column) => {
      const name = wanted === null ? column : wanted.get(column);
      return name === undefined ? [] : [[column, name]];
    }),
  );
}

/** Columns of the sheet with a few short values, such as those of a matrix, or those that group rows. */
function differingColumns(things: readonly Thing[]): ReadonlySet<string> {
  const found = new Map<string, Set<string>>();
  const tooMany = new Set<string>();
  for (const { item } of things) {
    for (const [column, text] of item.cells) {
      if (tooMany.has(column) || shownElsewhere.has(column) || column.startsWith("params.")) continue;
      const values = found.get(column) ?? new Set();
      found.set(column, values.add(text));
      if (values.size > valuesMax || text.length > valueCharactersMax) tooMany.add(column);
    }
  }
  return new Set(
    [...found].flatMap(([column, { size }]) => (size > 1 && !tooMany.has(column) ? [column] : [])),
  );
}
