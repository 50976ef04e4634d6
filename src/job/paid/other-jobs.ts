import { isPaid } from "../../core/item.js";
import { inCredits } from "../../core/money.js";
import type { Run } from "../../core/ports/store.js";
import type { Plan } from "../../plan/plan.js";
import type { Store } from "../../store/workspace/workspace.js";
import { shellWord } from "../../text/shell.js";
import type { PlannedKeys } from "./planned-keys.js";
import type { AskedPlan, KnownItems, PaymentSource, Question } from "./question.js";

/** The share of known items from which a new job counts as an older job under another name. */
export const sameShare = 0.5;

/** Items that another job of the workspace has paid for: rows may have been moved or copied from one sheet to another. */
export async function madeForOtherJobs(
  plan: AskedPlan,
  { store, runs, keys, agreed }: Question,
): Promise<PaymentSource<string>> {
  const madeFor = new Map<string, string>();
  for (const { name, paid } of store === null ? [] : await othersWith(store, runs, plan, keys))
    for (const key of paid) madeFor.set(key, name);
  return {
    has: ({ key }) => madeFor.get(key),
    finding({ found, credits }: KnownItems<string>, { job, items }) {
      const [first] = found;
      if (first === undefined) return null;
      const more = found.length === 1 ? "" : ` and ${found.length - 1} more`;
      const [was, are] = found.length === 1 ? ["was", "is"] : ["were", "are"];
      const made = `${first.item.rowId}${more} ${was} made before for job ${first.by}`;
      const what = `${made} and ${agreed ? are : "would be"} paid again, for ${inCredits(credits)}`;
      const way = "take the files from there and leave the rows out";
      if (agreed) {
        const message = `${what}; to avoid that, ${way}.`;
        return { refused: false, finding: { kind: "partly_made_before", message } };
      }
      // The sheet may have taken the name of another one.
      const most = found.filter(({ by }) => by === first.by).length >= items.length * sameShare;
      const choice = { found: made, continues: most ? first.by : null, again: job };
      const instead = most ? `--job ${shellWord(first.by)} continues that job; or ` : "";
      const message = `${what}: ${instead}${way}, or add --job ${shellWord(job)} to pay for them again.`;
      return { refused: true, finding: { kind: "made_before", message, choice } };
    },
  };
}

/** Another job of the workspace that has some of a plan's items. */
export interface OtherJob {
  name: string;
  /** The manifest of its newest run. */
  file: string;
  /** The keys of the plan's items that it has, and of those that it has paid for. */
  has: ReadonlySet<string>;
  paid: ReadonlySet<string>;
}

export async function othersWith(
  store: Pick<Store, "history">,
  runs: readonly Run[],
  { job, edition }: Pick<Plan, "job" | "edition">,
  keys: PlannedKeys,
): Promise<OtherJob[]> {
  const others: OtherJob[] = [];
  const files = new Map(runs.map(({ jobName, manifest }) => [jobName, manifest]));
  const ofEdition = new Set(runs.filter((run) => run.edition === edition).map(({ jobName }) => jobName));
  for (const [name, file] of files) {
    // Keys have the edition, and histories may be long.
    if (name === job || !ofEdition.has(name)) continue;
    const [has, paid] = [new Set<string>(), new Set<string>()];
    for await (const page of store.history(name))
      for (const item of page) {
        const key = keys.own(item.key);
        if (key === undefined) continue;
        has.add(key);
        if (isPaid(item)) paid.add(key);
      }
    if (has.size > 0) others.push({ name, file, has, paid });
  }
  return others;
}
