import type { Accounts } from "../core/accounts.js";
import type { Attempt } from "../core/attempt.js";
import type { DailyCap } from "../core/books.js";
import { dayOf, type Span } from "../core/day.js";
import { type Credits, minus, plus, showCredits } from "../core/money.js";
import { dayMs } from "../core/quota.js";
import type { Stop } from "../core/stop.js";
import type { Store } from "../core/store.js";
import type { Keep, RunSettings } from "./ports.js";

/** One of the caps of a whole run: the most that the run may have committed, and the stop that it leads to. */
interface Cap extends Stop {
  most: Credits;
}

/**
 * What requests may yet take from the balance of now, by the service's time: who is in doubt for a day has been charged by
 * then, or never will be.
 */
export async function doubtfulNow(
  store: Pick<Store, "doubtful">,
  { earliest }: Span,
): Promise<Pick<Keep, "doubtful" | "since">> {
  const since = earliest - dayMs;
  return { doubtful: await store.doubtful(since), since };
}

/** What a run has to keep of the balance that was read just now, by the service's time. */
export async function keeping(
  store: Pick<Store, "spending" | "doubtful">,
  runId: number,
  { least, balance, now }: { least: Credits; balance: Credits; now: Span },
): Promise<Keep> {
  const { latest } = await store.spending(runId);
  return { least, room: minus(balance, least), ...(await doubtfulNow(store, now)), after: latest };
}

/**
 * What a run may spend: its own cap, what must be left on the account, what the day leaves, and caps of single models.
 * A task that fails frees its price, so none of these is final while tasks are open.
 */
export class Caps {
  /** What must be left of the balance, as it was told last; null where nothing has to. */
  private keep: Keep | null;
  /** The most that may be committed for it. */
  private kept: Credits | null = null;
  /** The most that may be committed within the day's credits, and what is said when that is reached. */
  private today: Cap | null = null;
  /** What was left when no item fitted any more; null as long as one may. */
  private leftover: Credits | null = null;
  /** Models that wait at their cap, with what they had committed by then. */
  private readonly waiting = new Map<string, Credits>();

  constructor(private readonly settings: Pick<RunSettings, "maxCredits" | "modelCaps" | "keep" | "daily">) {
    this.keep = settings.keep;
  }

  /** The smallest of them; null where there is none. */
  get cap(): Credits | null {
    return this.smallest?.most ?? null;
  }

  /** No item fits any more: the stop that the smallest one leads to. */
  reached(committed: Credits): Stop {
    this.leftover = this.left(committed);
    const { kind, message } = this.smallest ?? { kind: "cap", message: "the credit cap is reached" };
    return { kind, message };
  }

  /**
   * Takes it back that they were reached, where they leave more now than then: what failed or was not charged has given
   * its price back. Returns whether it did.
   */
  takeBack(committed: Credits): boolean {
    if (this.leftover === null) return false;
    const left = this.left(committed);
    if (left !== null && left <= this.leftover) return false;
    this.leftover = null;
    return true;
  }

  private left(committed: Credits): Credits | null {
    return this.cap === null ? null : minus(this.cap, committed);
  }

  private get smallest(): Cap | null {
    const { keep } = this;
    const { maxCredits } = this.settings;
    const caps: Cap[] = [];
    if (maxCredits !== null)
      caps.push({ kind: "cap", most: maxCredits, message: "the credit cap is reached" });
    if (keep !== null && this.kept !== null) {
      const message = `the balance would fall below the ${showCredits(keep.least)} credits that --keep-credits leaves`;
      caps.push({ kind: "keep", most: this.kept, message });
    }
    if (this.today !== null) caps.push(this.today);
    const [first] = caps.toSorted((a, b) => a.most - b.most);
    return first ?? null;
  }

  /** The service told the balance after a paid request. Where others spend from it too, less may be spent here. */
  async balanceTold(store: Pick<Store, "spending">, runId: number, balance: Credits): Promise<void> {
    const { keep } = this;
    if (keep === null) return;
    const used = await this.usedOf(store, runId, keep);
    this.keep = { ...keep, room: Math.min(keep.room, plus(used, minus(balance, keep.least))) as Credits };
  }

