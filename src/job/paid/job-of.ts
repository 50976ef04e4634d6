import { basename } from "node:path";
import { inCredits, noCredits, plus } from "../../core/money.js";
import type { PlannedItem } from "../../core/ports/draft.js";
import type { Run } from "../../core/ports/store.js";
import { isOfFiles, isThere, manifestFolder, manifestStem } from "../../manifest/folder.js";
import type { Manifest } from "../../manifest/shape/manifest.js";
import type { Finding, Plan } from "../../plan/plan.js";
import type { Store } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { type OtherJob, othersWith, sameShare } from "./other-jobs.js";
import type { PlannedKeys } from "./planned-keys.js";

/**
 * Which job a manifest belongs to. A job records which rows were paid for. Its name is the manifest's `name`, else the
 * file's stem, so a renamed or copied file would start a new job and pay for everything again: the other jobs of the
 * workspace are searched for its items first.
 */
export interface GuessedJob {
  name: string;
  note: string | null;
  finding: Finding | null;
}

/** The job that a manifest's file belonged to before; null if unknown. */
export function knownJob(manifest: Manifest, runs: readonly Run[], named: string | null): string | null {
  if (named !== null) return named;
  if (manifest.name !== manifestStem(manifest.file)) return manifest.name;
  const last = runs.findLast((run) => run.manifest === manifest.file);
  if (last) return last.jobName;
  return runs.some((run) => run.jobName === manifest.name) ? manifest.name : null;
}

/** The job of a manifest that no run knows: a new one, or the one that has most of its items. */
export async function guessJob(
  store: Store,
  runs: readonly Run[],
  plan: Pick<Plan, "job" | "edition" | "items" | "unselected">,
  keys: PlannedKeys,
): Promise<GuessedJob> {
  const { job } = plan;
  const others = await othersWith(store, runs, plan, keys);
  const all = plan.items.length + plan.unselected.length;
  // Standard input cannot have been renamed.
  const [renamed] = others
    .filter(({ file }) => basename(file) !== "-" && isGone(file))
    .toSorted((a, b) => b.has.size - a.has.size);
  if (renamed && renamed.has.size >= all * sameShare) {
    const { name, file, has } = renamed;
    const found = `${basename(file)} is gone and job ${name} has ${has.size} of ${count(all, "item")}: continuing that job`;
    return { name, note: `${found} (--job ${shellWord(job)} makes a separate job)`, finding: null };
  }
  const paidFor = others.filter(({ paid }) => paid.size > 0).toSorted((a, b) => b.paid.size - a.paid.size);
  const made = new Set(paidFor.flatMap(({ paid }) => [...paid]));
  if (made.size === 0) return { name: job, note: null, finding: null };
  const [most] = paidFor as [OtherJob, ...OtherJob[]];
  const what = `${made.size} of ${count(all, "item")} ${made.size === 1 ? "was" : "were"} made before`;
  const message = `${what} ${whichJob(paidFor, job, plan.items)}.`;
  const more = paidFor.length === 1 ? "" : ` and ${count(paidFor.length - 1, "other job")}`;
  const found = `${what} for job ${most.name} (${basename(most.file)})${more}`;
  const choice = { found, continues: most.name, again: job };
  return { name: job, note: null, finding: { kind: "made_before", message, choice } };
}

function isGone(manifest: string): boolean {
  return !isThere(isOfFiles(manifest) ? manifestFolder(manifest) : manifest);
}

/** The end of the sentence: for which jobs, at what cost, and what to type. */
function whichJob(
  [first, ...others]: readonly OtherJob[],
  own: string,
  items: Iterable<PlannedItem>,
): string {
  if (first === undefined) throw new Error("items that were made for no job");
  const rest = others.filter(({ paid }) => [...paid].some((key) => !first.paid.has(key)));
  const names = `${rest.length === 1 ? "job" : "jobs"} ${rest.map(({ name }) => name).join(", ")}`;
  let [cost, restCost] = [noCredits, noCredits];
  for (const { key, price } of items) {
    const isOfRest = !first.paid.has(key) && rest.some(({ paid }) => paid.has(key));
    if (isOfRest) restCost = plus(restCost, price);
    if (isOfRest || first.paid.has(key)) cost = plus(cost, price);
  }
  const named = `for job ${first.name} (${basename(first.file)})`;
  const again = `would be paid again, for ${inCredits(cost)}`;
  const [continues, separate] = [`--job ${shellWord(first.name)}`, `--job ${shellWord(own)}`];
  if (rest.length === 0)
    return `${named} and ${again}: ${continues} continues that job, ${separate} makes them again`;
  return (
    `${named} and for ${names}, and ${again}: ${continues} continues job ${first.name} and pays again for the items of ${names} ` +
    `(${inCredits(restCost)}), unless you leave their rows out; ${separate} makes all of them again`
  );
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
