import type { Reservation } from "../../src/core/ports/accounts.js";
import { presumedEnd } from "../../src/core/quota/quota.js";
import type { Ledger } from "./ledger.js";
import type { Scenario } from "./scenario.js";
import type { Effect, Sender, Trip } from "./watch.js";

/**
 * Somebody else's requests with the runner's key, all at once, between two readings of its counters that were booked.
 */
interface Burst {
  count: number;
  /** The last that was served before; null where there was none. */
  before: Trip | null;
  /** The first that was served after; null while there is none. */
  after: Trip | null;
}

/**
 * What the runner can see of others who use its key. The service's count of requests shows them, unless as many of
 * the runner's own may or may not be in it: those that were lost between the two readings around, or so shortly before
 * that they might have arrived since; those that were in flight during one of the two; and places in the ledger whose
 * process died before it sent anything.
 */
export class Sight {
  /** Requests that their senders wait for. */
  readonly underWay = new Set<Trip>();
  private readonly trips: Trip[] = [];
  /** Places taken in the ledger for requests that never left, because their process died: it counts them as sent. */
  private unsent = 0;
  /** Readings of the counters, with the requests that were in flight at some time during them. */
  private readonly besides = new Map<Trip, Set<Trip>>();
  /** Readings in the order in which the service answered them, with how many bursts there had been by then. */
  private readonly served: { trip: Trip; bursts: number }[] = [];
  private readonly booked = new Set<Trip>();

  constructor(
    private readonly scenario: Scenario,
    private readonly ledger: Ledger,
  ) {}

  sent(trip: Trip): void {
    this.trips.push(trip);
    this.unsent--;
    for (const one of this.underWay) {
      if (!one.sender.isAlive() || one.reply !== null) this.underWay.delete(one);
      else this.besides.get(one)?.add(trip);
    }
    if (trip.endpoint === "me") this.besides.set(trip, new Set(this.underWay));
    this.underWay.add(trip);
  }

  arrived(trip: Trip): void {
    if (trip.endpoint === "me") this.served.push({ trip, bursts: this.ledger.foreignBursts.length });
  }

  /** A request without a connection never left, and its place in the ledger is still to be released. */
  replied({ reply }: Trip): void {
    if (reply?.kind === "not_sent") this.unsent++;
  }

  done({ sender, name, result }: Effect): void {
    if (name === "accounts.reserve" && (result as Reservation).ticket !== null) this.unsent++;
    if (name === "accounts.release") this.unsent--;
    if (name !== "spendLog.read") return;
    const reading = this.served.findLast(({ trip }) => trip.sender === sender && trip.reply !== null);
    if (reading) this.booked.add(reading.trip);
  }

  /** What a process had begun when it died may be a place in the ledger that was told to nobody. */
  crashed(senders: readonly Sender[]): void {
    this.unsent += senders.length;
  }

  /** Whether no counter shows that somebody else used the key. */
  hidesForeign(): boolean {
    const isCounted = (this.scenario.switches.requestsCount ?? "all") === "all";
    return this.bursts().some((burst) => !isCounted || this.isHidden(burst));
  }

  private bursts(): Burst[] {
    const readings = this.served.filter(({ trip }) => this.booked.has(trip));
    return this.ledger.foreignBursts.map((count, index) => ({
      count,
      before: readings.findLast(({ bursts }) => bursts <= index)?.trip ?? null,
      after: readings.find(({ bursts }) => bursts > index)?.trip ?? null,
    }));
  }

  private isHidden({ count, before, after }: Burst): boolean {
    if (before === null) return true;
    const until = after === null ? this.trips.length : this.trips.indexOf(after);
    const lost = this.trips.slice(0, until).filter((trip) => isLost(trip) && this.mayBeIn(trip, before));
    const beside = [before, after].flatMap((reading) => [
      ...(reading ? (this.besides.get(reading) ?? []) : []),
    ]);
    const open = new Set([...lost, ...beside]);
    return count <= open.size + this.unsent;
  }

  /**
   * Whether a lost request might still have arrived after a reading. A clock that was put back makes it seem so for
   * longer.
   */
  private mayBeIn({ endpoint, sentAt }: Trip, before: Trip): boolean {
    const jumps = this.scenario.faults.some(({ fault }) => fault.kind === "clock-jump");
    return jumps || presumedEnd(endpoint, sentAt) > before.sentAt;
  }
}

function isLost({ answer, reply }: Trip): boolean {
  return answer === null || reply?.kind !== "answer";
}
