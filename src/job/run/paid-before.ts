import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { type IndexLine, indexName, JobIndex } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { type Credits, inCredits, noCredits, plus, sumOf } from "../../core/money.js";
import type { Draft } from "../../core/ports/draft.js";
import type { PaidAttempt, PaidElsewhere } from "../../core/ports/spend-log.js";
import type { Item, Run, Store } from "../../core/ports/store.js";
import { dayMs } from "../../core/quota/quota.js";
import type { Finding, Plan } from "../../plan/plan.js";
import { beginningOf } from "../../run/conclude.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import type { OpenAccount } from "../workspace/account.js";
import { indexFiles } from "../workspace/history.js";
import type { Workspace } from "../workspace/workspace.js";
import type { EditionChoice } from "./job-of.js";

/**
 * How long (ms) a paid request blocks paying again. Tasks end within a day and their files stay available for
 * days; two weeks after a history was lost there is nothing left to collect.
 */
const memoryMs = 14 * dayMs;
const namesMax = 5;

interface Circumstances {
  clock: Clock;
  edition: EditionChoice;
  sandbox: boolean;
  workspace: Pick<Workspace, "root" | "stateFile">;
  account: Pick<OpenAccount, "spendLog">;
  store: Pick<Store, "runs" | "attemptOfEntry"> | null;
  draft: Pick<Draft, "holds">;
}

/**
 * Items missing from the history may still be at the service: if the workspace was deleted while tasks were open, only
 * the account's spend log knows them, and they would be paid again. Null if the spend log knows nothing about the plan's
 * new items beyond this workspace's history, for a new edition, and for a rehearsal.
 */
export async function paidBefore(
  circumstances: Circumstances,
  plan: Pick<Plan, "items" | "standings">,
): Promise<Finding | null> {
  const { workspace, edition, sandbox } = circumstances;
  if (sandbox || edition === "fresh" || !plan.standings.new) return null;
  const byKey = await unknownEntries(circumstances);
  if (byKey.size === 0) return null;
  const names: string[] = [];
  let [items, price, newest] = [0, noCredits, 0];
  for (const { key, rowId, due, standing, price: each } of plan.items) {
    const entry = due && standing === "new" ? byKey.get(key) : undefined;
    if (entry === undefined) continue;
    items++;
    price = plus(price, each);
    newest = Math.max(newest, entry.sentAt);
    if (names.length < namesMax) names.push(`${rowId} (${entry.taskId ?? "no task is known"})`);
  }
  if (items === 0) return null;
  const all = plan.items.length;
  const of = `${count(all, "item")} ${items === 1 ? "was" : "were"}`;
  const more = items > names.length ? ` and ${items - names.length} more` : "";
  const what = `${items} of ${of} sent from ${workspace.root} before (the newest on ${new Date(newest).toISOString().slice(0, 10)}), which may have been charged and whose outcome is unknown: ${names.join(", ")}${more}`;
  const anew =
    plan.standings.new === all
      ? "--fresh or another --edition makes them again"
      : "a sheet of only these rows with --fresh makes them again";
  return {
    kind: "paid_before",
    message: `${what}. The workspace's history does not know them, and they would be paid again, for ${inCredits(price)}: restore ${dirname(workspace.stateFile)} and run \`bulkgen resume\` to continue them; ${anew}.`,
  };
}

/** How long (ms) a request from another workspace counts: longer than a sheet is usually worked on. */
const elsewhereMs = 30 * dayMs;

/**
 * Items that this run would pay for and that another workspace on this machine has paid for, or may have: the sheet was
 * moved or copied to another folder, or a workspace was made nearer to it. Null if there are none, for a new edition, and
 * for a rehearsal.
 * `agreed`: the person named the job, and thereby agreed to pay again.
 */
