import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Clock, Random } from "../clock.js";
import type { ProviderKind } from "../providers/kind.js";
import type { ProviderSettings } from "../providers/provider.js";
import type { Proxies } from "../proxy/variables.js";
import {
  errorAnswer,
  ServiceRefusal,
  succeed,
  type WorldRequest,
  type WorldResponse,
} from "../service/answers/answers.js";
import type { StoredFile } from "../service/answers/reply.js";
import { HostedService } from "../service/hosted.js";
import { inputBytesMax, isLoopback } from "../service/inputs/fetch.js";
import type { ServiceModel } from "../service/models/model.js";
import { signingSecret } from "../service/state/default-account.js";
import { SqliteState } from "../service/state/sqlite-state.js";
import { repeatKeysKeptMs, type TaskRecord } from "../service/state/state.js";
import { allSwitches } from "../service/state/switches.js";
import type { ServiceExtras } from "../service/world/present.js";
import { ServedKeys } from "./keys.js";
import { type ModelsFile, type OwnModel, readModelsFile } from "./models/models-file.js";
import { inputAddressProblem } from "./works/inputs.js";
import { Journal } from "./works/journal.js";
import { Works, type WorksParts } from "./works/works.js";

export interface OwnServiceOptions {
  clock: Clock;
  random: Random;
  /** The folder with its state, outputs and inputs; made if it is not there. ":memory:" keeps nothing and does no jobs. */
  folder: string;
  /** The models file. */
  file: string;
  kinds: readonly ProviderKind[];
  /** Where the variables with the providers' keys are. */
  env: Readonly<Record<string, string | undefined>>;
  /** The proxies on the way to providers, to what they have made, and to inputs; none if absent. */
  proxies?: Proxies | null;
  /** Why the file, which has changed, may not be used as it is now; null if nothing is against it. */
  refusal?: (models: {
    models: readonly Pick<OwnModel, "settings" | "provider">[];
    allowedHosts: readonly string[];
  }) => string | null;
  /** Gets one sentence for what people should know, such as a models file that cannot be read any more. */
  onNote: (note: string) => void;
}

/** How long outputs and inputs are kept (ms). */
const keptMs = 7 * 24 * 60 * 60 * 1_000;
const cleanEveryMs = 60 * 60 * 1_000;
/** How often the models file is looked at (ms). */
const reloadMs = 2_000;

/** A models file that does what the user has not agreed to. */
class ModelsRefused extends Error {
  override readonly name = "ModelsRefused";
}

/** The service of a models file, without its socket. */
export class OwnService {
  readonly state: SqliteState;
  readonly keys: ServedKeys;
  readonly works: Works;
  readonly journal: Journal;
  /** Called for each task that has failed, with the reason; not for those that were cancelled. */
  onFailed: (task: TaskRecord, why: string) => void = () => {};
  private readonly service: HostedService<StoredFile>;
  private models: ModelsFile;
  private listed: ReadonlyMap<string, ServiceModel> = new Map();
  private readonly closing = new AbortController();
  /** Where each key file was when its key was first used: a link to another one is no key of this provider. */
  private readonly keyFiles = new Map<string, string>();
  private readonly refusals = new Map<string, { at: number; refusal: string | null }>();
  private seen: string;
  /** Why the file as it is now is not in force. */
  private refused: string | null = null;

  /** Reads the models file, and opens or makes the state. Rejects with ModelsFileError for a file that cannot be used. */
  static async open(options: OwnServiceOptions, origin: () => string): Promise<OwnService> {
    const text = await readFile(options.file, "utf8");
    const models = await readFrom(options, text);
    const refusal = options.refusal?.(models) ?? null;
    if (refusal !== null) throw new ModelsRefused(`${options.file} was not used: ${refusal}`);
    return new OwnService(options, origin, models, text);
  }

