import { mediaFields } from "../../api/inputs.js";
import { fetchInput } from "../../service/inputs/fetch.js";
import { familiarParams } from "../../service/models/familiar-params.js";
import type { SqliteState } from "../../service/state/sqlite-state.js";
import type { TaskRecord } from "../../service/state/state.js";
import type { SandboxModel } from "../catalogue/model.js";
import { alikeOf, type MediaJob, seedOf, sha256 } from "./job.js";
import type { MediaPool } from "./pool.js";

export interface StudioSettings {
  models: ReadonlyMap<string, SandboxModel>;
  mediaSide: number | undefined;
  inputRoot: string | undefined;
  /** An output of this sandbox by its URL; undefined for any other URL. */
  own: (address: string) => Promise<Uint8Array> | undefined;
  made: MadeMedia;
  /** Aborted when the sandbox closes. */
  closing: AbortSignal;
}

/** How many bytes of media are cached in memory; other media are made again when requested. */
const keptBytesMax = 96 * 1024 * 1024;

/**
 * Makes outputs. Their bytes depend only on the request, its inputs and how often it was made, so only these are stored: an output is
 * made when it is first requested, and again after it was dropped from the cache, with the same bytes each time.
 */
export class Studio {
  private readonly kept = new Map<string, Uint8Array>();
  private readonly making = new Map<string, Promise<Uint8Array>>();
  private keptBytes = 0;

  constructor(
    private readonly settings: StudioSettings,
    private readonly state: SqliteState,
    private readonly pool: MediaPool,
  ) {}

  /** Another task of the same request makes another output, unless its seed is fixed. */
  record(task: TaskRecord): void {
    const { parameters = [] } = this.settings.models.get(task.model) ?? {};
    const usualSeed = parameters.find(({ key }) => key === "seed")?.default;
    const alike = alikeOf(task.model, task.input, usualSeed);
    if (alike !== null) this.state.countTake(task.id, alike);
  }

  /**
   * Fetches the inputs of a task and makes its outputs from them once, which shows whether they can be used. Resolves
   * with the problem, or null.
   */
  async prepare(task: TaskRecord): Promise<string | null> {
    try {
      for (const field of mediaFields) {
        const address = task.input[field];
        if (address !== undefined) await this.keepInput(task.id, field, address);
      }
      await this.output(task, 1);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** The bytes of one output, numbered from 1. */
  output(task: TaskRecord, number: number): Promise<Uint8Array> {
    const name = `${task.id}/${number}`;
    const kept = this.kept.get(name);
    if (kept) return Promise.resolve(kept);
    const running =
      this.making.get(name) ?? this.render(task, number).finally(() => this.making.delete(name));
    this.making.set(name, running);
    return running;
  }

  private async render(task: TaskRecord, number: number): Promise<Uint8Array> {
    const { made } = this.settings;
    const job = this.job(task, number);
    const key = [job.maker, job.seed, job.extension, job.longSide ?? "usual"].join(" ");
    const bytes = made.get(key) ?? (await this.pool.run(job));
    made.keep(key, bytes);
    this.keep(`${task.id}/${number}`, bytes);
    return bytes;
  }

  private job(task: TaskRecord, number: number): MediaJob {
    const model = this.settings.models.get(task.model);
    if (!model) throw new Error(`the model ${task.model} is no longer there`);
    const media = this.state.inputsOf(task.id);
    const take = this.state.takeOf(task.id);
    const first = seedOf(task.model, task.input, media);
    const seed = take === 1 ? first : sha256(`${first} take ${take}`);
    return {
      maker: model.maker,
      model: model.key,
      longSide: this.settings.mediaSide ?? model.longSide,
      input: familiarParams(task.input),
      media,
      seed: number === 1 ? seed : sha256(`${seed} ${number}`),
      extension: task.outputs[number - 1] ?? "",
    };
  }

  private async keepInput(taskId: string, field: string, address: string): Promise<void> {
    const bytes = await this.fetched(field, address);
    const wanted = field.split("_")[0] ?? "";
    const { fileTypeFromBuffer } = await import("file-type");
    const found = await fileTypeFromBuffer(bytes);
    if (!found?.mime.startsWith(`${wanted}/`)) {
      throw new Error(`${field}: ${address} is ${found?.mime ?? "of no known kind"}, not ${wanted}`);
    }
    this.state.saveInput(taskId, field, sha256(bytes), bytes);
  }

  private async fetched(field: string, address: string): Promise<Uint8Array> {
    const { own, inputRoot, closing } = this.settings;
    try {
      return await (own(address) ?? fetchInput(address, inputRoot, closing));
    } catch (error) {
      throw new Error(`${field}: ${error instanceof Error ? error.message : error}`);
    }
  }

  /** Keeps the newest outputs up to a number of bytes. */
  private keep(name: string, bytes: Uint8Array): void {
    this.kept.set(name, bytes);
    this.keptBytes += bytes.byteLength;
    for (const [oldest, old] of this.kept) {
      if (this.keptBytes <= keptBytesMax || oldest === name) return;
      this.kept.delete(oldest);
      this.keptBytes -= old.byteLength;
    }
  }
}

/**
 * Media by the job that made them. The same job always makes the same bytes, so a request that is sent again, for another
 * task or to the next sandbox of a program, costs nothing.
 */
export class MadeMedia {
  private readonly kept = new Map<string, Uint8Array>();
  private bytes = 0;

  /** Keeps at most this many bytes. */
  constructor(private readonly bytesMax: number) {}

  get(key: string): Uint8Array | undefined {
    const found = this.kept.get(key);
    if (found === undefined) return undefined;
    // Those that were wanted last are forgotten last.
    this.kept.delete(key);
    this.kept.set(key, found);
    return found;
  }

  keep(key: string, made: Uint8Array): void {
    this.bytes += made.byteLength - (this.kept.get(key)?.byteLength ?? 0);
    this.kept.set(key, made);
    for (const [oldest, old] of this.kept) {
      if (this.bytes <= this.bytesMax) return;
      this.kept.delete(oldest);
      this.bytes -= old.byteLength;
    }
  }
}

/** What the sandboxes of this process have made. */
export const madeHere = new MadeMedia(32 * 1024 * 1024);
