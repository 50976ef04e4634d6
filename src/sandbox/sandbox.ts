import { availableParallelism } from "node:os";
import PQueue from "p-queue";
import type { PlanName } from "../api/plans.js";
import type { Clock, Random } from "../clock.js";
import {
  errorAnswer,
  ServiceRefusal,
  type WorldRequest,
  type WorldResponse,
} from "../service/answers/answers.js";
import type { FileAnswer } from "../service/answers/reply.js";
import { HostedService, type OutputMaker } from "../service/hosted.js";
import { inputProblem, isLoopback } from "../service/inputs/fetch.js";
import { ensureDefaultAccount } from "../service/state/default-account.js";
import { SqliteState } from "../service/state/sqlite-state.js";
import type { TaskRecord } from "../service/state/state.js";
import { allSwitches, type SwitchSettings } from "../service/state/switches.js";
import { withOutputs } from "../service/world/generate.js";
import { catalogue } from "./catalogue/catalogue.js";
import type { SandboxModel } from "./catalogue/model.js";
import type { Behind } from "./faults/gateway.js";
import type { FaultPlanSettings } from "./faults/plan.js";
import { Pretence } from "./pretence.js";
import { sha256 } from "./studio/job.js";
import { MediaPool, PoolFull } from "./studio/pool.js";
import { type MadeMedia, madeHere, Studio } from "./studio/studio.js";

const jobsWaitingMax = 256;
/** How many tasks have their inputs fetched at a time: far below what the pool lets wait. */
const preparedAtOnce = 4;

const contentTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  webp: "image/webp",
  mp4: "video/mp4",
  mp3: "audio/mpeg",
  wav: "audio/wav",
};

/** A sandbox without its socket: the service, and the studio as its only maker. */
export class Sandbox implements Behind, OutputMaker<FileAnswer> {
  readonly state: SqliteState;
  /** What is listed, by key. */
  readonly models: ReadonlyMap<string, SandboxModel>;
  /** How long a signed output URL is good, in milliseconds. */
  readonly urlMs: number;
  private readonly service: HostedService<FileAnswer>;
  private readonly pool = new MediaPool(Math.min(2, availableParallelism()), jobsWaitingMax);
  private readonly studio: Studio;
  private readonly preparing = new PQueue({ concurrency: preparedAtOnce });
  private readonly closing = new AbortController();

  /** `origin` is what output URLs begin with; it need not be known before the first request. */
  constructor(
    private readonly options: SandboxOptions,
    private readonly origin: () => string,
  ) {
    const { clock, random, taskMs, inputRoot, plan, credits, onError } = options;
    const { urlMs, mediaSide, made = madeHere } = options;
    const switches = allSwitches({
      ...options.faults?.switches,
      ...options.switches,
      ...(urlMs ? { urlMs } : {}),
    });
    this.urlMs = switches.urlMs;
    this.models = new Map(
      withOutputs(options.models ?? catalogue, switches).map((model) => [model.key, model]),
    );
    this.state = new SqliteState(options.file);
    const secret = ensureDefaultAccount(this.state, random, clock.now(), { plan, credits });
    const workshop = new Pretence(this.models, random, taskMs);
    const world = {
      models: this.models,
      workshop,
      inputProblem: (value: string) => inputProblem(value, inputRoot),
      secret,
      switches,
      origin,
    };
    this.service = new HostedService({ clock, random, state: this.state, world, maker: this, onError });
    const own = (address: string) => this.ownOutput(address);
    const { signal: closing } = this.closing;
    const settings = { models: this.models, mediaSide, inputRoot, own, made, closing };
    this.studio = new Studio(settings, this.state, this.pool);
  }

  api(request: WorldRequest): Promise<WorldResponse> {
    return this.service.api(request);
  }

  file(path: string, query: Record<string, string>): Promise<FileAnswer | WorldResponse> {
    return this.service.file(path, query);
  }

  expired(): WorldResponse {
    return this.service.expired();
  }

