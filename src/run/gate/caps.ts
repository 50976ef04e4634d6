import { defined } from "../../core/defined.js";
import { type Credits, inCredits, minus, plus, showCredits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { BalanceMark, Bounds } from "../../core/ports/spend-log.js";
import { type DaySpan, dayOf } from "../../core/quota/quota.js";
import type { Stop } from "../../core/stop.js";
import type { Accounts } from "../../store/accounts/accounts.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { GateSettings, Keep } from "./ports.js";

/** A cap of a whole run: the most that the run may have committed, and the stop that it leads to. */
interface Cap extends Stop {
  most: Credits;
}

/** The balance to keep, as a cap computed from the latest balance reading. */
export function keeping(least: Credits, balance: Credits, mark: BalanceMark): Keep {
  return { least, most: minus(balance, least), mark };
}

/**
 * What a run may spend: its own cap, the balance to keep, the rest of the day's credits, and caps of single models. A
 * task that fails frees its price, so no cap is final while tasks are open.
 */
export class Caps {
  /** The balance to keep, by the newest reading; null if the user did not set one. */
  private keep: Keep | null;
  /** The most that may be committed without going below the balance to keep. */
  private kept: Credits | null = null;
  /** The cap that the day's credits set. */
  private today: Cap | null = null;
  /** What was left when no item fitted any more; null while an item may fit. */
  private leftover: Credits | null = null;
  /** What was committed when a fresh balance check was last allowed. */
  private claimedAt: Credits | null = null;
  /** Models that wait at their cap, with what they had committed when they reached it. */
  private readonly waiting = new Map<string, Credits>();

  private readonly options: RunOptions;
  private readonly modelCaps: ReadonlyMap<string, Credits>;

  constructor(private readonly settings: Pick<GateSettings, "run" | "priceCap" | "keep">) {
    this.options = settings.run.options;
    this.modelCaps = new Map(Object.entries(this.options.modelCaps ?? {}));
    this.keep = settings.keep;
  }

  /** The smallest cap; null if there is none. */
  get cap(): Credits | null {
    return this.smallest?.most ?? null;
  }

  /** No item fits any more: returns the stop that the smallest cap leads to. */
  reached(committed: Credits): Stop {
    this.leftover = this.left(committed);
    const { kind, message } = this.smallest ?? { kind: "cap", message: "the credit cap is reached" };
    return { kind, message };
  }

  /**
   * Whether a cap that was reached leaves more now than then, because something failed or was not charged. If so, it
   * counts as not reached.
   */
  liftReached(committed: Credits): boolean {
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
    const { maxCredits } = this.options;
    const { priceCap = null } = this.settings;
    const caps: Cap[] = [];
    if (maxCredits !== null)
      caps.push({ kind: "cap", most: maxCredits, message: "the credit cap is reached" });
    if (priceCap !== null)
      caps.push({ kind: "price", most: priceCap, message: "it costs more than --max-price allows" });
    if (keep !== null && this.kept !== null) {
      const message = `the balance would fall below the ${inCredits(keep.least)} that --keep-credits leaves`;
      caps.push({ kind: "keep", most: this.kept, message });
    }
    if (this.today !== null) caps.push(this.today);
    const [first] = caps.toSorted((a, b) => a.most - b.most);
    return first ?? null;
  }

  /** An answer to a paid request stated the balance. If others spend from it too, less may be spent. */
  async takeRemaining(
    accounts: Pick<Accounts, "takenFrom">,
    accountId: number,
    balance: Credits,
  ): Promise<void> {
    if (this.keep === null) return;
    const { mark } = this.keep;
    const { since } = await accounts.takenFrom(accountId, mark);
    const { keep } = this;
    // A balance that was read in the meantime is newer.
    if (keep.mark !== mark) return;
    this.keep = { ...keep, most: Math.min(keep.most, plus(since, minus(balance, keep.least))) as Credits };
  }

  /**
   * Computes what may be spent from a new balance. The balance now includes the charges that were in doubt, and the
   * refunds of failed tasks.
   */
  takeReading(balance: Credits, mark: BalanceMark): void {
    if (this.keep !== null) this.keep = keeping(this.keep.least, balance, mark);
  }

  /**
   * Whether one fresh balance check is allowed before --keep-credits stops the run, because the balance may be higher
   * than known. One check is allowed for each committed amount, and none if another cap ends the run.
   */
  allowRecheck(committed: Credits): boolean {
    if (this.smallest?.kind !== "keep" || this.claimedAt === committed) return false;
    this.claimedAt = committed;
    return true;
  }

  /** Updates the balance cap by what all workspaces of the account have spent since the balance was read. */
  async updateKept(
    accounts: Pick<Accounts, "takenFrom">,
    accountId: number,
    committed: Credits,
  ): Promise<void> {
    const { keep } = this;
    if (keep === null) return;
    const { since, before } = await accounts.takenFrom(accountId, keep.mark);
    this.kept = plus(committed, minus(keep.most, plus(since, before)));
  }

  /** Updates the day's cap by what all runs of the account have spent today. A new day begins at midnight. */
  async updateDay(
    accounts: Pick<Accounts, "spentOn">,
    accountId: number,
    { now, committed }: { now: DaySpan; committed: Credits },
  ): Promise<void> {
    const { dailyCredits } = this.options;
    if (dailyCredits === undefined) return;
    const spent = await accounts.spentOn(accountId, dayOf(now));
    const message = `the day's credits are used up: all runs of the account have spent ${showCredits(spent)} of the ${showCredits(dailyCredits)} that --max-credits-per-day allows`;
    this.today = { kind: "daily", most: plus(committed, minus(dailyCredits, spent)), message };
  }

  /** The limits that the spend log checks when it records a paid request; null if there are none. */
  bounds(now: DaySpan): Bounds | null {
    const { dailyCredits } = this.options;
    if (dailyCredits === undefined && this.keep === null) return null;
    const daily = dailyCredits === undefined ? null : { most: dailyCredits, day: dayOf(now) };
    return { daily, kept: this.keep };
  }

  get models(): string[] {
    return [...this.waiting.keys()];
  }

  /** One line for each model at its cap. */
  get messages(): string[] {
    return this.models.map((model) => {
      const cap = this.modelCaps.get(model);
      return `${model} has reached its cap${cap === undefined ? "" : ` of ${inCredits(cap)}`}; its other items wait`;
    });
  }

  /** What models with a cap may still cost. A model that waits continues when one of its tasks has failed. */
  async modelBudgets(
    store: Pick<Store, "spending">,
    runId: number,
    beginning: readonly number[],
  ): Promise<Map<string, Credits>> {
    const budgets = new Map<string, Credits>();
    for (const [model, cap] of this.modelCaps) {
      const { charged, pending } = await store.spending(runId, { model, beginning });
      const committed = plus(charged, pending);
      if (committed < (this.waiting.get(model) ?? committed)) this.waiting.delete(model);
      budgets.set(model, minus(cap, committed));
    }
    return budgets;
  }

  /** Whether a run has committed more than a cap of its own or of the model allows: something was charged more than planned. */
  async isPassed(store: Pick<Store, "spending">, runId: number, model: string): Promise<boolean> {
    const committed = async (of?: string) => {
      const { charged, pending } = await store.spending(runId, { ...defined({ model: of }), beginning: [] });
      return plus(charged, pending);
    };
    const ofModel = this.modelCaps.get(model);
    if (ofModel !== undefined && (await committed(model)) > ofModel) return true;
    return this.cap !== null && (await committed()) > this.cap;
  }

  /** The next item of these models does not fit, so the models wait. Returns whether there is one. */
  wait(models: readonly string[], budgets: ReadonlyMap<string, Credits>): boolean {
    for (const model of models) {
      const cap = this.modelCaps.get(model);
      const budget = budgets.get(model);
      if (cap !== undefined && budget !== undefined) this.waiting.set(model, minus(cap, budget));
    }
    return models.length > 0;
  }
}
