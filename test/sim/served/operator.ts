import { settleUnknown } from "../../../src/serve/works/person.js";
import { type Chance, chance } from "../chance.js";
import type { Kernel } from "../kernel.js";
import type { ServedCounts } from "./counts.js";
import type { ServedHost } from "./host.js";
import type { ServedRules } from "./rules.js";
import type { Upstream } from "./upstream.js";

/**
 * The person who looks after the service, and knows what the providers' own pages say: now and then says what became of jobs in
 * doubt, as `serve jobs resolve` does.
 */
export class Operator {
  private readonly lot: Chance;

  constructor(
    private readonly parts: {
      seed: number;
      kernel: Kernel;
      host: ServedHost;
      upstream: Upstream;
      rules: ServedRules;
      figures: ServedCounts;
    },
  ) {
    this.lot = chance(parts.seed, "operator");
  }

  async work(isOver: () => boolean): Promise<void> {
    const { kernel, host } = this.parts;
    while (!isOver()) {
      await kernel.sleep(this.lot.scale(60_000, 1_200_000));
      const open = host.records?.journal.open() ?? [];
      for (const { taskId, stage, provider } of open)
        if (stage === "unknown" && provider !== "by-id") this.settle(taskId);
    }
  }

  private settle(taskId: string): void {
    const { kernel, host, upstream, rules, figures } = this.parts;
    if (upstream.isUnderWay(taskId)) return;
    const execution = upstream.executionOf(taskId);
    const isThere = execution !== undefined && execution.readyAt <= kernel.now();
    if (execution && !isThere) return;
    // What answers at once cannot be asked again: to have the item, somebody has to pay for it twice, and says so.
    const isToBeHad = execution?.way === "queue";
    const verdict = isToBeHad
      ? { kind: "found" as const, ref: `ref-${execution.number}` }
      : this.lot.is(0.5)
        ? { kind: "again" as const }
        : { kind: "failed" as const };
    if (verdict.kind !== "found") rules.settled.add(taskId);
    const problem = host.beside((records) => settleUnknown(records, taskId, verdict, kernel.now()));
    if (problem !== null) throw new Error(problem);
    figures.settled++;
    if (isToBeHad) return;
    if (execution?.end === "made") figures.allowed++;
    for (const one of upstream.executions) if (one.jobId === taskId) one.isLetGo = true;
  }
}
