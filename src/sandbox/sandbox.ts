import { availableParallelism } from "node:os";
import type { WorldRequest, WorldResponse } from "./answers.js";
import { catalogue } from "./catalogue.js";
import { ensureDefaultAccount } from "./default-account.js";
import type { FileAnswer, HttpHandlers } from "./http.js";
import { sha256 } from "./media/job.js";
import { MediaPool } from "./media/pool.js";
import type { SandboxOptions } from "./serve.js";
import { SqliteState } from "./sqlite-state.js";
import type { TaskRecord } from "./state.js";
import { Studio } from "./studio.js";
import { World } from "./world.js";

const hourMs = 60 * 60 * 1_000;
const jobsWaitingMax = 256;

const contentTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  webp: "image/webp",
  mp4: "video/mp4",
  mp3: "audio/mpeg",
  wav: "audio/wav",
};

/** A sandbox without its socket. */
export interface Sandbox extends HttpHandlers {
  /** Takes up the tasks whose inputs an earlier process did not get to. */
  resume(): void;
  settled(): Promise<void>;
  close(): Promise<void>;
}

/** Puts world, state and studio together. */
export function openSandbox(options: SandboxOptions & { origin: () => string }): Sandbox {
  const { clock, random, origin } = options;
  const models = new Map(catalogue.map((model) => [model.key, model]));
  const state = new SqliteState(options.file);
  const secret = ensureDefaultAccount(state, random, clock.now(), {
    plan: options.plan,
    credits: options.credits,
  });
  const localInputs = options.inputRoot !== undefined;
  const settings = {
    models,
    taskMs: options.taskMs,
    localInputs,
    secret,
    urlMs: options.urlMs ?? hourMs,
    origin,
  };
  const world = new World(settings, state, random);
  const pool = new MediaPool(Math.max(1, Math.min(2, availableParallelism())), jobsWaitingMax);
  const studio = new Studio({ models, inputRoot: options.inputRoot, own: ownOutput }, state, pool);
  const preparing = new Set<Promise<void>>();

  function api(request: WorldRequest): WorldResponse {
    const { response, changes } = state.transact(() => {
      const applied = world.apply(clock.now(), request);
      state.commit(applied.changes);
      return applied;
    });
    for (const change of changes) {
      if (change.kind === "task created" && change.task.outcome === null) prepare(change.task);
    }
    return response;
  }

  /** An input of a task may be the output of another: it is taken directly, held to the same signature. */
  function ownOutput(address: string): Promise<Uint8Array> | undefined {
    if (!address.startsWith(`${origin()}/`)) return undefined;
    const { pathname, searchParams } = new URL(address);
    const found = world.file(clock.now(), pathname, Object.fromEntries(searchParams));
    if ("task" in found) return studio.output(found.task, found.number);
    return Promise.reject(new Error(`${address} answered ${found.refused.status}`));
  }

  function prepare(task: TaskRecord): void {
    const work = studio.prepare(task).then((error) => {
      if (closing) return;
      state.transact(() => state.commit([world.decide(clock.now(), task, error)]));
    });
    preparing.add(work);
    void work.finally(() => preparing.delete(work));
  }

  async function file(path: string, query: Record<string, string>): Promise<FileAnswer | WorldResponse> {
    const found = world.file(clock.now(), path, query);
    if ("refused" in found) return found.refused;
    const bytes = await studio.output(found.task, found.number);
    const contentType =
      contentTypes[found.task.outputs[found.number - 1] ?? ""] ?? "application/octet-stream";
    return { bytes, contentType, etag: `"${sha256(bytes)}"` };
  }

  let closing = false;
  return {
    api,
    file,
    resume: () => state.undecidedTasks().forEach(prepare),
    settled: async () => {
      while (preparing.size > 0) await Promise.all(preparing);
    },
    close: async () => {
      // What is still being prepared stays undecided and is taken up by the next process.
      closing = true;
      await pool.close();
      await Promise.all(preparing);
      state.close();
    },
  };
}