  /** Credits the refunds of an account that are due, for readers of its balance that send no request. */
  settle(accountId: string): void {
    this.service.settle(accountId);
  }

  record(task: TaskRecord): void {
    this.studio.record(task);
  }

  /** Fetches the inputs of a task, and decides it. */
  begin(task: TaskRecord): void {
    void this.preparing.add(async () => {
      const error = await this.studio.prepare(task);
      if (this.closing.signal.aborted) return;
      // A task that cannot be decided now stays open, and the next process continues it.
      await this.service.decide(task, error).catch((failure: Error) => this.options.onError?.(failure));
    });
  }

  async output(task: TaskRecord, number: number): Promise<FileAnswer | WorldResponse> {
    const bytes = await this.studio.output(task, number).catch((error) => this.unmade(error));
    if (!(bytes instanceof Uint8Array)) return bytes;
    const extension = task.outputs[number - 1] ?? "";
    const contentType = contentTypes[extension] ?? "application/octet-stream";
    return { bytes, contentType, etag: `"${sha256(bytes)}"` };
  }

  /** Continues the tasks whose inputs an earlier process had not fetched yet. */
  resume(): void {
    for (const task of this.state.undecidedTasks()) this.begin(task);
  }

  /** Resolves when no task waits for its inputs any more. */
  settled(): Promise<void> {
    return this.preparing.onIdle();
  }

  /** Interrupts work: unfinished tasks stay open, and the next process continues them. */
  async close(): Promise<void> {
    this.closing.abort();
    this.preparing.clear();
    await this.pool.close();
    await this.preparing.onIdle();
    this.service.close();
    this.state.close();
  }

  /** What a full pool answers to a download; any other failure stays an error. */
  private unmade(error: Error): WorldResponse {
    if (!(error instanceof PoolFull)) {
      this.options.onError?.(error);
      throw error;
    }
    return errorAnswer(
      new ServiceRefusal(503, "BUSY", `Try again in a moment: ${error.message}.`, { "Retry-After": "2" }),
    );
  }

  /**
   * An input of a task may be the output of another: it is read directly, after checking its signature. A restarted
   * sandbox may have another port, so any port of this machine will do.
   */
  private ownOutput(address: string): Promise<Uint8Array> | undefined {
    const url = URL.canParse(address) ? new URL(address) : null;
    if (url === null || url.protocol !== "http:" || !isLoopback(url.hostname)) return undefined;
    const found = this.service.lookUp(url.pathname, Object.fromEntries(url.searchParams));
    if ("task" in found) return this.studio.output(found.task, found.number);
    if (url.origin !== this.origin()) return undefined;
    return Promise.reject(new Error(`${address} answered ${found.refused.status}`));
  }
}

export interface SandboxOptions {
  clock: Clock;
  random: Random;
  /** The SQLite file of the sandbox's state, or ":memory:". */
  file: string;
  /** 0, the default, lets the system choose. */
  port?: number;
  /** "Pro" when the account is first made; given later, it changes the account's plan. */
  plan?: PlanName;
  /** 500 by default; used only when the account is first made. */
  credits?: number;
  /** How long every task takes, in milliseconds, instead of each model's own duration. */
  taskMs?: { min: number; max: number };
  /** The folder below which local files are taken as inputs; without it none are. */
  inputRoot?: string;
  /** How long a signed output URL is good, in milliseconds; the switch of that name by default. */
  urlMs?: number;
  /** Models to use instead of the sandbox's own. */
  models?: readonly SandboxModel[];
  /** The longer side (px) of pictures and films, instead of each model's own. */
  mediaSide?: number | undefined;
  /** Media made before; by default those of all sandboxes of this process. */
  made?: MadeMedia;
  /** Behaviour that the service's page leaves open. */
  switches?: SwitchSettings;
  /** Gets the sandbox's own failures, such as a full disk; callers only see an internal error. */
  onError?: (error: Error) => void;
  /** What goes wrong. */
  faults?: FaultPlanSettings;
}