  private constructor(
    private readonly options: OwnServiceOptions,
    private readonly origin: () => string,
    models: ModelsFile,
    text: string,
  ) {
    const { clock, random, folder } = options;
    this.models = models;
    this.seen = text;
    this.list();
    const inMemory = folder === ":memory:";
    this.state = new SqliteState(inMemory ? folder : join(folder, "state.db"), { durable: true });
    this.journal = new Journal(this.state);
    this.keys = new ServedKeys(this.state, random);
    this.keys.fillUp();
    const secret = this.state.transact(() => signingSecret(this.state, random));
    this.works = new Works({
      clock,
      random,
      state: this.state,
      journal: this.journal,
      folder,
      modelsFolder: dirname(resolve(options.file)),
      model: (key) => this.models.models.find(({ listed }) => listed.key === key),
      kinds: options.kinds,
      allowedHosts: () => this.models.allowedHosts,
      key: (settings) => keyOf(settings, options, this.keyFiles),
      env: withoutSecrets(options.env, () => this.models),
      proxies: options.proxies ?? null,
      own: (accountId) => (address) => this.ownFile(address, accountId),
      decision: (task, error, outputs) => this.service.decision(task, error, outputs),
      commit: (work) => this.service.run(work),
      refusal: (job) => this.refusalOf(job),
      onError: (error) => options.onNote(error.message),
      onFailed: (task, why) => this.onFailed(task, why),
    });
    const own = this;
    const world = {
      get models() {
        return own.listed;
      },
      workshop: this.works,
      inputProblem: (value: string) =>
        inputAddressProblem(value, (address) => this.isOwn(address), this.models.allowedHosts),
      get announced() {
        return own.announced();
      },
      progress: (task: TaskRecord) => this.works.times.progress(task),
      budget: (keyId: string, now: number) => this.keys.budget(keyId, now),
      secret,
      switches: allSwitches({ badParams: "refused" }),
      origin,
    };
    const maker = {
      record: (task: TaskRecord) => this.works.record(task),
      begin: (task: TaskRecord) => this.works.begin(task),
      output: (task: TaskRecord, number: number) => this.works.files.output(task, number),
    };
    const onError = (error: Error) => options.onNote(error.message);
    this.service = new HostedService({ clock, random, state: this.state, world, maker, onError });
  }

  /** Goes on with the jobs of earlier processes, and looks after the models file and old files. */
  async start(): Promise<void> {
    if (this.options.folder === ":memory:") return;
    await this.works.resume();
    void this.every(reloadMs, () => this.reload());
    void this.every(cleanEveryMs, () => this.works.files.clean(this.options.clock.now() - keptMs));
  }

  api(request: WorldRequest): Promise<WorldResponse> {
    return this.service.api(request);
  }

  file(path: string, query: Record<string, string>): Promise<StoredFile | WorldResponse> {
    return this.service.file(path, query);
  }

  /** The models as they are listed. */
  get listedModels(): readonly ServiceModel[] {
    return [...this.listed.values()];
  }

  /** Every model with its provider. */
  get served(): ModelsFile {
    return this.models;
  }

  settle(accountId: string): void {
    this.service.settle(accountId);
  }

  /** POST /api/v1/task/:id/cancel */
  cancel(request: WorldRequest, taskId: string): Promise<WorldResponse> {
    return this.service.extra(request, async ({ account }) => {
      const task = this.state.task(taskId);
      if (task?.accountId !== account.id)
        return errorAnswer(new ServiceRefusal(404, "TASK_NOT_FOUND", "There is no such task."));
      const done = await this.works.cancel(taskId);
      return succeed({ task_id: taskId, result: done.replace(" ", "_") });
    });
  }

  /** PUT /api/v1/inputs: the bytes become an address that only tasks of the same account may name. */
  putInput(request: WorldRequest, body: AsyncIterable<Uint8Array>): Promise<WorldResponse> {
    return this.service.extra(request, async ({ account }) => {
      const uploads = this.works.files.within("uploads");
      await mkdir(uploads, { recursive: true });
      const part = join(uploads, `${this.options.random.uuid()}.part`);
      const hash = createHash("sha256").update(account.id);
      let size = 0;
      const file = await open(part, "w");
      try {
        for await (const chunk of body) {
          size += chunk.byteLength;
          if (size > inputBytesMax)
            return errorAnswer(
              new ServiceRefusal(413, "PAYLOAD_TOO_LARGE", `An input has at most ${inputBytesMax} bytes.`),
            );
          hash.update(chunk);
          await file.write(chunk);
        }
        await file.sync();
      } finally {
        await file.close();
      }
      const id = hash.digest("hex");
      await rename(part, join(uploads, id));
      const at = this.options.clock.now();
      const type = request.headers["content-type"] ?? "application/octet-stream";
      await this.service.run(() =>
        this.journal.addUpload({ id, accountId: account.id, type, bytes: size, at }),
      );
      return succeed({
        url: `${this.origin()}/inputs/${id}`,
        expires_at: new Date(at + keptMs).toISOString(),
      });
    });
  }

  /** Ends all work; what has been sent is waited for. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.works.close();
    this.service.close();
    this.state.close();
  }

  /** Why a job may not be sent now; looked at anew as often as the models file is. */
  private refusalOf({ model, settings }: Parameters<WorksParts["refusal"]>[0]): string | null {
    const { clock, refusal } = this.options;
    if (refusal === undefined) return null;
    const name = JSON.stringify([model, settings]);
    const known = this.refusals.get(name);
    if (known !== undefined && clock.now() - known.at < reloadMs) return known.refusal;
    const found = refusal({ models: [{ settings: model, provider: settings }], allowedHosts: [] });
    this.refusals.set(name, { at: clock.now(), refusal: found });
    return found;
  }

