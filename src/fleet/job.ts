import type { Reception, SaveRequest } from "../archive/save.js";

/**
 * What is handed out: the download of one output. Paths are relative to the folder of all outputs, because hosts may have
 * it under different names. Neither the key nor a name in the archive is in it.
 */
export interface DownloadJob {
  version: typeof jobVersion;
  /** The job's folder. */
  folder: string;
  /** A file in that folder that shows that a host has the folder of the run, and not another of the same name. */
  proof: string;
  /** The bucket that alone keeps the outputs: then each host has a folder of its own. Its credentials are each host's. */
  bucket: string | null;
  /** Of the service, which decides what addresses may be fetched from. */
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
  /** Downloads that it does at once; 0 while it finishes its last. */
  downloads: number;
  /** Downloads in progress. */
  busy: number;
  /** Downloads that it has done since it began. */
  done: number;
  /**
   * It is the run itself, does archiving only, stands by to go on with a run whose process is gone, or does that alone, with
   * no downloads of its own.
   */
  does: "run" | "archive" | "standby" | "submit";
}

/** A worker as others see it. */
export interface SeenWorker extends WorkerEntry {
  /** UTC ms, by the clock of the database. */
  startedAt: number;
}
