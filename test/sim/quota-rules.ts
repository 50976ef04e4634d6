import { limitsOf } from "../../src/api/plans.js";
import type { Attempt } from "../../src/core/ports/attempt.js";
import type { Scenario } from "./scenario.js";
import { type Effect, type Rule, type Sender, type Trip, Violation } from "./watch.js";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** The promises about quota, by the service's clock and the requests that really arrive there. */
export class QuotaRules implements Rule {
  private readonly limits: { ms: number; most: number }[];
  private readonly rpd: number;
  private readonly mayBeStopped: boolean;
  private readonly arrivals: number[] = [];
  private readonly sends: Trip[] = [];
  /** Items whose task is on record, and its end is not: by run and item. */
  private readonly open = new Set<string>();
  /** When each run last said what it owes: one that has been silent for a day holds back nobody. */
  private readonly toldAt = new Map<string, number>();
  private readonly attempts = new Map<string, string>();
  private readonly posting = new Set<Trip>();
  private silence: { until: number; at: number; by: Sender; isKept: boolean } | null = null;

  constructor(
    scenario: Scenario,
    private readonly now: () => number,
    /** When the clock was last set: nobody knows how long ago anything was that came before. */
    private readonly clockSetAt: () => number,
  ) {
    const plan = limitsOf(scenario.plan);
    this.mayBeStopped = scenario.fleet !== undefined;
    const none = Number.POSITIVE_INFINITY;
    this.rpd = Math.min(plan.perDay ?? none, scenario.rpd ?? none);
    this.limits = [
      { ms: minuteMs, most: Math.min(plan.perMinute ?? none, scenario.rpm ?? none) },
      { ms: dayMs, most: this.rpd },
    ];
  }

  sent(trip: Trip): void {
    this.checkSilence();
    this.sends.push(trip);
    if (trip.endpoint !== "generate") return;
    this.checkReserve();
    this.posting.add(trip);
  }

  /** P9: no interval holds more arrivals than the plan. */
  arrived({ sentAt }: Trip): void {
    if (!this.isKnown(sentAt)) return;
    const now = this.now();
    this.arrivals.push(now);
    for (const { ms, most } of this.limits) {
      const before = this.arrivals[this.arrivals.length - 1 - most];
      if (before !== undefined && this.isKnown(before) && now - before < ms) {
        throw new Violation(
          "P9",
          `${most + 1} requests arrived within ${now - before} ms; ${most} are allowed`,
        );
      }
    }
  }

  replied(trip: Trip): void {
    this.posting.delete(trip);
    const { reply } = trip;
    if (reply?.kind !== "answer") return;
    if (reply.status === 429) this.hush(trip.sender, reply.headers);
  }

  done({ sender, name, values, result }: Effect): void {
    const { workspace, job } = sender;
    const run = `${workspace}/${job}`;
    const item = () => `${run} ${values[0]}`;
    // The running job, whichever it is, concludes what a crash interrupted.
    const attempt = (id: unknown) => `${workspace} ${id}`;
    switch (name) {
      case "accounts.silence":
        if (this.silence?.by === sender) this.silence.isKept = true;
        return;
      case "accounts.owes":
        this.toldAt.set(run, this.now());
        return;
      case "accounts.reserve":
        if (values[2] !== undefined) this.toldAt.set(run, this.now());
        return;
      case "store.intend":
        this.attempts.set(attempt((result as Attempt).id), item());
        return;
      case "store.conclude": {
        const asked = this.attempts.get(attempt(values[0]));
        if (values[1] === "accepted" && asked !== undefined) this.open.add(asked);
        return;
      }
      case "store.complete":
        this.open.delete(item());
        return;
      case "store.apply":
        if (values[1] === "task_failed") this.open.delete(item());
    }
  }

  crashed(senders: readonly Sender[]): void {
    for (const trip of this.posting) if (senders.includes(trip.sender)) this.posting.delete(trip);
    if (this.silence && !this.silence.isKept && senders.includes(this.silence.by)) this.silence = null;
  }

  /** P11: what a 429 asks for is kept in full; a minute where it does not say. */
  private hush(by: Sender, headers: Readonly<Record<string, string>>): void {
    const at = this.now();
    const until = at + waitMs(headers);
    if (this.silence === null || until > this.silence.until) this.silence = { until, at, by, isKept: false };
  }

  private checkSilence(): void {
    const now = this.now();
    // A process that was stopped has not read the answer that came meanwhile.
    if (this.mayBeStopped) return;
    if (this.silence === null || !this.isKnown(this.silence.at) || now === this.silence.at) return;
    if (now < this.silence.until) {
      throw new Violation("P11", `a request left ${this.silence.until - now} ms before the silence was over`);
    }
  }

  private isKnown(at: number): boolean {
    return at > this.clockSetAt();
  }

  /** P12: a submit leaves a request of the day for each task that any run of the account has to collect. */
  private checkReserve(): void {
    const used = this.sends.filter(
      ({ sentAt, reply }) =>
        this.isKnown(sentAt) && this.now() - sentAt < dayMs && reply?.kind !== "not_sent",
    ).length;
    const isHeard = (key: string) => {
      const at = this.toldAt.get(key.split(" ")[0] ?? "") ?? 0;
      return this.isKnown(at) && this.now() - at < dayMs;
    };
    const owed = [...this.open].filter(isHeard).length + this.posting.size + 1;
    if (this.rpd - used < owed) {
      throw new Violation("P12", `${this.rpd - used} requests of the day are left for ${owed} open tasks`);
    }
  }
}

function waitMs(headers: Readonly<Record<string, string>>): number {
  const value = headers["retry-after"];
  if (value === undefined) return minuteMs;
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  return Date.parse(value) - Date.parse(headers["date"] ?? "");
}
