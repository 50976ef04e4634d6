import { type DiskRefusal, refusalNow } from "./disk/room.js";
import { Partials } from "./download/partial.js";
import { Indexes, type JobIndex } from "./index-file.js";
import { type SavePorts, type SaveRequest, type SaveResult, saveOutput } from "./save.js";

/** The archive as one process uses it: its saves share what they know of indexes and of broken transfers. */
export interface Archive {
  save(request: SaveRequest, signal?: AbortSignal): Promise<SaveResult>;
  /** Why the disk would refuse every file of a job's folder now; null where there is room. */
  refusal(jobFolder: string): Promise<DiskRefusal | null>;
  /** What the index of a job's folder tells. */
  indexOf(jobFolder: string): Promise<JobIndex>;
  /** Puts away what only a further save could have used. */
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
