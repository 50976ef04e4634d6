import { type Chance, chance } from "./chance.js";
import type { Scenario } from "./scenario.js";
import { itemNumbered, type Job, type Workspace } from "./workspace.js";

/** Who is asked, and for which runs one item of each kind goes first. */
export function approvalsOf(
  lot: Chance,
  { items, again, otherPrice, cancel }: Pick<Scenario, "items" | "again" | "otherPrice" | "cancel">,
): Partial<Pick<Scenario, "items" | "canary">> {
  const canary = lot.is(0.12) ? { canary: true } : {};
  const mayAsk = !otherPrice && !cancel && (again === "resume" || items.every(({ replaces }) => !replaces));
  if (!mayAsk || !lot.is(0.3)) return canary;
  const parents = new Set(items.flatMap(({ takes = [] }) => takes.map(({ of }) => of)));
  const share = parents.size > 0 ? 0.6 : 0.2;
  const asks = items.map((item) =>
    lot.is(parents.has(item.id) ? share : 0.1) ? { ...item, approve: true as const } : item,
  );
  return { ...canary, items: asks };
}

/**
 * The user who looks at what was made, between two processes: approves most of it, rejects some, leaves some for the next
 * time. What was rejected may be approved later.
 */
export class Deciding {
  private readonly lot: Chance;
  private readonly rejected = new Map<Job, number[]>();

  constructor(
    { seed }: Scenario,
    private readonly workspace: Workspace,
    /** The scenario's items that are approved. */
    private readonly approved: Set<string>,
  ) {
    this.lot = chance(seed, "deciding", workspace.number);
  }

  /** Whether something was decided. */
  async of(job: Job): Promise<boolean> {
    if (job.run === null) return false;
    const { store } = this.workspace;
    const waiting = await store.awaitingApproval(job.run.id);
    let decided = false;
    for (const { id } of waiting) {
      // One at least, so that it comes to an end.
      if (decided && this.lot.is(0.3)) continue;
      decided = true;
      await (this.lot.is(0.85) ? this.approve(id) : this.reject(job, id));
    }
    if (decided) return true;
    const [again, ...rest] = this.rejected.get(job) ?? [];
    if (again === undefined || this.lot.is(0.5)) return false;
    this.rejected.set(job, rest);
    if ((await store.item(again)).state !== "archived") return false;
    await this.approve(again);
    return true;
  }

  private async approve(id: number): Promise<void> {
    this.approved.add(itemNumbered(this.workspace, id));
    await this.workspace.store.approve([id], "approved");
  }

  private async reject(job: Job, id: number): Promise<void> {
    this.rejected.set(job, [...(this.rejected.get(job) ?? []), id]);
    await this.workspace.store.approve([id], "rejected");
  }
}
