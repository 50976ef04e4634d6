/** What can keep a run from buying or sending anything. */
export const reasonKinds = [
  /** The run is ending, and only finishes what it has begun. */
  "stopping",
  /** The disk, or the bucket that keeps the files, refuses them. */
  "disk",
  /** The receipts of paid requests cannot be written. */
  "receipts",
  /** The service cannot be reached. */
  "outage",
  /** The balance is used up, and the run waits for more credits. */
  "credits",
  /** The key's counters are read before anything else is bought. */
  "counters",
  /** Too many unanswered requests are being settled. */
  "settling",
  /** Too many finished tasks are not saved yet. */
  "saving",
  /** The minute's or the day's requests are used up; they are spaced out; or the rest of the day is kept for open tasks. */
  "minute",
  "day",
  "pacing",
  "reserve",
  /** The service asked for a pause. */
  "service",
] as const;

export type ReasonKind = (typeof reasonKinds)[number];

/** Why a run buys or sends nothing now. */
export interface Reason {
  kind: ReasonKind;
  /** One line for people, without its end. */
  text: string;
  /** When the run tries again by itself (UTC ms); null if that depends on something else. */
  until: number | null;
}

/** A reason without its circumstances. */
const texts: Readonly<Record<ReasonKind, string>> = {
  stopping: "stopping",
  disk: "files cannot be saved (nothing new is bought)",
  receipts: "the receipts of paid requests cannot be written (nothing new is bought)",
  outage: "service unreachable",
  credits: "out of credits, waiting for more",
  counters: "submitting is paused until lost answers are settled",
  settling: "submitting is paused until lost answers are settled",
  saving: "finished tasks are saved first",
  minute: "minute quota used up",
  day: "daily quota used up",
  pacing: "requests are spaced out, as this service demands",
  reserve: "the rest of today's requests is kept for tasks at the service",
  service: "the service asked us to wait",
};

const ofQuota = ["minute", "day", "pacing", "reserve", "service"] as const satisfies readonly ReasonKind[];

/**
 * What a request waits for: the quota of the minute or the day, its place in the account's pacing, the requests of the
 * day that open tasks need, or a pause that the service asked for.
 */
export type WaitReason = (typeof ofQuota)[number];

/** A reason that needs no more words than its kind; `until` in UTC ms. */
export function plainReason(kind: ReasonKind, until: number | null): Reason {
  return { kind, text: texts[kind], until };
}

/** A reason with its circumstances: `stopping: interrupted`. */
export function reasonFor(kind: ReasonKind, why: string, until: number | null): Reason {
  return { kind, text: `${texts[kind]}: ${why}`, until };
}

/** The end of such a wait is known, so the time that a run still needs can be estimated. */
export function isOfQuota({ kind }: Reason): boolean {
  return (ofQuota as readonly ReasonKind[]).includes(kind);
}
