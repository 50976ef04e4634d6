import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fingerprint } from "../../src/api/key.js";
import { inspect } from "../../src/archive/check/content.js";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { undiciDownloads } from "../../src/archive/download/download.js";
import { openArchive } from "../../src/archive/save.js";
import { openHttp } from "../../src/client/http.js";
import { openService } from "../../src/client/service.js";
import { WakeSignal } from "../../src/clock.js";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { RunOptions } from "../../src/core/next/options.js";
import type { Disk } from "../../src/core/ports/disk.js";
import type { Log, Reply, Send } from "../../src/core/ports/send.js";
import type { BalanceMark } from "../../src/core/ports/spend-log.js";
import type { Item, NewItem, Run } from "../../src/core/ports/store.js";
import { dayMs } from "../../src/core/quota/quota.js";
import { Replacements } from "../../src/run/arrange.js";
import { readAccount } from "../../src/run/gate/balance.js";
import type { Progress } from "../../src/run/loop.js";
import { runLoop } from "../../src/run/loop.js";
import type { RunSettings } from "../../src/run/ports.js";
import { openSession, type Session } from "../../src/run/ports.js";
import { openReceipts } from "../../src/run/receipts/receipts.js";
import { catalogue } from "../../src/sandbox/catalogue/catalogue.js";
import type { SandboxOptions } from "../../src/sandbox/sandbox.js";
import { type RunningSandbox, serveSandbox } from "../../src/sandbox/serve.js";
import { type Accounts, openAccounts } from "../../src/store/accounts/accounts.js";
import { openLanes } from "../../src/store/lock.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { ManualClock } from "../manual-clock.js";
import { newItem, runStart } from "../store/item-fixture.js";

