import type { Attempt } from "../../src/core/ports/attempt.js";
import { dayOf, minuteMs } from "../../src/core/quota/quota.js";
import type { TaskRecord } from "../../src/service/state/state.js";
import { isOfRun, jobOf, rowOf } from "./jobs.js";
import type { Ledger } from "./ledger.js";
import type { MemoryDisk } from "./memory-disk.js";
import { lowestPriceOf } from "./other-price.js";
import type { PriceRules } from "./price-rules.js";
import { keptOf, type Scenario, type ScenarioItem } from "./scenario.js";
import { userId } from "./service.js";
import { Sight } from "./sight.js";
import { type Effect, type Rule, type Sender, type Trip, Violation } from "./watch.js";
import { itemNumbered, type Workspace } from "./workspace.js";

/** Statuses that leave no doubt that nothing was charged, written out once more. */
const freeStatuses = [
  400, 401, 402, 403, 404, 405, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 426, 428, 429, 431,
  451,
];
const accountStatuses = [401, 402, 403];
const accountCodes =
  /"(MISSING_API_KEY|INVALID_API_KEY|INVALID_API_KEY_FORMAT|SUBSCRIPTION_REQUIRED|INSUFFICIENT_CREDITS)"/;
/** Lost requests in a row after which an item is given up. */
const lossesMax = 8;

/** Whether an answer may be about the request itself, as far as it can be read, and not about the account. */
function isWrong({ status, body }: { status: number; body: string }): boolean {
  if (status === 429 || !freeStatuses.includes(status)) return false;
  return !accountStatuses.includes(status) || readable(body) === null || !accountCodes.test(body);
}

/**
 * The promises about money, looked at whenever a paid request is put on the wire. What the runner believes does not
 * count here: an earlier POST is excused by what its sender was really handed, or by what is in the service's books.
 */
export class MoneyRules implements Rule {
  /** POSTs of each item, in order. */
  private readonly posts = new Map<string, Trip[]>();
  /** Attempts that were committed and not concluded: attempt, by workspace and item. */
  private readonly intents = new Map<string, Attempt>();
  private readonly receipts = new Set<string>();
  private readonly excused = new Set<Trip>();
  /** Runs that POSTs belong to. */
  private readonly runs = new Map<Trip, number>();
  /** Items whose request was refused as wrong. */
  readonly rejected = new Set<string>();
  /** Items whose task failed at no cost, as the runner was told. */
  private readonly failedForFree = new Set<string>();
  /** Paid POSTs that no counter shows, because somebody else's use of the key looked the same. */
  private readonly hidden = new Set<Trip>();
  /** Items whose unknown POST was settled as not charged, or that may be paid again. */
  private readonly released = new Set<string>();
  /** POSTs whose items were let go to be paid again, what they were charged being lost. */
  readonly letGo = new Set<Trip>();
  /** How often an item was: also for requests that never left, because their process died. */
  readonly orphans = new Map<string, number>();

  /** Tasks by the keys of the requests that made them, where the service knows those. */
  private readonly madeBy = new Map<string, TaskRecord>();

  private readonly sight: Sight;

  constructor(
    private readonly scenario: Scenario,
    private readonly ledger: Ledger,
    private readonly workspaces: readonly Workspace[],
    private readonly prices: PriceRules,
    private readonly disk: MemoryDisk,
  ) {
    this.sight = new Sight(scenario, ledger);
  }

  sent(trip: Trip): void {
    this.sight.sent(trip);
    if (trip.endpoint !== "generate" || trip.item === null) return;
    const item = trip.item;
    const earlier = this.posts.get(item) ?? [];
    // Where the service knows it by its key, it is the same request again.
    if (this.scenario.repeats && earlier.some(({ repeatKey }) => repeatKey === trip.repeatKey)) return;
    const { runId } = this.checkIntent(trip, item);
    for (const post of earlier) {
      if (!this.excused.has(post)) this.checkExcused(post, item);
      this.excused.add(post);
    }
    this.checkLanes(trip);
    // One that an earlier process intended, and that is sent for the first time by a repeat, is in the books of its own run.
    this.runs.set(trip, runId);
    this.checkCap(trip, item);
    this.posts.set(item, [...earlier, trip]);
    this.failedForFree.delete(item);
    this.released.delete(item);
  }