export async function paidElsewhere(
  { account, clock, draft, edition, sandbox }: Omit<Circumstances, "store" | "workspace">,
  plan: Pick<Plan, "job" | "items" | "due">,
  { agreed }: { agreed: boolean },
): Promise<Finding | null> {
  if (sandbox || edition === "fresh" || plan.due === 0) return null;
  const byKey = new Map<string, PaidElsewhere>();
  for await (const page of pagesElsewhere(account, clock.now() - elsewhereMs))
    for (const entry of page) if (draft.holds(entry.itemKey)) byKey.set(entry.itemKey, entry);
  if (byKey.size === 0) return null;
  let [items, price, newest, isInDoubt] = [0, noCredits, null as PaidElsewhere | null, false];
  for (const { key, due, standing, price: each } of plan.items) {
    const entry = due && standing !== "archived" ? byKey.get(key) : undefined;
    if (entry === undefined) continue;
    items++;
    price = plus(price, each);
    isInDoubt ||= entry.isInDoubt;
    if (newest === null || entry.sentAt > newest.sentAt) newest = entry;
  }
  if (newest === null) return null;
  const root = rootOf(newest);
  const [were, are] = items === 1 ? ["was", "is"] : ["were", "are"];
  const paid = `${isInDoubt ? "may have been" : were} paid for`;
  const what = `${items} of ${count(plan.items.length, "item")} ${paid} in the workspace ${root} (the newest on ${new Date(newest.sentAt).toISOString().slice(0, 10)}) and ${agreed ? are : "would be"} paid again here, for ${inCredits(price)}`;
  const ways = `--workspace ${shellWord(root)} continues there`;
  if (agreed) return { kind: "partly_made_before", message: `${what}; ${ways}.` };
  return {
    kind: "made_before",
    message: `${what}: ${ways}, --job ${shellWord(plan.job)} pays for them again.`,
  };
}

/** Items of a run that another workspace has paid for, or may have, since the run began, and would be paid for again. */
export interface PaidMeanwhile {
  items: number;
  credits: Credits;
  /** The first of them. */
  rowId: string;
  /** The folder of that workspace. */
  root: string;
}

/** Null if there are none, and for a rehearsal. */
export async function paidMeanwhile(
  account: Pick<OpenAccount, "spendLog">,
  store: Pick<Store, "made">,
  { id, jobId, startedAt, options }: Pick<Run, "id" | "jobId" | "startedAt" | "options">,
): Promise<PaidMeanwhile | null> {
  if (options.sandbox) return null;
  const found = new Map<string, { item: Item; root: string }>();
  for await (const page of pagesElsewhere(account, startedAt)) {
    const roots = new Map(page.map((entry) => [entry.itemKey, rootOf(entry)]));
    for (const { item } of await store.made(jobId, [...roots.keys()])) {
      const isLeft = item.state === "planned" || item.state === "blocked";
      if (item.runId === id && isLeft) found.set(item.key, { item, root: roots.get(item.key) ?? "" });
    }
  }
  const all = [...found.values()].toSorted((a, b) => a.item.position - b.item.position);
  const [first] = all;
  if (first === undefined) return null;
  const credits = sumOf(all.map(({ item }) => item.price));
  return { items: all.length, credits, rowId: first.item.rowId, root: first.root };
}

/** What other workspaces have paid for, or may have, since a time, as far as they are still there. */
async function* pagesElsewhere(
  { spendLog }: Pick<OpenAccount, "spendLog">,
  since: number,
): AsyncGenerator<PaidElsewhere[]> {
  const isThere = new Map<string, boolean>();
  for await (const page of spendLog.paidElsewhere(since)) {
    for (const { workspace } of page)
      if (!isThere.has(workspace)) isThere.set(workspace, existsSync(workspace));
    yield page.filter(({ workspace }) => isThere.get(workspace));
  }
}

function rootOf({ workspace }: PaidElsewhere): string {
  return dirname(dirname(workspace));
}

