import { fingerprint } from "../../src/api/key.js";
import { limitsOf } from "../../src/api/plans.js";
import type { Me } from "../../src/api/records.js";
import { inspect } from "../../src/archive/check/content.js";
import { jobFolder } from "../../src/archive/disk/names.js";
import { removeLeftovers } from "../../src/archive/disk/temporary.js";
import { type Archive, openArchive } from "../../src/archive/save.js";
import { openService, type Service, ServiceError } from "../../src/client/service.js";
import { WakeSignal } from "../../src/clock.js";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { asBalance, type Credits, noCredits } from "../../src/core/money.js";
import type { Disk } from "../../src/core/ports/disk.js";
import type { Download, Log, Send } from "../../src/core/ports/send.js";
import type { BalanceMark } from "../../src/core/ports/spend-log.js";
import type { NewItem, Run } from "../../src/core/ports/store.js";
import { NoRequestsUntil, narrowed, type OwnLimits } from "../../src/core/quota/quota.js";
import type { Stop } from "../../src/core/stop.js";
import type { Queue } from "../../src/fleet/queue.js";
import type { Saves } from "../../src/job/run/outputs.js";
import { Replacements } from "../../src/run/arrange.js";
import { readAccount } from "../../src/run/gate/balance.js";
import { keeping } from "../../src/run/gate/caps.js";
import { runLoop } from "../../src/run/loop.js";
import type { RunPorts, RunSettings } from "../../src/run/ports.js";
import { openSession, type Session } from "../../src/run/ports.js";
import { openReceipts } from "../../src/run/receipts/receipts.js";
import type { OwnService } from "../../src/serve/own-service.js";
import type { Accounts } from "../../src/store/accounts/accounts.js";
import type { SpendLog } from "../../src/store/accounts/spend-log.js";
import { DatabaseTrouble } from "../../src/store/open.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import type { SimulatedBucket } from "./bucket.js";
import type { Cancelling } from "./cancelling.js";
import type { Lock } from "./fleet/lock.js";
import { gatedDisk, gatedDownload, gatedPort, gatedSend } from "./gated.js";
import type { Process } from "./machine.js";
import { storeLooks } from "./remembering.js";
import type { Scenario } from "./scenario.js";
import { ownKey } from "./service.js";
import {
  agreeTo,
  isCancelled,
  type Job,
  origin,
  plannedAnew,
  runStartOf,
  type Workspace,
} from "./workspace.js";

/**
 * One execution of the real program on the simulated machine: the wiring of `src/job`, with the ports of a process in
 * place of disk, network, clock and downloads. A mutant replaces some of these ports, and nothing else.
 */
export interface Parts {
  store: Store;
  accounts: Accounts;
  disk: Disk;
  send: Send;
  download: Download;
  inspect: typeof inspect;
}

/** What stands in the place of some of a port's methods: as it is, or made from the real port for each process. */
export type Swap<Port> = Partial<Port> | ((port: Port, process: Process) => Partial<Port>);

/** What a mutant puts in the place of the real thing. */
export interface Substitution {
  store?: Swap<Store>;
  accounts?: Swap<Accounts>;
  disk?: Swap<Disk>;
  /** Several of these, or those that are no objects. */
  parts?: Swap<Parts>;
  service?: Swap<Service>;
  spendLog?: Swap<SpendLog>;
  receipts?: Swap<RunPorts["receipts"]>;
  lanes?: Swap<RunPorts["lanes"]>;
  ports?: Swap<RunPorts>;
  settings?: Swap<RunSettings>;
  /** The queue of a process of a fleet. */
  queue?: Swap<Queue>;
  /** What a worker of a fleet receives with. */
  receives?(archive: Archive): Pick<Archive, "receive">;
  /** Breaks a process of a served models file that has just begun. */
  served?(own: OwnService): void;
  /** The lock of a fleet's workspace. */
  lock?(lock: Lock): Lock;
  /** Breaks the session of a run that is about to begin. */
  session?(session: Session): void;
}

export function swapped<Port extends object>(
  port: Port,
  swap: Swap<Port> | undefined,
  process: Process,
): Port {
  if (swap === undefined) return port;
  return { ...port, ...(typeof swap === "function" ? swap(port, process) : swap) };
}

export interface Network {
  send: Send;
  download: Download;
  bucket: SimulatedBucket | null;
}

/** What a fleet puts between a run and its machine, and how its outputs are saved there. */
export interface FleetSide {
  parts(parts: Parts): Parts;
  spendLog(log: SpendLog): SpendLog;
  archiveDisk(disk: Disk): Disk;
  openSaves(options: SavesOptions): Promise<Saves>;
}

export interface SavesOptions {
  parts: Parts;
  archive: Archive;
  run: Run;
  onOffer(): void;
}

