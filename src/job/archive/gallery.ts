import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { thumbnailOf } from "../../archive/check/thumbnail.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Credits } from "../../core/money.js";
import type { ArchivedOutput, Item } from "../../core/ports/store.js";
import { withWorkspace } from "../../store/workspace/workspace.js";
import { terminalText } from "../../text/terminal.js";
import { reasonOf } from "../workspace/evidence.js";
import { newestRun } from "../workspace/find-run.js";
import { mustHaveRuns } from "../workspace/history.js";
import type { Workspace } from "../workspace/workspace.js";
import { nothingPicked, rowOf } from "./picks.js";

export interface GalleryOptions {
  workspace: Workspace;
  /** The job is that of this run; of the newest where none is named. */
  run: number | undefined;
  clock: Clock;
  signal: AbortSignal;
  onProgress(done: number, all: number): void;
  /** Only what is picked, on a page of its own. */
  picked: boolean;
  /** With what each file cost: a page that is sent to a client has no prices. */
  prices: boolean;
  /** Renders the HTML page. */
  render(page: GalleryPage): string;
}

export interface Gallery {
  /** Absolute path of the page. */
  page: string;
  job: string;
  files: number;
}

/** The names of the pages in a job's folder. */
const pageName = "gallery.html";
const pickedPageName = "picked.html";

/**
 * Writes the contact sheet of a job, with the files of all its runs, into its folder. Throws EarlyExit when there is no
 * such run.
 */
export async function writeGallery(options: GalleryOptions): Promise<Gallery> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  return withWorkspace(workspace, clock, async (store) => {
    const run = await newestRun(options.run)(store);
    const folder = jobFolder(run);
    const picks = await store.picks();
    const outputs = (await store.archived(run.jobId)).filter(
      (output) => jobFolder(output) === folder && (!options.picked || picks.has(output.item.id)),
    );
    if (options.picked && outputs.length === 0)
      throw nothingPicked(`job ${run.jobName}`, run.options.sandbox);
    const files = await filesOf(folder, inSheetOrder(outputs), picks, options);
    const failed = options.picked ? [] : failedOf(await store.itemsOf(run.jobName));
    const page = options.render({ job: run.jobName, madeAt: clock.now(), files, failed });
    await nodeDisk.makeFolder(folder);
    const path = join(folder, options.picked ? pickedPageName : pageName);
    await replace(path, page);
    return { page: path, job: run.jobName, files: files.length };
  });
}

/** Rows that have failed and are still in the manifest, in its order. */
function failedOf(items: readonly Item[]): GalleryFailure[] {
  return items
    .filter(({ state, vanished }) => state === "failed" && !vanished)
    .map((item) => ({
      rowId: item.rowId,
      rowNumber: item.rowNumber,
      prompt: item.prompt,
      reason: terminalText(reasonOf(item)),
    }));
}

/**
 * The newest edition first, and each in the order of its sheet. Variants and earlier versions of a row follow the row's
 * own files.
 */
function inSheetOrder(outputs: readonly ArchivedOutput[]): ArchivedOutput[] {
  const editions = new Map<string, number>();
  const places = new Map<string, number>();
  for (const { item } of outputs.toSorted((a, b) => a.item.id - b.item.id)) {
    if (!editions.has(item.edition)) editions.set(item.edition, editions.size);
    if (!item.vanished || !places.has(rowOf(item))) places.set(rowOf(item), item.position);
  }
  const place = ({ item, number }: ArchivedOutput) => [
    -(editions.get(item.edition) ?? 0),
    places.get(rowOf(item)) ?? item.position,
    item.vanished ? 1 : 0,
    item.variant,
    -item.id,
    number,
  ];
  return outputs
    .map((output) => ({ output, place: place(output) }))
    .toSorted((a, b) => a.place.map((at, index) => at - (b.place[index] ?? 0)).find((by) => by !== 0) ?? 0)
    .map(({ output }) => output);
}

async function filesOf(
  folder: string,
  outputs: readonly ArchivedOutput[],
  picks: ReadonlySet<number>,
  { signal, onProgress, picked, prices }: GalleryOptions,
): Promise<GalleryFile[]> {
  const files: GalleryFile[] = [];
  for (const output of outputs) {
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; the gallery was not written");
    const isPicture = output.mime.startsWith("image/");
    const { item, file, mime, bytes, charged, savedAt } = output;
    const { rowId, rowNumber, model, prompt, params, edition, variant, vanished } = item;
    files.push({
      file,
      mime,
      bytes,
      savedAt,
      rowId,
      rowNumber,
      model,
      prompt,
      params,
      edition,
      variant,
      isEarlier: vanished,
      isPicked: !picked && picks.has(item.id),
      thumbnail: isPicture ? await thumbnailOf(nodeDisk, folder, output) : null,
      // The price is the task's, not each file's.
      credits: prices && output.number === 1 ? charged : null,
    });
    onProgress(files.length, outputs.length);
  }
  return files;
}

/** Replaces the page atomically, so a reader sees either the old page or the new one. */
async function replace(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  await writeFile(temporary, text);
  await rename(temporary, path);
}
/**
 * A contact sheet of an archive: one page without scripts that opens from the disk and can be sent with the folder.
 * Prompts and names are untrusted: everything is escaped, and the page's content policy blocks the rest.
 */
export interface GalleryFile {
  /** Relative to the page, with `/` between segments. */
  file: string;
  /** The path of its thumbnail; null if it has none. */
  thumbnail: { file: string; width: number; height: number } | null;
  mime: string;
  bytes: number;
  rowId: string;
  rowNumber: number;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  /** The empty text for the first edition. */
  edition: string;
  /** 1, or the number of the variant that a redo made. */
  variant: number;
  /** No row asks for it any more: an earlier version of its row. */
  isEarlier: boolean;
  /** A person has picked it; never on a page where everything is picked. */
  isPicked: boolean;
  /** Null where prices are not shown, and for files that cost nothing of their own. */
  credits: Credits | null;
  savedAt: number;
}

/** A row that has no file because it failed. */
export interface GalleryFailure {
  rowId: string;
  rowNumber: number;
  prompt: string | null;
  reason: string;
}

export interface GalleryPage {
  job: string;
  madeAt: number;
  files: readonly GalleryFile[];
  failed: readonly GalleryFailure[];
}
