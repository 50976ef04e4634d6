import { type Credits, minus, plus, showCredits } from "../core/money.js";
import type { Store } from "../core/store.js";
import type { RunSettings } from "./ports.js";

/**
 * What a run may spend besides its own cap: what must be left on the account, and caps of single models. A task that
 * fails frees its price, so none of these is final while tasks are open.
 */
export class Caps {
  /** The most that may be committed, so that the balance stays; null where nothing has to. */
  private most: Credits | null;
  /** Models that wait at their cap, with what they had committed by then. */
  private readonly waiting = new Map<string, Credits>();

  constructor(private readonly settings: Pick<RunSettings, "maxCredits" | "modelCaps" | "keep">) {
    const { keep } = settings;
    this.most = keep === null ? null : plus(keep.committed, minus(keep.balance, keep.least));
  }

  /** The smaller of the run's cap and what leaves the balance as it must be. */
  get cap(): Credits | null {
    const { maxCredits } = this.settings;
    if (this.most === null || maxCredits === null) return this.most ?? maxCredits;
    return Math.min(this.most, maxCredits) as Credits;
  }

  /** The service told the balance. Where others spend from it too, less may be spent here. */
  balanceTold(balance: Credits, committed: Credits): void {
    const { keep } = this.settings;
    if (keep === null || this.most === null) return;
    this.most = Math.min(this.most, plus(committed, minus(balance, keep.least))) as Credits;
  }

  /** The stop that the smaller cap leads to. */
  get stop(): { kind: "cap" | "keep"; message: string } {
    const { maxCredits, keep } = this.settings;
    if (keep === null || this.cap === maxCredits)
      return { kind: "cap", message: "the credit cap is reached" };
    return {
      kind: "keep",
      message: `the balance would fall below the ${showCredits(keep.least)} credits that --keep-credits leaves`,
    };
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
      const { charged, pending } = await store.spending(runId, model);
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