export type Ending = { kind: "broken off"; isDayOver: boolean } | Ended;

export interface Ended {
  kind: "ended";
  stops: readonly Stop[];
  /** What else it reports of items that it has left planned, one line each. */
  reasons: readonly string[];
  /** Items are left that were planned for less than their like is charged. */
  isDearer: boolean;
}

const noCharges: ReadonlyMap<string, Credits> = new Map();

export const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export async function execute(
  process: Process,
  workspace: Workspace,
  job: Job,
  scenario: Scenario,
  network: Network,
  mutant: Substitution = {},
  cancelling: Cancelling | null = null,
  fleet: FleetSide | null = null,
): Promise<Ending> {
  const parts = partsOf(process, workspace, network, mutant, fleet);
  const { store, accounts, disk } = parts;
  const { clock } = process;
  let account = await accounts.accountOf(origin, fingerprint(ownKey));
  await accounts.narrowLimits(account.id, ownLimits(scenario));
  const pacing = {
    accounts,
    key: ownKey,
    caller: () => ({ accountId: account.id, fingerprint: fingerprint(ownKey) }),
    clock,
    log,
    signal: new AbortController().signal,
    onDailyLimit: scenario.onDailyLimit,
  };
  const opened = openService(parts.send, pacing);
  const service = swapped(opened, mutant.service, process);
  const ownSpendLog = gatedPort(
    process,
    "accounts.db",
    "spendLog",
    process.machine.accounts.spendLog({
      origin,
      fingerprint: fingerprint(ownKey),
      workspace: `workspace ${workspace.number}`,
    }),
    ["seq", "evidence", "entry", "open"],
  );
  const spendLog = fleet?.spendLog(ownSpendLog) ?? ownSpendLog;
  try {
    const { me, mark } = await readAccount({
      service,
      spendLog,
      lanes: process.machine.lanes.of(process, 1),
    });
    account = await accounts.name(account.id, me.user.id);
    const limits = limitsOf(me.subscription?.plan ?? "Starter");
    await accounts.setLimits(account.id, narrowed(limits, ownLimits(scenario)));
    const charges = scenario.otherPrice ? await accounts.highestCharges(account.id) : noCharges;
    const run = await begin(store, workspace, job, scenario, charges);
    job.run = run;
    await removeLeftovers(disk, jobFolder(run));
    const settings = { ...settingsOf(run, scenario), keep: keepOf(run, me, mark) };
    const archive = archiveOf(process, { ...parts, disk: fleet?.archiveDisk(disk) ?? disk });
    const bell = new WakeSignal();
    const saves =
      fleet === null ? archive : await fleet.openSaves({ parts, archive, run, onOffer: () => bell.ring() });
    const ports = {
      ...portsOf(process, workspace, parts, archive, service, account.id, spendLog, settings.lanes),
      ...("offered" in saves ? { save: saves.save, offered: saves.offered } : {}),
      bell,
      publish: network.bucket?.portsOf(process, jobFolder(run)) ?? null,
    };
    const session = openSession(
      brokenPorts(ports, mutant, process),
      swapped(settings, mutant.settings, process),
    );
    mutant.session?.(session);
    const orders = await cancelling?.attend(process, store, session);
    await runLoop(session, {
      interrupt: new AbortController().signal,
      onProgress: () => {},
      ...(orders ? { attend: orders.attend } : {}),
    }).finally(() => saves.close());
    await orders?.close();
    // As the end of a run does, where a person may have cancelled it.
    if (orders && (await store.run(run.id))?.state === "cancelled") await store.cancelRun(run.id, new Set());
    return await endingOf(store, session);
  } catch (error) {
    if (isTold(error)) return { kind: "broken off", isDayOver: error instanceof NoRequestsUntil };
    throw error;
  }
}

function ownLimits({ rpm, rpd }: Scenario): OwnLimits {
  return { ...(rpm === null ? {} : { rpm }), ...(rpd === null ? {} : { rpd }) };
}

/** What the program reports and ends with: no answer, no quota, no disk. */
function isTold(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  const isDisk = typeof code === "string" && /^E[A-Z0-9]+$/.test(code);
  const isDatabase = error instanceof DatabaseTrouble;
  return error instanceof ServiceError || error instanceof NoRequestsUntil || isDisk || isDatabase;
}

