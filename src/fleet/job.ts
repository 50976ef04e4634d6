import type { Reception, SaveRequest } from "../archive/save.js";

/**
 * A download of one output, as it is handed out. Paths are relative to the folder of all outputs, because hosts may
 * have that folder under different names. It contains neither the key nor a name in the archive.
 */
export interface DownloadJob {
  version: typeof jobVersion;
  /** The job's folder. */
  folder: string;
  /**
   * A file in that folder that proves that a host has the folder of the run, and not another folder with the same name.
   */
  proof: string;
  /** The bucket, if it alone keeps the outputs: then each host has its own folder and its own credentials. */
  bucket: string | null;
  /** The service's address, which decides from which addresses a worker may download. */
  baseUrl: string;
  request: Omit<SaveRequest, "jobFolder" | "replaces">;
}

export const jobVersion = 1;

/** What a worker answers. */
export type JobOutcome =
  | Reception
  /** The worker does not see the folder of the run, or the run that put the job in has ended. */
  | { kind: "elsewhere"; host: string; worker: string }
  /** The worker cannot use the bucket: its host lacks the credentials, or they do not allow it. */
  | { kind: "no_bucket"; host: string; worker: string; reason: string }
  /** The worker does not understand the job. */
  | { kind: "other_version"; host: string; version: number };

/** A process that takes jobs. */
export interface WorkerEntry {
  host: string;
  pid: number;
  /** Of bulkgen. */
  version: string;
  /** Downloads that it does at once; 0 while it finishes the last ones. */
  downloads: number;
  /** Downloads in progress. */
  busy: number;
  /** Downloads that it has done since it began. */
  done: number;
  /**
   * The run itself; a worker that only downloads; a worker that also stands by for a run whose process is gone; or a
   * worker that only stands by.
   */
  does: "run" | "archive" | "standby" | "submit";
}

/** A worker as others see it. */
export interface SeenWorker extends WorkerEntry {
  /** UTC ms, by the clock of the database. */
  startedAt: number;
}
