import type { Credits } from "../../src/core/money.js";
import type { Attempt, AttemptOutcome } from "../../src/core/ports/attempt.js";
import type { Scenario } from "./scenario.js";
import { type Effect, type Rule, type Sender, type Trip, Violation } from "./watch.js";
import { itemNumbered, type Workspace } from "./workspace.js";

/** What a process has seen of one model: POSTs that it waits for, and whether one was accepted. */
interface Tried {
  underWay: Set<Trip>;
  isProven: boolean;
}

/**
 * P7, where the service charges another price than was planned: the first paid request of a model goes alone, and once
 * its charge is on record nothing more is bought that was planned for less, by whatever process, until whoever sits
 * before the machine has agreed to it.
 */
export class PriceRules implements Rule {
  /** Models of the items. */
  private readonly models: ReadonlyMap<string, string>;
  /** The highest charge of each model that is on record, by workspace. */
  private readonly told: Map<string, number>[];
  /** The same that is known to all who begin from now on. */
  private readonly remembered = new Map<string, number>();
  /** What was remembered when a process began. */
  private readonly begun = new Map<Sender, ReadonlyMap<string, number>>();
  private readonly tried = new Map<Sender, Map<string, Tried>>();
  /** The newest POST of each item. */
  private readonly newest = new Map<string, Trip>();
  /** What POSTs were planned at, and those whose charge is on record. */
  private readonly planned = new Map<Trip, number>();
  private readonly known = new Set<Trip>();
  /** Items by attempt. */
  private readonly attempts = new Map<string, string>();

  constructor(
    private readonly scenario: Pick<Scenario, "items" | "repeats">,
    private readonly workspaces: readonly Workspace[],
  ) {
    this.models = new Map(scenario.items.map(({ id, model }) => [id, model]));
    this.told = workspaces.map(() => new Map());
  }

  /** What the user has agreed to pay for an item. */
  priceOf(item: string): number {
    for (const { prices } of this.workspaces.flatMap(({ jobs }) => jobs)) {
      const price = prices.get(item);
      if (price !== undefined) return price;
    }
    return 0;
  }

  /**
   * What the sender of a POST that was charged has to reckon with for it: its charge is not on record as long as it may
   * be lost.
   */
  countedAt(trip: Trip, charged: number): number {
    return this.known.has(trip) ? charged : Math.min(charged, this.planned.get(trip) ?? charged);
  }

  /** Whether an item was planned for less than its like is known to be charged: a charge may become known late. */
  isBelow(item: string): boolean {
    const model = this.models.get(item) ?? "";
    const charges = [this.remembered, ...this.told].map((known) => known.get(model) ?? 0);
    return this.priceOf(item) < Math.max(...charges) - 1e-6;
  }

  sent(trip: Trip): void {
    const { sender, item } = trip;
    if (!this.begun.has(sender)) this.begun.set(sender, new Map(this.remembered));
    if (trip.endpoint !== "generate" || item === null) return;
    const model = this.models.get(item) ?? "";
    const price = this.priceOf(item);
    const charge = Math.max(
      this.told[sender.workspace]?.get(model) ?? 0,
      this.begun.get(sender)?.get(model) ?? 0,
    );
    if (price < charge - 1e-6)
      throw new Violation(
        "P7",
        `the POST for ${item} was planned at ${price} credits, and its like was charged ${charge}`,
      );
    this.checkFirst(trip, model);
    this.newest.set(item, trip);
    this.planned.set(trip, price);
  }

  done({ sender, name, values, result }: Effect): void {
    if (name === "store.intend") this.noteAttempt(sender, result as Attempt);
    if (name === "store.conclude") {
      const item = this.attempts.get(`${sender.workspace} ${values[0]}`);
      if (item !== undefined && values[1] === "accepted")
        this.noteAccepted(sender, item, values[2] as AttemptOutcome);
    }
    // The answer to a repeated request.
    if (name === "store.adopt") {
      const { attempt, charged } = values[1] as { attempt: number; charged: Credits };
      const item = this.attempts.get(`${sender.workspace} ${attempt}`);
      if (item !== undefined && this.scenario.repeats) this.noteAccepted(sender, item, { charged });
    }
    // The group's name is a list that begins with the model.
    if (name === "accounts.charged") {
      const [model] = JSON.parse(String(values[1])) as [string];
      raise(this.remembered, model, Number(values[2]) / 1e6);
    }
  }

  private checkFirst(trip: Trip, model: string): void {
    const models = this.tried.get(trip.sender) ?? new Map<string, Tried>();
    this.tried.set(trip.sender, models);
    const tried = models.get(model) ?? { underWay: new Set(), isProven: false };
    models.set(model, tried);
    for (const one of tried.underWay) if (one.reply !== null) tried.underWay.delete(one);
    if (!tried.isProven && tried.underWay.size > 0)
      throw new Violation("P7", `the POST for ${trip.item} left beside the first one of ${model}`);
    tried.underWay.add(trip);
  }

  private noteAttempt(sender: Sender, { id, itemId }: Attempt): void {
    const item = itemNumbered(this.workspaces[sender.workspace] as Workspace, itemId);
    this.attempts.set(`${sender.workspace} ${id}`, item);
  }

  private noteAccepted(sender: Sender, item: string, { charged }: AttemptOutcome): void {
    const model = this.models.get(item) ?? "";
    const tried = this.tried.get(sender)?.get(model);
    if (tried) tried.isProven = true;
    const trip = this.newest.get(item);
    if (!trip?.made || charged === undefined) return;
    this.known.add(trip);
    raise(this.told[sender.workspace] as Map<string, number>, model, trip.made.costMicro / 1e6);
  }
}

function raise(charges: Map<string, number>, model: string, charge: number): void {
  charges.set(model, Math.max(charge, charges.get(model) ?? 0));
}