export function partsOf(
  process: Process,
  workspace: Workspace,
  network: Network,
  mutant: Substitution,
  fleet: Pick<FleetSide, "parts"> | null,
): Parts {
  const { machine } = process;
  const own: Parts = {
    store: gatedPort(process, "state.db", "store", workspace.store, storeLooks),
    accounts: gatedPort(process, "accounts.db", "accounts", machine.accounts, [
      "quota",
      "spentOn",
      "takenFrom",
      "highestCharges",
      "past",
    ]),
    disk: gatedDisk(process, machine.disk),
    send: gatedSend(process, network.send),
    download: gatedDownload(process, network.download),
    inspect,
  };
  const parts = fleet?.parts(own) ?? own;
  const broken: Parts = {
    ...parts,
    store: swapped(parts.store, mutant.store, process),
    accounts: swapped(parts.accounts, mutant.accounts, process),
    disk: swapped(parts.disk, mutant.disk, process),
  };
  return swapped(broken, mutant.parts, process);
}

function brokenPorts(ports: RunPorts, mutant: Substitution, process: Process): RunPorts {
  const broken: RunPorts = {
    ...ports,
    spendLog: swapped(ports.spendLog, mutant.spendLog, process),
    receipts: swapped(ports.receipts, mutant.receipts, process),
    lanes: swapped(ports.lanes, mutant.lanes, process),
  };
  return swapped(broken, mutant.ports, process);
}

/** As `run` does with the manifest at hand, or `resume` without it. */
async function begin(
  store: Store,
  workspace: Workspace,
  job: Job,
  scenario: Scenario,
  charges: ReadonlyMap<string, Credits>,
): Promise<Run> {
  const planned = plannedAnew(job, charges);
  // A cancelled run ends with what was submitted; whatever the manifest still asks for is another's.
  const wantsNew = scenario.again === "run" && (isCancelled(job) || agrees(scenario, job, planned));
  const known = job.run === null || wantsNew ? null : await store.run(job.run.id);
  if (known !== null) return known;
  agreeTo(job, planned, scenario.otherPrice ? await underWay(store, job) : new Set());
  const { id } = await store.job(job.name);
  const run = await store.startRun(id, runStartOf(workspace, job, scenario));
  await store.enroll(run.id, planned);
  return run;
}

/** Keys of the items that a plan shows as submitted before: it names no price for them. */
async function underWay(store: Store, { name }: Job): Promise<Set<string>> {
  const submitted = (await store.itemsOf(name)).filter(
    ({ attempted, state }) => attempted && state !== "planned" && state !== "blocked",
  );
  return new Set(submitted.map(({ key }) => key));
}

/** A user who is asked for more than was planned, and does not agree, resumes at the agreed price. */
function agrees({ otherPrice }: Scenario, { items }: Job, planned: readonly NewItem[]): boolean {
  return (
    otherPrice?.agrees !== false || planned.every(({ price }, at) => price <= (items[at] as NewItem).price)
  );
}

/** What the program reports at the end of a run. */
async function endingOf(
  store: Store,
  { settings: { run }, gate: { stops, breaker, prices, caps } }: Session,
): Promise<Ended> {
  const waiting = (await store.groups(run.id)).filter(({ planned }) => planned > 0);
  return {
    kind: "ended",
    stops,
    reasons: [...breaker.messages, ...prices.messages(waiting), ...caps.messages],
    isDearer: waiting.some((item) => prices.isBelow(item)),
  };
}

export function archiveOf({ clock }: Process, { disk, download, inspect }: Parts): Archive {
  return openArchive({
    disk,
    download,
    clock,
    version: "0.0.0",
    inspect: (path, category) => inspect(disk, path, category),
  });
}

function portsOf(
  process: Process,
  workspace: Workspace,
  { store, accounts, disk }: Parts,
  archive: Archive,
  service: Service,
  accountId: number,
  spendLog: SpendLog,
  lanes: number,
): Omit<RunPorts, "publish" | "bell"> {
  const { clock } = process;
  return {
    store,
    accounts,
    accountId,
    fingerprint: fingerprint(ownKey),
    spendLog,
    workspace: `workspace ${workspace.number}`,
    service,
    receipts: openReceipts(disk, { ...workspace, root: "/" }, () => clock.now()),
    lanes: process.machine.lanes.of(process, lanes),
    save: (request, signal) => process.work(() => archive.save(request, signal)),
    refusal: archive.refusal,
    replacements: new Replacements(),
    exists: async (path) => (await disk.size(path)) !== null,
    clock,
    log,
  };
}

function keepOf({ options: { keepCredits } }: Run, me: Me, mark: BalanceMark): RunSettings["keep"] {
  if (keepCredits === undefined) return null;
  return keeping(keepCredits, asBalance(me.credits.balance) ?? noCredits, mark);
}

function settingsOf(run: Run, scenario: Scenario): Omit<RunSettings, "keep"> {
  return {
    run,
    lanes: scenario.lanes,
    savesLanes: false,
    polls: 8,
    inOrder: false,
    deadline: null,
    unreachableMs: 600_000,
    settling: {
      ...defaultReconcile,
      unsettledMax: 5,
      wait: scenario.settle === "wait",
      orphanCredits: run.options.orphanCredits,
    },
  };
}