/** The newest spend-log entry of each draft item that is not in the history, by item key. */
async function unknownEntries({
  account,
  clock,
  draft,
  store,
}: Circumstances): Promise<Map<string, PaidAttempt>> {
  const byKey = new Map<string, PaidAttempt>();
  const entries = await account.spendLog.unended(clock.now() - memoryMs);
  if (entries.length === 0) return byKey;
  const began = beginningOf(store === null ? [] : await store.runs());
  for (const entry of entries) {
    // A process that ended before its item was recorded has sent nothing, if it is of this history.
    const isUnsent = !entry.answered && entry.intendedAt >= began;
    if (isUnsent || !draft.holds(entry.itemKey)) continue;
    if ((await store?.attemptOfEntry(entry.entry)) == null) byKey.set(entry.itemKey, entry);
  }
  return byKey;
}

/**
 * Items that the history does not have, or has as unpaid, may be in the archive's index: the workspace was deleted, left
 * behind or restored from an older copy, or others share the output folder. They would be paid again. Without any history,
 * the archives of other jobs count too, because the sheet may have been renamed. Null if the archive has none of the
 * plan's items, for a new edition, and for a rehearsal. Rejects with disk errors.
 */
export async function archivedBefore(
  {
    workspace,
    edition,
    sandbox,
    store,
    job,
  }: {
    workspace: Pick<Workspace, "root" | "outFolder">;
    edition: EditionChoice;
    sandbox: boolean;
    store: Pick<Store, "runs" | "find"> | null;
    /** The job's name, if the command line gives one. */
    job: string | null;
  },
  plan: Pick<Plan, "job" | "items" | "due">,
  draft: Pick<Draft, "holds">,
): Promise<Finding | null> {
  const { root, outFolder } = workspace;
  if (sandbox || edition === "fresh" || plan.due === 0) return null;
  const own = jobFolder({ outFolder, jobName: plan.job });
  const mayBeRenamed = job === null && (store === null || (await store.runs()).length === 0);
  const byKey = await linesIn(mayBeRenamed ? indexFiles(outFolder).map(dirname) : [own], draft);
  if (byKey.size === 0) return null;
  let [items, gone, price, newest, where] = [0, 0, noCredits, "", own];
  for (const { key, due, standing, price: each } of plan.items) {
    const found = due && standing !== "archived" ? byKey.get(key) : undefined;
    if (found === undefined) continue;
    const { line, folder } = found;
    // The history knows the file: another request followed its task, or it is another job's in the same folder.
    if (line.task !== "" && (await store?.find(line.task))?.length) continue;
    // Once the history is back, --missing decides about these.
    const isGone = line.bucket === undefined && !existsSync(join(folder, line.file));
    if (isGone && line.task === "") continue;
    if (isGone) gone++;
    items++;
    price = plus(price, each);
    if (line.saved > newest) [newest, where] = [line.saved, folder];
  }
  if (items === 0) return null;
  const all = plan.items.length;
  const what = `${items} of ${count(all, "item")} ${items === 1 ? "is" : "are"} in the archive ${where} (the newest from ${newest.slice(0, 10)}${gone > 0 ? `; the files of ${gone} are gone` : ""})`;
  const out = outFolder === join(root, "outputs") ? "" : ` --out ${shellWord(outFolder)}`;
  const ways = `\`bulkgen doctor --rebuild${out}\` in ${root} restores them, --fresh or another --edition makes them again`;
  return {
    kind: "archived_before",
    message: `${what}, the workspace's history does not know them, and they would be paid again, for ${inCredits(price)}: ${ways}.`,
  };
}

/** The index lines of the plan's items in some jobs' folders, by item key. */
async function linesIn(
  folders: readonly string[],
  draft: Pick<Draft, "holds">,
): Promise<Map<string, { line: IndexLine; folder: string }>> {
  const byKey = new Map<string, { line: IndexLine; folder: string }>();
  for (const folder of folders) {
    if (!existsSync(join(folder, indexName))) continue;
    for (const line of (await JobIndex.open(nodeDisk, folder)).latest())
      if (draft.holds(line.key)) byKey.set(line.key, { line, folder });
  }
  return byKey;
}
