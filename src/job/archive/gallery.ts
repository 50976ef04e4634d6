import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { thumbnailOf } from "../../archive/check/thumbnail.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { Credits } from "../../core/money.js";
import type { ArchivedOutput } from "../../core/ports/store.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { runMeant } from "../workspace/find-run.js";
import { mustHaveRuns } from "../workspace/history.js";
import type { Workspace } from "../workspace/workspace.js";

export interface GalleryOptions {
  workspace: Workspace;
  run: number | undefined;
  clock: Clock;
  signal: AbortSignal;
  onProgress(done: number, all: number): void;
  /** Renders the HTML page. */
  render(page: GalleryPage): string;
}

export interface Gallery {
  /** Absolute path of the page. */
  page: string;
  run: number;
  files: number;
}

/** The page's name in a job's folder. */
const pageName = "gallery.html";

/** Writes the contact sheet of a run into its job's folder. Throws EarlyExit when there is no such run. */
export async function writeGallery(options: GalleryOptions): Promise<Gallery> {
  const { workspace, clock } = options;
  mustHaveRuns(workspace);
  const store = openWorkspace(workspace, clock);
  try {
    const run = await runMeant(store, options.run ?? (await store.run("newest"))?.id, null);
    const folder = jobFolder(run);
    const outputs = (await store.archived(run.jobId)).filter(
      (output) => output.item.runId === run.id && jobFolder(output) === folder,
    );
    const files = await filesOf(folder, outputs, options);
    const page = options.render({ job: run.jobName, run: run.id, madeAt: clock.now(), files });
    await nodeDisk.makeFolder(folder);
    await replace(join(folder, pageName), page);
    return { page: join(folder, pageName), run: run.id, files: files.length };
  } finally {
    store.close();
  }
}

async function filesOf(
  folder: string,
  outputs: readonly ArchivedOutput[],
  { signal, onProgress }: GalleryOptions,
): Promise<GalleryFile[]> {
  const files: GalleryFile[] = [];
  for (const output of outputs) {
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; the gallery was not written");
    const isPicture = output.mime.startsWith("image/");
    const { item, file, mime, bytes, charged, savedAt } = output;
    const { rowId, rowNumber, model, prompt, params } = item;
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
      thumbnail: isPicture ? await thumbnailOf(nodeDisk, folder, output) : null,
      // The price is the task's, not each file's.
      credits: output.number === 1 ? charged : null,
    });
    onProgress(files.length, outputs.length);
  }
  return files;
}

/** The page is made anew each time; whoever reads it meanwhile sees the old one or the new one. */
async function replace(path: string, text: string): Promise<void> {
  const temporary = `${path}.new`;
  await writeFile(temporary, text);
  await rename(temporary, path);
}
/**
 * A contact sheet of an archive: one page without a script that opens from the disk and may be sent along with the
 * folder. Prompts and names are text from outside: everything is escaped, and the page's own policy forbids whatever
 * would get through.
 */
export interface GalleryFile {
  /** Relative to the page, with `/` between segments. */
  file: string;
  /** The same of its thumbnail; null where it has none. */
  thumbnail: { file: string; width: number; height: number } | null;
  mime: string;
  bytes: number;
  rowId: string;
  rowNumber: number;
  model: string;
  prompt: string | null;
  params: Readonly<Record<string, string>>;
  credits: Credits | null;
  savedAt: number;
}

export interface GalleryPage {
  job: string;
  run: number;
  madeAt: number;
  files: readonly GalleryFile[];
}
