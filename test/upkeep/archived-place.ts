import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "../../src/archive/check/content.js";
import { jobFolder } from "../../src/archive/disk/names.js";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { openArchive } from "../../src/archive/save.js";
import { credits } from "../../src/core/money.js";
import type { NewItem, Run } from "../../src/core/ports/store.js";
import type { JobOptions } from "../../src/job/run/run-job.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { findWorkspace, type Workspace } from "../../src/workspace/workspace.js";
import { ManualClock } from "../manual-clock.js";
import { silentLog } from "../run/harness.js";
import { newItem, runStart } from "../store/item-fixture.js";

/** A workspace with an archive, made by the archive itself of given bytes; no service was asked. */
export interface ArchivedPlace {
  workspace: Workspace;
  clock: ManualClock;
  store: Store;
  run: Run;
  /** The job's folder. */
  folder: string;
  /** An item of the run, its task done, and its outputs saved. */
  archive(id: string, outputs: readonly Uint8Array[], change?: Partial<NewItem>): Promise<void>;
  /** More of what the archive can be told. */
  sidecars: boolean;
  close(): Promise<void>;
}

export async function archivedPlace(): Promise<ArchivedPlace> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-archived-")));
  const workspace = findWorkspace({ cwd: root, named: root, sandbox: false, env: { XDG_STATE_HOME: root } });
  const clock = new ManualClock();
  const store = openWorkspace(workspace, clock);
  const job = await store.job("demo");
  const run = await store.startRun(job.id, { ...runStart, outFolder: workspace.outFolder });
  const items: NewItem[] = [];
  const place: ArchivedPlace = {
    workspace,
    clock,
    store,
    run,
    folder: jobFolder(run),
    sidecars: false,
    async archive(id, outputs, change = {}) {
      items.push(newItem(id, { position: items.length, rowNumber: items.length + 2, ...change }));
      await store.enroll(run.id, items);
      await archive(place, id, outputs);
    },
    async close() {
      await store.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
  return place;
}

/** A command on the place that asks no service, waits for nobody and says nothing. */
export function quietJob({ workspace, clock }: ArchivedPlace): JobOptions {
  return {
    workspace,
    connect: () => Promise.reject(new Error("no service is to be asked")),
    clock,
    environment: {},
    publish: { given: {}, configured: {} },
    log: silentLog,
    interrupt: new AbortController().signal,
    unreachableMs: 0,
    onProgress: () => {},
    onWait: () => {},
    ifLocked: "fail",
    onLocked: () => {},
  };
}

async function archive(place: ArchivedPlace, id: string, outputs: readonly Uint8Array[]): Promise<void> {
  const { store, run, clock, folder, sidecars } = place;
  const item = (await store.items(run.id)).find(({ rowId }) => rowId === id);
  if (!item) throw new Error(`no item ${id}`);
  const { id: attempt } = await store.intend(item.id, {
    runId: run.id,
    sentAt: 0,
    bodySha256: "00",
    spendLogId: null,
  });
  await store.conclude(attempt, "accepted", { taskId: `task-${id}`, externalTaskId: `ext-${id}` });
  const facts = {
    fetchBy: 0,
    charged: credits(4),
    createdAt: "2026-01-01T00:00:00Z",
    completedAt: "2026-01-01T00:00:05Z",
  };
  await store.complete(item.id, { urls: outputs.map((_, at) => `https://a.example/${at}`), ...facts });
  for (const [at, bytes] of outputs.entries()) {
    const opened = openArchive({
      disk: nodeDisk,
      clock,
      version: "0.0.0",
      sidecars,
      download: async () => ({ status: 200, headers: {}, body: pieces(bytes) }),
      inspect: (path, category) => inspect(nodeDisk, path, category),
    });
    const { name, category, rowId, key, model, prompt, params, inputs } = item;
    const result = await opened.save({
      url: "https://a.example/0",
      jobFolder: folder,
      name,
      category,
      outputNumber: at + 1,
      outputCount: outputs.length,
      index: {
        item: rowId,
        key,
        task: `task-${id}`,
        external_task: `ext-${id}`,
        model,
        prompt,
        params,
        inputs,
        credits: 4,
        created: facts.createdAt,
        completed: facts.completedAt,
      },
    });
    if (result.kind !== "saved") throw new Error(JSON.stringify(result));
    await store.saved(item.id, at + 1, result);
  }
}

async function* pieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
