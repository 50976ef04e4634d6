import { existsSync } from "node:fs";
import { basename, extname } from "node:path";
import type { ItemState } from "../../core/item.js";
import { type Credits, inCredits, noCredits, plus, sumOf } from "../../core/money.js";
import type { Draft } from "../../core/ports/draft.js";
import type { Run, Store } from "../../core/ports/store.js";
import type { Manifest } from "../../manifest/shape/manifest.js";
import type { Finding, Plan } from "../../plan/plan.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";

/**
 * Which job a manifest belongs to. A job records which rows were paid for. Its name is the manifest's `name`, else the
 * file's stem, so a renamed or copied file would start a new job and pay for everything again: the other jobs of the
 * workspace are searched for its items first.
 */
export interface JobChoice {
  name: string;
  note: string | null;
  finding: Finding | null;
}

/** States of items that were paid, or may have been. */
const paid: readonly ItemState[] = [
  ...(["submitting", "unknown", "held", "processing", "overdue", "ready", "archived"] as const),
];

/** The share of known items from which a new job counts as an older job under another name. */
const sameShare = 0.5;

/** The job that a manifest's file belonged to before; null if unknown. */
export function knownJob(manifest: Manifest, runs: readonly Run[], named: string | null): string | null {
  if (named !== null) return named;
  if (manifest.name !== stemOf(manifest)) return manifest.name;
  const last = runs.findLast((run) => run.manifest === manifest.file);
  if (last) return last.jobName;
  return runs.some((run) => run.jobName === manifest.name) ? manifest.name : null;
}

/** The job of a manifest that no run knows: a new one, or the one that most of its items were made for. */
export async function guessJob(
  store: Store,
  runs: readonly Run[],
  plan: Pick<Plan, "job" | "items" | "unselected">,
  draft: Pick<Draft, "holds">,
): Promise<JobChoice> {
  const { job } = plan;
  let best: { name: string; made: Set<string> } | null = null;
  for (const name of new Set(runs.map((run) => run.jobName))) {
    const made = await paidBy(name, store, draft);
    if (made.size > (best?.made.size ?? 0)) best = { name, made };
  }
  if (best === null) return { name: job, note: null, finding: null };
  const { name, made } = best;
  const file = runs.findLast((run) => run.jobName === name)?.manifest ?? "";
  const all = plan.items.length + plan.unselected.length;
  const most = made.size >= all * sameShare;
  const what = `${made.size} of ${count(all, "item")}`;
  // Standard input cannot have been renamed.
  if (most && basename(file) !== "-" && !existsSync(file)) {
    const renamed = `${basename(file)} is gone and ${what} were made for job ${name}: continuing that job`;
    return { name, note: `${renamed} (--job ${shellWord(job)} makes a separate job)`, finding: null };
  }
  let price = noCredits;
  for (const item of plan.items) if (made.has(item.key)) price = plus(price, item.price);
  const ways = `--job ${shellWord(name)} continues that job, --job ${shellWord(job)} makes them again`;
  const message = `${what} were made before for job ${name} (${basename(file)}) and would be paid again, for ${inCredits(price)}: ${ways}.`;
  return { name: job, note: null, finding: { kind: most ? "made_before" : "partly_made_before", message } };
}

/**
 * New items of a job with a history that another job has paid for: a corrected row may have been run from a sheet of its
 * own. Null if there are none.
 */
export async function madeElsewhere(
  store: Store,
  runs: readonly Run[],
  plan: Pick<Plan, "job" | "items" | "standings">,
  draft: Pick<Draft, "holds">,
): Promise<Finding | null> {
  if (!plan.standings.new) return null;
  const madeFor = new Map<string, string>();
  for (const name of new Set(runs.map((run) => run.jobName))) {
    if (name === plan.job) continue;
    for (const key of await paidBy(name, store, draft)) madeFor.set(key, name);
  }
  if (madeFor.size === 0) return null;
  const made: { rowId: string; job: string; price: Credits }[] = [];
  for (const { key, rowId, due, standing, price } of plan.items) {
    const job = due && standing === "new" ? madeFor.get(key) : undefined;
    if (job !== undefined) made.push({ rowId, job, price });
  }
  const [first] = made;
  if (!first) return null;
  const price = inCredits(sumOf(made.map((item) => item.price)));
  const more = made.length === 1 ? "" : ` and ${made.length - 1} more`;
  const message = `${first.rowId}${more} ${made.length === 1 ? "was" : "were"} made before for job ${first.job} and would be paid again, for ${price}: take the files from there and leave the rows out, or add --job ${shellWord(plan.job)} to pay for them again.`;
  return { kind: "made_before", message };
}

/** Keys of the draft's items that a job has paid for. */
async function paidBy(
  jobName: string,
  store: Pick<Store, "history">,
  draft: Pick<Draft, "holds">,
): Promise<Set<string>> {
  const keys = new Set<string>();
  for await (const page of store.history(jobName))
    for (const { key, state } of page) if (paid.includes(state) && draft.holds(key)) keys.add(key);
  return keys;
}

function stemOf({ file }: Pick<Manifest, "file">): string {
  return basename(file, extname(file));
}

/**
 * The edition of a job that a run belongs to. The first has an empty name. `--edition NAME` makes everything again under
 * that name, once. `--fresh` starts a numbered edition, or continues the newest while it is unfinished, so a scheduled
 * run restarted after a crash pays nothing twice.
 */
export type EditionChoice = { name: string } | "fresh" | "first";

export async function editionOf(
  choice: EditionChoice,
  store: Store | null,
  jobName: string,
): Promise<string> {
  if (choice === "first") return "";
  if (choice !== "fresh") return choice.name;
  if (store === null) return "";
  const runs = (await store.runs()).filter((run) => run.jobName === jobName && numberOf(run) !== null);
  const newest = runs.toSorted((a, b) => (numberOf(a) ?? 0) - (numberOf(b) ?? 0) || a.id - b.id).at(-1);
  if (!newest) return "";
  return newest.state === "finished" || newest.state === "cancelled"
    ? `#${(numberOf(newest) ?? 1) + 1}`
    : newest.edition;
}

/** The number of a numbered edition: 1 for the first, null for one with a name. */
function numberOf({ edition }: Pick<Run, "edition">): number | null {
  if (edition === "") return 1;
  const match = /^#(\d+)$/.exec(edition);
  return match ? Number(match[1]) : null;
}
