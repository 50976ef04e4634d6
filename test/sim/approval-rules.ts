import { jobOf } from "./jobs.js";
import type { Scenario, ScenarioItem } from "./scenario.js";
import type { SimulatedService } from "./service.js";
import { type Effect, type Rule, type Sender, type Trip, Violation } from "./watch.js";
import { itemNumbered, type Workspace } from "./workspace.js";

/**
 * Looked at whenever a paid request is put on the wire: nothing is made of an output that nobody approved; and with a
 * canary, a process sends one item of a kind alone until one of that kind is archived, and approved where that is asked for.
 */
export class ApprovalRules implements Rule {
  private readonly items: ReadonlyMap<string, ScenarioItem>;
  private readonly first = new Map<Sender, Map<string, string>>();
  /** Outputs in the archive, by item. */
  private readonly saved = new Map<string, Set<number>>();

  constructor(
    private readonly scenario: Scenario,
    private readonly service: SimulatedService,
    private readonly approved: ReadonlySet<string>,
    private readonly workspaces: readonly Workspace[],
  ) {
    this.items = new Map(scenario.items.map((item) => [item.id, item]));
  }

  done({ sender, name, values: [id, what] }: Effect): void {
    if (name !== "store.saved" && name !== "store.apply") return;
    const item = itemNumbered(this.workspaces[sender.workspace] as Workspace, Number(id));
    if (name === "store.saved") this.saved.set(item, new Set(this.saved.get(item)).add(Number(what)));
    else if (what === "file_lost") this.saved.delete(item);
  }

  sent({ sender, endpoint, item: id }: Trip): void {
    const item = endpoint === "generate" && id !== null ? this.items.get(id) : undefined;
    if (item === undefined) return;
    for (const { of } of item.takes ?? [])
      if (this.items.get(of)?.approve && !this.approved.has(of))
        throw new Violation("approval", `the POST for ${item.id} left before ${of} was approved`);
    if (this.scenario.canary) this.checkCanary(sender, item);
  }

  private checkCanary(sender: Sender, { id, model }: ScenarioItem): void {
    const firsts = this.first.get(sender) ?? new Map<string, string>();
    this.first.set(sender, firsts);
    const first = firsts.get(model) ?? id;
    firsts.set(model, first);
    if (first === id || this.hasArchived(sender, model)) return;
    throw new Violation(
      "canary",
      `the POST for ${id} left after that for ${first}, and before any ${model} was archived`,
    );
  }

  private hasArchived(sender: Sender, model: string): boolean {
    const { tasks, madeFor } = this.service.ledger;
    for (const { id, outputs } of tasks.values()) {
      const item = this.items.get(madeFor.get(id) ?? "");
      if (item === undefined || item.model !== model) continue;
      if (item.workspace !== sender.workspace || jobOf(item.id) !== sender.job) continue;
      if ((this.saved.get(item.id)?.size ?? 0) < outputs.length) continue;
      if (!item.approve || this.approved.has(item.id)) return true;
    }
    return false;
  }
}