  arrived(trip: Trip): void {
    this.sight.arrived(trip);
    if (!this.scenario.repeats || trip.item === null || trip.repeatKey === null) return;
    // Of all arrivals of one request, one made the task, and not always the first that left.
    const made = trip.made ?? this.madeBy.get(trip.repeatKey);
    const first = this.posts.get(trip.item)?.find(({ repeatKey }) => repeatKey === trip.repeatKey);
    if (!made || !first) return;
    this.madeBy.set(trip.repeatKey, made);
    first.made = made;
  }

  replied(trip: Trip): void {
    this.sight.replied(trip);
    if (trip.item !== null && trip.reply?.kind === "answer" && isWrong(trip.reply))
      this.rejected.add(trip.item);
    const task = trip.taskId === null ? undefined : this.ledger.task(trip.taskId);
    if (task?.outcome !== "failed" || trip.reply?.kind !== "answer" || trip.reply.status !== 200) return;
    const record = readable(trip.reply.body);
    if (record?.["status"] === "failed" && record["credits_consumed"] === 0) {
      this.failedForFree.add(this.ledger.madeFor.get(task.id) ?? "");
    }
  }

  done(effect: Effect): void {
    const { sender, name, values, result } = effect;
    this.sight.done(effect);
    const workspace = this.workspaces[sender.workspace] as Workspace;
    if (name === "store.intend") {
      const attempt = result as Attempt;
      this.intents.set(`${sender.workspace} ${itemId(values)}`, attempt);
    }
    // A request that is repeated is the same one.
    if (name === "store.conclude" && !this.scenario.repeats) this.forget(sender.workspace, Number(values[0]));
    if (name === "store.giveVerdict" && values[1] === "not_charged")
      this.release(itemNumbered(workspace, itemId(values)));
    if (name === "store.apply" && values[1] === "resubmit") this.noteOrphan(workspace, itemId(values));
    if (name === "store.giveVerdict" && values[1] === "charged")
      this.checkCharged(itemNumbered(workspace, itemId(values)));
    if (name === "receipts.append") this.noteReceipts(sender, String(values[0]), String(values[1]));
  }

  crashed(senders: readonly Sender[]): void {
    this.sight.crashed(senders);
  }

  /** P1: the intent is committed in the workspace and durable in the receipts. */
  private checkIntent(trip: Trip, item: string): Attempt {
    const { workspace } = trip.sender;
    const id = numberOf(this.workspaces[workspace] as Workspace, item);
    const attempt = this.intents.get(`${workspace} ${id}`);
    if (attempt === undefined)
      throw new Violation("P1", `a POST for ${item} left without a committed intent`);
    if (!this.receipts.has(`${jobOf(item)} k1:${rowOf(item)} ${attempt.number}`)) {
      throw new Violation("P1", `a POST for ${item} left without a durable line in the receipts`);
    }
    return attempt;
  }

  /**
   * It is said to have cost nothing. Where that is wrong because somebody else's use looked the same, it stays hidden.
   */
  private release(item: string): void {
    this.released.add(item);
    // Its requests were lost so often that it is given up.
    if ((this.posts.get(item)?.length ?? 0) >= lossesMax) this.rejected.add(item);
    const post = this.posts.get(item)?.at(-1);
    if (post && this.mayCost(post) && this.sight.hidesForeign()) this.hidden.add(post);
  }

  private mayCost(post: Trip): boolean {
    const { made, mayArrive } = post;
    return !this.letGo.has(post) && (mayArrive || (made !== null && isPaid(made)));
  }

  /** P2: no second POST unless the first is known to have cost nothing. */
  private checkExcused(post: Trip, item: string): void {
    const { reply } = post;
    if (reply?.kind === "not_sent") return;
    if (reply?.kind === "answer" && freeStatuses.includes(reply.status)) return;
    if (this.failedForFree.has(item)) return;
    const isSettled = this.released.has(item);
    if (!isSettled) throw new Violation("P2", `a second POST for ${item}, whose first ${fate(post)}`);
    if (!this.mayCost(post)) return;
    if (this.sight.hidesForeign()) this.hidden.add(post);
    else throw new Violation("P2", `${item} was settled as not charged, but its POST ${fate(post)}`);
  }

