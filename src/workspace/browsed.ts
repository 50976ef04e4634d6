import { jobFolder } from "../archive/disk/names.js";
import type { FileDocument } from "../documents/file.js";
import type { RunDocument } from "../documents/run.js";
import type { BrowsedFile, BrowsedRun } from "../store/browse/browser.js";

/** The document of a run that was read page by page. `alive` is the run that a process works on now. */
export function runDocument(browsed: BrowsedRun, alive: number | null): RunDocument {
  const { outFolder, accountId, options, ...run } = browsed;
  return { ...run, alive: alive === run.run, folder: jobFolder({ outFolder, jobName: run.job }) };
}

export function fileDocument(browsed: BrowsedFile): FileDocument {
  const { outFolder, itemRunId, taskId, ...file } = browsed;
  return { ...file, folder: jobFolder({ outFolder, jobName: file.job }) };
}