  /**
   * The balance is about to be read while no paid request is under way. Returns what takes it: what must be left is
   * reckoned anew from it, because requests without an answer have turned out to be in it, or to be free. Null where
   * nothing must be left.
   */
  async readingBalance(
    store: Pick<Store, "spending" | "doubtful">,
    runId: number,
  ): Promise<((balance: Credits, now: Span) => Promise<void>) | null> {
    const { keep } = this;
    if (keep === null) return null;
    // What is sent as soon as the reading is over is not in it.
    const { latest: after } = await store.spending(runId);
    return async (balance, now) => {
      const { least } = keep;
      this.keep = { least, room: minus(balance, least), ...(await doubtfulNow(store, now)), after };
    };
  }

  /** A request turned out to be free: what was kept back for it may be spent. Those of this process have their own price back. */
  wasFree(runId: number, attempt: Pick<Attempt, "id" | "runId" | "sentAt" | "price">): void {
    const { keep } = this;
    if (keep === null || attempt.sentAt <= keep.since) return;
    if (attempt.runId === runId && attempt.id > keep.after) return;
    this.keep = { ...keep, doubtful: minus(keep.doubtful, attempt.price) };
  }

  /**
   * Looks at what was spent since the balance was read. What earlier requests give back may have been in it by then, so
   * it counts for nothing here.
   */
  async lookAtKept(store: Pick<Store, "spending">, runId: number, committed: Credits): Promise<void> {
    const { keep } = this;
    if (keep === null) return;
    const taken = plus(keep.doubtful, await this.usedOf(store, runId, keep));
    this.kept = plus(committed, minus(keep.room, taken));
  }

  private async usedOf(store: Pick<Store, "spending">, runId: number, { after }: Keep): Promise<Credits> {
    const { charged, pending } = await store.spending(runId, { after });
    return plus(charged, pending);
  }

  /** Looks at what the day has cost, over all runs of the account. At midnight another one begins. */
  async lookAtDay(
    accounts: Pick<Accounts, "spentOn">,
    accountId: number,
    { now, committed }: { now: Span; committed: Credits },
  ): Promise<void> {
    const { daily } = this.settings;
    if (daily === null) return;
    const spent = await accounts.spentOn(accountId, dayOf(now));
    const message = `the day's credits are used up: all runs of the account have spent ${showCredits(spent)} of the ${showCredits(daily)} that --max-credits-per-day allows`;
    this.today = { kind: "daily", most: plus(committed, minus(daily, spent)), message };
  }

  /** What the books hold a paid request to that is sent now. */
  dailyCap(now: Span): DailyCap | null {
    const { daily } = this.settings;
    return daily === null ? null : { most: daily, day: dayOf(now) };
  }

  get models(): string[] {
    return [...this.waiting.keys()];
  }

  /** One line for each model at its cap. */
  get messages(): string[] {
    const { modelCaps } = this.settings;
    return this.models.map((model) => {
      const cap = modelCaps.get(model);
      return `${model} has reached its cap of ${cap === undefined ? "" : showCredits(cap)} credits; its other items wait`;
    });
  }

  /** What models with a cap may still cost. One that waits goes on when a task of it has failed. */
  async rooms(store: Pick<Store, "spending">, runId: number): Promise<Map<string, Credits>> {
    const rooms = new Map<string, Credits>();
    for (const [model, cap] of this.settings.modelCaps) {
      const { charged, pending } = await store.spending(runId, { model });
      const committed = plus(charged, pending);
      if (committed < (this.waiting.get(model) ?? committed)) this.waiting.delete(model);
      rooms.set(model, minus(cap, committed));
    }
    return rooms;
  }

  /** The next item of these models does not fit. Returns whether that is new. */
  wait(models: readonly string[], rooms: ReadonlyMap<string, Credits>): boolean {
    for (const model of models) {
      const cap = this.settings.modelCaps.get(model);
      const room = rooms.get(model);
      if (cap !== undefined && room !== undefined) this.waiting.set(model, minus(cap, room));
    }
    return models.length > 0;
  }
}