  private list(): void {
    this.listed = new Map(this.models.models.map(({ listed }) => [listed.key, listed]));
  }

  private announced(): ServiceExtras {
    const { credit } = this.models;
    return {
      name: "bulkgen serve",
      idempotency_ms: repeatKeysKeptMs,
      inputs: true,
      cancel: true,
      queue: true,
      providers: this.works.times.providersNow(this.models.models),
      ...(credit === null ? {} : { credit }),
    };
  }

  /**
   * Reads the models file again if it has changed. A broken one leaves the old one in force, and so does one that does what the user
   * has not agreed to, until they agree.
   */
  private async reload(): Promise<void> {
    const text = await readFile(this.options.file, "utf8").catch((error: Error) => error);
    if (text === this.seen && this.refused === null) return;
    const before = this.seen;
    this.seen = text instanceof Error ? "" : text;
    try {
      if (text instanceof Error) throw text;
      const models = await readFrom(this.options, text);
      const refusedBefore = this.refused;
      this.refused = this.options.refusal?.(models) ?? null;
      if (this.refused !== null) {
        if (this.refused !== refusedBefore)
          this.options.onNote(
            `${this.options.file} has changed, and ${this.refused} Until then, the models from before stay in force.`,
          );
        return;
      }
      this.models = models;
      this.keyFiles.clear();
      this.list();
      this.options.onNote(`${this.options.file} was read again: ${this.listed.size} models.`);
    } catch (error) {
      if (before === "" && text instanceof Error) return;
      this.options.onNote(`${(error as Error).message}\nThe models from before stay in force.`);
    }
  }

  private async every(ms: number, work: () => Promise<void>): Promise<void> {
    while (!this.closing.signal.aborted) {
      await this.options.clock.sleep(ms, this.closing.signal);
      if (this.closing.signal.aborted) return;
      await work().catch((error: Error) => this.options.onNote(error.message));
    }
  }

  private isOwn(address: string): boolean {
    const url = new URL(address);
    const isHere = url.origin === this.origin() || (url.protocol === "http:" && isLoopback(url.hostname));
    return isHere && /^\/(files|inputs)\//.test(url.pathname);
  }

  /** An output or upload by its address; a restarted service may have another port. */
  private ownFile(address: string, accountId: string): { path: string } | undefined {
    if (!this.isOwn(address)) return undefined;
    const url = new URL(address);
    const [, kind, id = ""] = url.pathname.split("/");
    if (kind === "inputs") {
      const upload = this.journal.upload(id);
      if (upload?.accountId !== accountId) throw new Error("The input is no upload of this key.");
      return { path: this.works.files.within("uploads", id) };
    }
    const found = this.service.lookUp(url.pathname, Object.fromEntries(url.searchParams));
    if (!("task" in found)) throw new Error("The address of this output is wrong or has expired.");
    return { path: this.works.files.outputPath(found.task, found.number) };
  }
}

function readFrom({ file, kinds }: OwnServiceOptions, text: string): Promise<ModelsFile> {
  return readModelsFile(text, { file, folder: dirname(resolve(file)), kinds });
}

/** The key of a provider, from its variable or its file; null if there is none. */
function keyOf(
  { keyEnv, keyFile }: Pick<ProviderSettings, "keyEnv" | "keyFile">,
  { env, file }: Pick<OwnServiceOptions, "env" | "file">,
  known: Map<string, string>,
): string | null {
  if (keyFile !== null) {
    const path = isAbsolute(keyFile) ? keyFile : join(dirname(resolve(file)), keyFile);
    try {
      const real = realpathSync(path);
      if ((known.get(path) ?? real) !== real || statSync(path).size > 10_000) return null;
      known.set(path, real);
      return readFileSync(path, "utf8").trim() || null;
    } catch {
      return null;
    }
  }
  return (keyEnv !== null && env[keyEnv]?.trim()) || null;
}

/** The environment for programs, without the variables that hold keys. */
function withoutSecrets(
  env: OwnServiceOptions["env"],
  models: () => ModelsFile,
): Readonly<Record<string, string>> {
  const secret = new Set(models().models.map(({ provider }) => provider.keyEnv));
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) => value !== undefined && !secret.has(name) && !/KEY|TOKEN|SECRET|PASSWORD/i.test(name),
    ),
  ) as Record<string, string>;
}