  /** The last POST for the item of another one. */
  lastPost(post: Trip): Trip {
    return this.posts.get(post.item ?? "")?.at(-1) ?? post;
  }

  /** P6: no more is paid again than was allowed. */
  private noteOrphan(workspace: Workspace, id: number): void {
    const item = itemNumbered(workspace, id);
    this.released.add(item);
    const post = this.posts.get(item)?.at(-1);
    if (post) this.letGo.add(post);
    this.orphans.set(item, (this.orphans.get(item) ?? 0) + 1);
    const own = this.scenario.items.filter((other) => isOfRun(other, workspace.number, jobOf(item)));
    const again = own.reduce(
      (sum, { id, model }) => sum + (this.orphans.get(id) ?? 0) * lowestPriceOf(this.scenario, model),
      0,
    );
    const most = this.scenario.orphanCredits ?? 0;
    if (again > most + 1e-6)
      throw new Violation("P6", `${item} is let go to be paid again: ${again} credits of ${most}`);
  }

  /** P5: what is said to have been charged was, unless somebody else's use of the key looked the same. */
  private checkCharged(item: string): void {
    const last = this.posts.get(item)?.at(-1);
    if (last && last.made === null && !this.sight.hidesForeign()) {
      throw new Violation("P5", `${item} was settled as charged, but its POST ${fate(last)}`);
    }
  }

  /** Tasks that the runner cannot know of. */
  unknowable(): ReadonlySet<string> {
    return new Set([...this.hidden].flatMap(({ made }) => (made === null ? [] : [made.id])));
  }

  /** P3: so many POSTs of the account may be in doubt at once; of a fleet, whose lanes are files of each host, of each process. */
  private checkLanes({ sender: by }: Trip): void {
    const posts = [...this.sight.underWay].filter(({ endpoint }) => endpoint === "generate");
    const isFleet = this.scenario.fleet !== undefined;
    const count = posts.filter(({ sender }) => !isFleet || sender === by).length;
    if (count > this.scenario.lanes) {
      throw new Violation("P3", `${count} POSTs in flight on ${this.scenario.lanes} lanes`);
    }
  }

  /**
   * P7: what the service has charged, and what it may yet charge for POSTs in flight, stays within each cap. What it
   * charges beyond the planned price counts as soon as that is on record.
   */
  private checkCap(trip: Trip, item: string): void {
    const { maxCredits, modelCap, dailyCredits, items, faults } = this.scenario;
    const { workspace, job } = trip.sender;
    const own = items.filter((other) => isOfRun(other, workspace, job));
    const { model = "" } = items.find(({ id }) => id === item) ?? {};
    const ofRun = (post: Trip) => this.runs.get(post) === this.runs.get(trip);
    const within = (cap: number, what: string, some: readonly ScenarioItem[], counts = ofRun) => {
      const committed = some.map((other) => this.committed(other, counts));
      const total = committed.reduce((sum, amount) => sum + amount, this.prices.priceOf(item));
      if (total > cap + 1e-6)
        throw new Violation("P7", `the POST for ${item} brings ${total} credits under ${what} of ${cap}`);
    };
    if (maxCredits !== null) within(maxCredits, "a cap", own);
    if (modelCap?.model === model) {
      const alike = own.filter((other) => other.model === model);
      within(modelCap.most, `the cap of ${model}`, alike);
    }
    this.checkKept(item);
    if (dailyCredits === undefined) return;
    const { from } = dayOf({ earliest: trip.sentAt, latest: trip.sentAt });
    // Where a clock was set, the service's tells the day, which it is known of to the minute.
    const jumps = faults.some(({ fault }) => fault.kind === "clock-jump");
    const since = jumps ? from + minuteMs : from;
    within(dailyCredits, "a day's cap", items, ({ sentAt }) => sentAt >= since);
  }