/** A whole run against the real sandbox over a real socket, on a clock that moves only when nothing is in progress. */
export interface World {
  clock: ManualClock;
  sandbox: RunningSandbox;
  store: Store;
  accounts: Accounts;
  folder: string;
  /** Requests that were made, as `POST /api/v1/generate`. */
  sent: string[];
  /** Stands in for the answer of the next requests: `null` lets one through. */
  tamper: ((request: string, pass: () => Promise<Reply>, body?: string) => Promise<Reply>) | null;
  /** The disk takes no more receipts. */
  refuseReceipts: boolean;
  /** What the archive's disk has free, in place of what it has. */
  freeBytes: number | null;
  /** Lets time pass within `tamper`, as for an answer that takes so long (ms). */
  pass(ms: number): Promise<void>;
  /** Told how many downloads are in progress, as each begins, and awaited. */
  onDownload: ((atOnce: number) => unknown) | null;
  progress: Progress[];
  /** Told of each progress, as a person would see it. */
  onProgress: ((progress: Progress) => void) | null;
  close(): Promise<void>;
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Every picture is decoded when it is saved, in a time that grows with its size. */
const smallPictures = catalogue.map((model) =>
  model.maker === "paint" ? { ...model, longSide: 64 } : model,
);

const random = { next: () => 0.5, uuid: () => crypto.randomUUID() };

export async function openWorld(options: Partial<SandboxOptions> = {}): Promise<World> {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-run-"));
  const sandbox = await serveSandbox({
    // The service has a clock of its own, which nobody sets.
    clock: {
      now: () => clock.monotonic(),
      monotonic: () => clock.monotonic(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
    },
    random,
    file: ":memory:",
    taskMs: { min: 900, max: 900 },
    models: smallPictures,
    ...options,
  });
  const accounts = openAccounts(":memory:", clock);
  const store = openWorkspace({ stateFile: join(folder, "state.db"), root: folder }, clock);
  return {
    clock,
    sandbox,
    store,
    accounts,
    folder,
    sent: [],
    tamper: null,
    refuseReceipts: false,
    freeBytes: null,
    pass: (ms) => clock.sleep(ms),
    progress: [],
    onDownload: null,
    onProgress: null,
    async close() {
      await store.close();
      await accounts.close();
      await sandbox.close();
    },
  };
}

/** A picture of the sandbox's plainest model. */
export function picture(id: string, position: number, change: Partial<NewItem> = {}): NewItem {
  return newItem(id, { position, model: "aurora-image", prompt: `a picture of ${id}`, ...change });
}

export async function start(
  world: World,
  items: readonly NewItem[],
  jobName = "demo",
  origin = "sandbox",
): Promise<Run> {
  const { store } = world;
  const job = await store.job(jobName);
  const run = await store.startRun(job.id, {
    ...runStart,
    origin,
    outFolder: join(world.folder, "outputs"),
  });
  await store.enroll(run.id, items);
  return run;
}

/** Where the spend log is with a balance that is read now; the service's clock is the one that nobody sets. */
export async function markNow({ accounts, clock, sandbox }: World): Promise<BalanceMark> {
  const owner = { origin: "sandbox", fingerprint: fingerprint(sandbox.key), workspace: "workspace" };
  return { seq: await accounts.spendLog(owner).seq(), reading: null, dayBefore: clock.monotonic() - dayMs };
}

/** The options are in place of the run's own. */
export interface RunChange extends Partial<RunSettings>, Partial<RunOptions> {
  interrupt?: AbortSignal;
  /** Null: the plan has no such limit. */
  perMinute?: number | null;
  perDay?: number | null;
  /** The account is read before the run begins, as the program does. */
  reads?: boolean;
  /** Called between two turns, as orders are. */
  attend?: (session: Session) => void;
}

const plainOptions: Partial<RunOptions> = {
  maxCredits: null,
  maxFailures: null,
  retries: 1,
  downloads: 4,
  onInsufficient: "stop",
  onDailyLimit: "stop",
  overdueWaitMs: 0,
};

/** Carries the run on to its end and returns why it stopped. Answers, saves and the clock take turns. */
export async function carryOn(world: World, run: Run, change: RunChange = {}): Promise<Session> {
  const { clock, accounts, store, sandbox } = world;
  let underWay = 0;
  let wake = () => {};
  const counted = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    underWay++;
    try {
      return await work();
    } finally {
      underWay--;
      if (underWay === 0) wake();
    }
  };
  world.pass = async (ms) => {
    underWay--;
    if (underWay === 0) wake();
    await clock.sleep(ms);
    underWay++;
  };
  const account = await accounts.accountOf("sandbox", fingerprint(sandbox.key));
  await accounts.setLimits(account.id, {
    perMinute: change.perMinute === undefined ? 60 : change.perMinute,
    perDay: change.perDay === undefined ? 10_000 : change.perDay,
  });
  let downloading = 0;
  const http = openHttp({ baseUrl: sandbox.url, key: sandbox.key, clock });
  const send: Send = (request, signal) =>
    counted(() => {
      const name = `${request.method} ${request.path}`;
      world.sent.push(name);
      const pass = () => http.send(request, signal);
      return world.tamper ? world.tamper(name, pass, request.body) : pass();
    });
  const service = openService(send, {
    accounts,
    key: sandbox.key,
    caller: () => ({ accountId: account.id, fingerprint: fingerprint(sandbox.key) }),
    clock,
    log: silentLog,
    onDailyLimit: "stop",
    signal: new AbortController().signal,
  });
  // The disk makes its writes durable in its own time.
  const countedStore = Object.fromEntries(
    Object.entries(store).map(([name, method]) => [
      name,
      (...given: never[]) => counted(async () => (method as (...given: never[]) => unknown)(...given)),
    ]),
  ) as unknown as Store;
  const countedDisk: Disk = {
    ...nodeDisk,
    append: (path, text) => counted(() => (world.refuseReceipts ? full() : nodeDisk.append(path, text))),
    makeFolder: (path) => counted(() => nodeDisk.makeFolder(path)),
    size: (path) => counted(() => nodeDisk.size(path)),
  };
  const downloads = undiciDownloads({ baseUrl: sandbox.url });
  const archive = openArchive({
    disk: { ...nodeDisk, freeBytes: async (path) => world.freeBytes ?? nodeDisk.freeBytes(path) },
    download: downloads.download,
    clock,
    version: "0.0.0",
    inspect: (path, category) => inspect(nodeDisk, path, category),
  });
  const spendLog = accounts.spendLog({
    origin: "sandbox",
    fingerprint: fingerprint(sandbox.key),
    workspace: join(world.folder, "state.db"),
  });
  const lanes = openLanes({
    folder: join(world.folder, "lanes"),
    count: change.lanes ?? 2,
    gateFile: join(world.folder, "lanes", "key.lock"),
  });
  if (change.reads) await readAccount({ service, spendLog, lanes });
  const session = openSession(
    {
      store: countedStore,
      accounts,
      accountId: account.id,
      fingerprint: fingerprint(sandbox.key),
      workspace: "workspace",
      publish: null,
      service,
      spendLog,
      lanes,
      receipts: openReceipts(
        countedDisk,
        { receiptsFile: join(world.folder, "receipts.jsonl"), root: world.folder },
        () => clock.now(),
      ),
      save: (request, signal) =>
        counted(async () => {
          await world.onDownload?.(++downloading);
          return archive.save(request, signal).finally(() => downloading--);
        }),
      refusal: (folder) => counted(() => archive.refusal(folder)),
      replacements: new Replacements(),
      bell: new WakeSignal(),
      exists: (path) => counted(async () => (await nodeDisk.size(path)) !== null),
      clock,
      log: silentLog,
    },
    {
      savesLanes: false,
      polls: 8,
      keep: null,
      inOrder: false,
      deadline: null,
      unreachableMs: 60_000,
      settling: { ...defaultReconcile, unsettledMax: 5, wait: false, orphanCredits: noCredits },
      ...change,
      run: { ...run, options: { ...run.options, ...plainOptions, ...change } },
      lanes: change.lanes ?? 2,
    },
  );
  let ended = false;
  const interrupt = change.interrupt ?? new AbortController().signal;
  const loop = runLoop(session, {
    interrupt,
    attend: async () => change.attend?.(session),
    onProgress: (progress) => {
      world.progress.push(progress);
      world.onProgress?.(progress);
    },
  }).finally(() => {
    ended = true;
    wake();
  });
  // It is awaited below; until then a failure must not count as unhandled.
  loop.catch(() => {});
  while (!ended) {
    if (underWay === 0) await settledThenAdvance(clock, () => underWay, sandbox);
    // Constant checking would take the processor from real work.
    else await new Promise<void>((resolve) => (wake = resolve));
  }
  await loop.finally(() => Promise.all([http.close(), downloads.close()]));
  return session;
}

function full(): Promise<never> {
  return Promise.reject(Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" }));
}

/** Lets what is ready to run do so; moves the clock only when still nothing is in progress. */
async function settledThenAdvance(
  clock: ManualClock,
  underWay: () => number,
  sandbox: RunningSandbox,
): Promise<void> {
  // The service reads the inputs of its tasks, and makes media, in its own time.
  await sandbox.settled();
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    if (underWay() > 0) return;
  }
  clock.advanceToNext();
}

export async function states(world: World, run: Run): Promise<Record<string, Item["state"]>> {
  return Object.fromEntries((await world.store.items(run.id)).map((item) => [item.rowId, item.state]));
}
