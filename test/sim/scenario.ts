import type { Endpoint } from "../../src/api/endpoints.js";
import type { PlanName } from "../../src/api/plans.js";
import type { DownloadFault, RequestFault } from "../../src/sandbox/faults/fault.js";
import type { SwitchSettings } from "../../src/service/state/switches.js";
import type { Cancel } from "./cancelling.js";
import type { Take } from "./chains.js";
import type { OtherPrice } from "./other-price.js";
import type { PublishPlan } from "./publishing.js";

/** One simulated run as plain data: who wants what, on which account, and everything that will go wrong. */
export interface Scenario {
  seed: number;
  items: ScenarioItem[];
  /** Workspaces that share the account, each with a process of its own. */
  workspaces: number;
  plan: PlanName;
  /** The user's own limits, below the plan's, or null. */
  rpm: number | null;
  rpd: number | null;
  lanes: number;
  downloads: number;
  /** Credits a workspace may spend, or null. */
  maxCredits: number | null;
  /** Credits a workspace may spend on one of its models. */
  modelCap?: { model: string; most: number };
  /** Credits that all runs of the account may spend in a day. */
  dailyCredits?: number;
  /** Credits that must be left on the account. */
  keepCredits?: number;
  /** Credits a run may spend again, by itself, on items whose first charge came to nothing. */
  orphanCredits?: number;
  /** How long a run stays for overdue tasks when nothing else is left to do. */
  overdueWaitMs?: number;
  /** What the service charges for one of the models in place of the listed price. */
  otherPrice?: OtherPrice;
  /** Somebody cancels one of the runs. */
  cancel?: Cancel;
  /** How local files are published; no item has one if absent. */
  publishing?: PublishPlan;
  /** The service gives a repeated request the same task, and says so. */
  repeats?: boolean;
  /** One item of each kind goes first. */
  canary?: boolean;
  /** The workspace is in a database, and several hosts work on it. */
  fleet?: FleetPlan;
  /** The service is the one of a models file. */
  served?: ServedPlan;
  /** Once nothing goes on by itself, the person has failed items tried again and settles held ones. */
  mends?: boolean;
  /** Credits of the account at the beginning. */
  balance: number;
  retries: number;
  onDailyLimit: "stop" | "wait";
  onInsufficient: "stop" | "wait";
  /** Whether a run stays open until it is known what became of every unanswered request. */
  settle: "stop" | "wait";
  /** Whether the user restarts a run with the manifest, or by resuming. */
  again: "run" | "resume";
  taskMs: { min: number; max: number };
  /** How long those of single models take in place of that; the others then take a second. */
  modelMs?: Readonly<Record<string, { min: number; max: number }>>;
  /** Whether answers carry a `Date`, as HTTP wants it. */
  tellsTime: boolean;
  switches: SwitchSettings;
  faults: PlannedFault[];
  /** Days of virtual time after which a run that has not ended counts as stuck. */
  daysMax: number;
}

/**
 * What must be left on the account, where this machine alone spends from it; null where nobody can say what has to be.
 */
export function keptOf({ keepCredits, faults }: Scenario): number | null {
  const isShared = faults.some(({ fault }) => fault.kind === "foreign-writer");
  return isShared ? null : (keepCredits ?? null);
}

export interface ScenarioItem {
  /** From 0. */
  workspace: number;
  /**
   * Unique in the scenario; its row (`jobs.ts`) is the row's id and, so that the service's ledger can be read, the
   * prompt.
   */
  id: string;
  /** Wanted name of the file; several items may want the same. */
  name: string;
  model: string;
  priority: number;
  /** Outputs of others that it takes; none if absent. */
  takes?: readonly Take[];
  /** A local file that it takes. */
  file?: string;
  /** A person has to approve it. */
  approve?: true;
  /** It is in the changed sheet alone, in place of this item. */
  replaces?: string;
}