  /** P7: what must be left of the balance is left, whatever POSTs in flight may cost, of all workspaces. */
  private checkKept(item: string): void {
    const least = keptOf(this.scenario);
    if (least === null) return;
    const price = ({ id }: ScenarioItem) => {
      const posts = this.posts.get(id) ?? [];
      const open = posts.filter(({ made, mayArrive }) => made === null && mayArrive);
      return (open.length + (id === item ? 1 : 0)) * this.prices.priceOf(id) - this.surpriseOf(posts);
    };
    // What a failed task has cost is on its way back.
    const failed = [...this.ledger.tasks.values()].filter(
      ({ outcome, seenFinal, refunded }) => outcome === "failed" && seenFinal && !refunded,
    );
    const back = failed.reduce((sum, { costMicro }) => sum + costMicro, 0);
    const balance = ((this.ledger.account(userId)?.balanceMicro ?? 0) + back) / 1e6;
    const left = balance - this.scenario.items.reduce((sum, other) => sum + price(other), 0);
    if (left < least - 1e-6)
      throw new Violation("P7", `the POST for ${item} leaves ${left} of the ${least} credits to be kept`);
  }

  /** What POSTs were charged beyond their planned price that is not on record yet. */
  private surpriseOf(posts: readonly Trip[]): number {
    const charges = posts.flatMap((post) =>
      post.made === null ? [] : [{ post, cost: post.made.costMicro / 1e6 }],
    );
    return charges.reduce((sum, { post, cost }) => sum + cost - this.prices.countedAt(post, cost), 0);
  }

  /** Credits that those POSTs of an item have cost, or may yet cost. */
  private committed({ id }: ScenarioItem, counts: (post: Trip) => boolean): number {
    const posts = (this.posts.get(id) ?? []).filter((post) => counts(post) && !this.hidden.has(post));
    const charges = posts.map((post) => {
      const { made } = post;
      if (made !== null) return isPaid(made) ? this.prices.countedAt(post, made.costMicro / 1e6) : 0;
      return post.mayArrive ? this.prices.priceOf(id) : 0;
    });
    return charges.reduce((sum, amount) => sum + amount, 0);
  }

  private forget(workspace: number, attemptId: number): void {
    for (const [key, attempt] of this.intents) {
      if (attempt.id === attemptId && key.startsWith(`${workspace} `)) this.intents.delete(key);
    }
  }

  /** An append without a line makes durable what an earlier process has written. */
  private noteReceipts({ workspace, job }: Sender, path: string, text: string): void {
    if (text.trim() !== "") {
      for (const [, key, attempt] of text.matchAll(intentLine)) this.receipts.add(`${job} ${key} ${attempt}`);
      return;
    }
    for (const [, key, attempt, name] of String(this.disk.content(path)).matchAll(intentLine)) {
      const of = this.workspaces[workspace]?.jobs.find((each) => each.name === name);
      this.receipts.add(`${of?.number} ${key} ${attempt}`);
    }
  }
}

/** A whole line of the receipts that says what is about to be asked: of which item, its how many-th attempt, and of which job. */
const intentLine =
  /^\{"at":"[^"]+","type":"intent","key":"([^"]+)","attempt":(\d+),.*?"job":"([^"]+)",.*[}\]]\}$/gm;

/** A failed task is given back. Until somebody was told so, or the credits are back, it counts as paid. */
export function isPaid({ outcome, seenFinal, refunded }: TaskRecord): boolean {
  return !(outcome === "failed" && (seenFinal || refunded));
}

function fate(post: Trip): string {
  const handed = post.reply === null ? "got no reply" : `got ${JSON.stringify(post.reply).slice(0, 120)}`;
  const arrived = post.answer === null ? (post.mayArrive ? "is still under way" : "was lost") : "arrived";
  return `${handed} and ${arrived}`;
}

export function readable(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown> | null;
  } catch {
    return null;
  }
}

function itemId(values: readonly unknown[]): number {
  return Number(values[0]);
}

function numberOf({ ids }: Workspace, item: string): number {
  return ids.indexOf(item) + 1;
}
