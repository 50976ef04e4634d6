import type { InputType } from "../api/inputs.js";
import type { Category } from "../api/records.js";
import type { Clock, Random } from "../clock.js";
import type { Proxies } from "../proxy/variables.js";

/** Any value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

/** A kind of media that a model takes as input, besides the prompt. */
export type MediaName = "image" | "video" | "audio";

/** What `models.yaml` says of a provider, with the defaults of its kind. A job keeps it as it was when the job was taken. */
export interface ProviderSettings {
  /** As the models name it. */
  name: string;
  kind: string;
  /** Without a slash at their ends; one for most kinds, several for a pool of machines, none if the kind has no server. */
  addresses: string[];
  /** The environment variable that holds the key; the key itself is in no file and no database. */
  keyEnv: string | null;
  /** The file that holds the key, relative to the models file or absolute. */
  keyFile: string | null;
  /** More headers of each request. `{{ key }}` stands for the key. */
  headers: Record<string, string>;
  /** How many jobs the provider has at once; of several machines, each. */
  concurrency: number;
  /** How many requests it is sent in a minute at most; null for no limit. */
  perMinute: number | null;
  /** How long one submit may go unanswered (ms). Of a kind that works here: how long it may work. */
  timeoutMs: number;
  /** How many jobs may wait for it; more are refused with 429. */
  waiting: number;
  /** What only providers of its kind have, as checked by the kind's `provider` schema. */
  details: JsonObject;
}

/** What `models.yaml` says of a model. A job keeps it as it was when the job was taken. */
export interface ModelSettings {
  key: string;
  name: string;
  category: Category;
  input: InputType;
  /** What only models of its provider's kind have, such as `request`, as checked by the kind's `model` schema. */
  details: JsonObject;
}

/** An input that has been fetched. */
export interface MediaFile {
  /** Where it is on this disk. */
  path: string;
  /** Its media type, such as `image/png`. */
  type: string;
  /** A public address of the same bytes; null if there is none, and the provider gets the bytes themselves. */
  address: string | null;
}

/** One generation, complete in itself. */
export interface ProviderJob {
  /** A lower-case UUID, which is also the task's id. */
  id: string;
  model: ModelSettings;
  /** "" if the model takes none. */
  prompt: string;
  /** Values by parameter: those of the request, and the defaults of the others. */
  params: Record<string, string>;
  media: Partial<Record<MediaName, MediaFile>>;
  /** A folder of its own for files that it makes. It exists, and is emptied before a job runs again. */
  folder: string;
}

/**
 * One finished file: bytes, a file in the job's folder, or an address to fetch it from. Headers go to that address only; a
 * provider's key is among them only if the provider asks for it there.
 */
export type JobOutput =
  | { bytes: Uint8Array }
  | { path: string }
  | { url: string; headers?: Record<string, string> };

/** What the provider says a job cost, such as `{ amount: 0.04, unit: "USD" }`; the unit may be its own, such as "credits". */
export interface Cost {
  amount: number;
  unit: string;
}

export interface Done {
  outputs: JobOutput[];
  /** The provider's name for the job, if it has one. */
  ref?: string;
  cost?: Cost;
}

/** The provider has taken the job and works on it. `resume` is all that `poll` needs, also in another process. */
export interface Accepted {
  ref: string;
  resume: Json;
}

export interface Running {
  running: true;
  /** When to ask again (ms); the caller's own pace by default. */
  afterMs?: number;
  /** What the provider says about it, for people. */
  note?: string;
  /** What `poll` needs from now on, if that has changed. */
  resume?: Json;
}

/** A submit that had no answer. */
export interface Sent {
  /** When it was sent (UTC ms). */
  at: number;
  /** Whether another job is known by that ref. */
  isTaken(ref: string): boolean;
}

/** A provider that was asked for a job answered, and nothing that the models file says fits its answer. */
export class OddAnswer extends Error {
  override readonly name = "OddAnswer";
}

/**
 * A way to get jobs done. `submit` and `poll` throw `JobRefused` and `JobLater`. Anything else that `submit` throws means that nobody
 * knows whether the job was accepted; anything else that `poll` throws means that the job is asked for again later.
 */
export interface Provider {
  /**
   * Whether an unanswered submit may be sent again. `yes`: running twice costs nothing (commands, templates). `by id`: `find`
   * tells. `no`: it waits for the provider's own word or for a person.
   */
  readonly repeatable: "yes" | "by id" | "no";
  /** Sends one request that may cost money, never twice. */
  submit(job: ProviderJob, signal: AbortSignal): Promise<Done | Accepted>;
  poll?(resume: Json, signal: AbortSignal): Promise<Done | Running>;
  /** What became of a submit without an answer; null if the provider certainly never got it. Throws if nobody can tell (yet). */
  find?(job: ProviderJob, signal: AbortSignal, sent: Sent): Promise<Accepted | null>;
  /** A job by the name that a person has found at the provider. Throws with a sentence if it cannot be asked for by a name. */
  named?(job: ProviderJob, ref: string, signal: AbortSignal): Promise<Accepted>;
  /** Asks the provider to stop; `billed` is null if it does not say. */
  cancel?(resume: Json, signal: AbortSignal): Promise<{ billed: boolean | null }>;
  /**
   * Costs nothing: whether program or server are there, the key is good, and they have what these models need. Null, or what
   * is wrong in one sentence.
   */
  check?(signal: AbortSignal, models: readonly ModelSettings[]): Promise<string | null>;
  close?(): Promise<void>;
}

export type RefusalKind = "moderation" | "input" | "parameter" | "provider";

/** The provider's own word that a job has failed for good. The message is shown to clients: no key, no path of this machine. */
export class JobRefused extends Error {
  override readonly name = "JobRefused";

  constructor(
    readonly kind: RefusalKind,
    message: string,
    /** Whether the provider takes money for it all the same; null if it does not say. */
    readonly billed: boolean | null = null,
  ) {
    super(message);
  }
}

/** The job was certainly not accepted, and may be sent again after a while. */
export class JobLater extends Error {
  override readonly name = "JobLater";

  constructor(
    message: string,
    /** How long to wait (ms). */
    readonly afterMs: number,
    /** Whether all jobs of the provider wait, or this one alone. */
    readonly scope: "job" | "provider",
  ) {
    super(message);
  }
}

/** What a kind of provider gets from the process that it runs in. */
export interface ProviderPlace {
  clock: Clock;
  random: Random;
  /** The folder of the models file, where its relative paths start. */
  folder: string;
  /** The provider's key, read anew each time; null if it has none. */
  key(): string | null;
  /** The environment for programs, without any key. */
  env: Readonly<Record<string, string>>;
  /** The proxies of the network; none if absent. */
  proxies?: Proxies | null | undefined;
}

/** One mistake in a models file. */
export interface Mistake {
  /** Where: the keys and indexes that lead there, below the model or provider that was handed in. */
  path: (string | number)[];
  /** What is wrong and what was expected, as one sentence without a full stop. */
  message: string;
}