export type PlannedFault =
  /** The nth request of that endpoint; of looks, the nth of those that come so late. */
  | { at: "request"; endpoint: Endpoint; look?: Look; nth: number; fault: WayFault }
  | { at: "download"; nth: number; fault: DownloadFault }
  /** The nth effect of that name (`any` counts them all), from any process. */
  | { at: "effect"; effect: string; nth: number; fault: Crash }
  /** Milliseconds after the beginning. */
  | { at: "time"; ms: number; fault: Event }
  /** The nth call of that name from any process of a fleet (`any` counts them all). */
  | { at: "call"; call: string; nth: number; fault: CallFault }
  /** Milliseconds after the beginning, in a fleet. */
  | { at: "moment"; ms: number; fault: FleetEvent }
  /** The nth submit, poll or search that arrives at any provider of a models file. */
  | { at: "upstream"; step: UpstreamStep; nth: number; fault: UpstreamFault };

/** A look at a task that is long overdue, or at one whose end has been told before: its addresses have expired. */
export type Look = "late" | "again";

/** What can happen to a request: the sandbox's faults, and two that need no service. */
export type WayFault =
  | Exclude<RequestFault, { kind: "slow-bytes" }>
  /** No connection comes about, so nothing was sent. */
  | { kind: "no-connection" }
  /** Something refuses the request before the service sees it. */
  | { kind: "refused"; status: number; body: "json" | "html"; retryAfter: string | null };

export interface Crash {
  kind: "crash" | "power-cut";
  /** Whether the effect still happens. */
  after: boolean;
}

export type Event =
  /** The wall clock of this machine jumps; the service's does not. */
  | { kind: "clock-jump"; byMs: number }
  /** Somebody else generates on the same account, with the same key or another. */
  | { kind: "foreign-writer"; posts: number; sameKey: boolean }
  | { kind: "disk-full"; forMs: number }
  /** A person puts a file where one of ours is wanted. */
  | { kind: "stranger-file"; item: number };

/** Hosts that share a workspace: the first one has the run, the others have workers that stand by. */
export interface FleetPlan {
  workers: number;
  /** Downloads that each of them does at once. */
  downloads: number;
  /** Whether the run takes downloads too. */
  works: boolean;
  /** Milliseconds between two pieces of a file: a download may take longer than a lease. */
  pieceMs: number;
}

export type CallFault =
  /** The process is stopped, and goes on later. */
  | { kind: "stands-still"; ms: number }
  /** Its connection to the database breaks: before that was asked to do it, or after it has done so. */
  | { kind: "lost-answer"; done: boolean };

export type FleetEvent =
  | { kind: "queue-dropped" }
  /** A host cannot reach the database any more. */
  | { kind: "database-cut"; host: number; forMs: number }
  /** A worker is told to finish what it has and to end. */
  | { kind: "worker-stopped"; host: number };

/** The service of a models file, on a host of its own, with providers elsewhere. */
export interface ServedPlan {
  /** How long its host takes to start it again at most (ms). */
  restartMs: number;
  /** How long a job takes at its provider. */
  jobMs: { min: number; max: number };
}

export type UpstreamStep = "submit" | "poll" | "find";

/** What a provider does, or what happens on the way to it. */
export type UpstreamFault =
  /** What was asked never arrives; the connection breaks. */
  | { kind: "upstream-lost" }
  /** It arrives, and its answer is lost. If that is silent, nothing is heard until the time is out. */
  | { kind: "upstream-no-answer"; isSilent: boolean }
  | { kind: "upstream-refuses"; billed: boolean | null }
  | { kind: "upstream-later"; afterMs: number; scope: "job" | "provider" }
  | { kind: "upstream-slow"; byMs: number }
  /** The job is taken, and fails in the end. */
  | { kind: "upstream-fails" }
  /** The job is done, and what it has made is nothing, an empty file, or something else. */
  | { kind: "upstream-spoils"; as: "nothing" | "empty" | "other" };

export type FaultKind = PlannedFault["fault"]["kind"];
