import { type DiskRefusal, refusalNow } from "./disk/space.js";
import { Partials } from "./download/partial.js";
import { Indexes, type JobIndex } from "./index-file.js";
import { type SavePorts, type SaveRequest, type SaveResult, saveOutput } from "./save.js";

/** The archive of one process. All saves share the open indexes and the broken transfers. */
export interface Archive {
  save(request: SaveRequest, signal?: AbortSignal): Promise<SaveResult>;
  /** Why the disk would refuse every file of a job's folder now; null where there is room. */
  refusal(jobFolder: string): Promise<DiskRefusal | null>;
  /** The index of a job's folder. */
  indexOf(jobFolder: string): Promise<JobIndex>;
  /** Removes the temporary files of broken transfers. */
  close(): Promise<void>;
}

export function openArchive(ports: Omit<SavePorts, "indexes" | "partials" | "signal">): Archive {
  const shared = { ...ports, indexes: new Indexes(ports.disk), partials: new Partials() };
  return {
    save: (request, signal) => saveOutput(request, signal === undefined ? shared : { ...shared, signal }),
    refusal: (jobFolder) => refusalNow(ports.disk, jobFolder),
    indexOf: (jobFolder) => shared.indexes.of(jobFolder),
    close: () => shared.partials.close(),
  };
}
