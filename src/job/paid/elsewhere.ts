import { existsSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { inCredits, sumOf } from "../../core/money.js";
import type { PaidAttempt, PaidElsewhere } from "../../core/ports/spend-log.js";
import type { Item, Run } from "../../core/ports/store.js";
import { dayMs } from "../../core/quota/quota.js";
import { beginningOf } from "../../run/conclude.js";
import type { Store } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import type { OpenAccount } from "../../workspace/account.js";
import { hasId } from "../../workspace/identity.js";
import { markerName } from "../../workspace/workspace.js";
import type { KnownItems, PaymentSource, Question } from "./question.js";
import { madeParams, mayHaveOtherKeys, restKeys } from "./rest-keys.js";

/**
 * What the spend log of this machine knows of items, beyond what the workspace's history knows: the workspace was deleted
 * or restored, or the sheet was moved or copied to another one.
 */

/**
 * How long (ms) a paid request without a recorded end blocks paying again. Tasks end within a day and their files stay
 * available for days; two weeks after a history was lost there is nothing left to collect.
 */
const unendedMs = 14 * dayMs;
/** How long (ms) what was paid for in another workspace counts: longer than a sheet is usually worked on. */
const elsewhereMs = 30 * dayMs;
const namesMax = 5;

/**
 * Requests from here whose end is not recorded, and which the history does not know: the workspace was deleted while
 * tasks were open. Their tasks may still be at the service.
 */
export async function unendedHere(question: Question): Promise<PaymentSource> {
  const { workspace } = question;
  const byKey = await unknownEntries(question);
  return {
    has: ({ key, state }) => (state === "new" ? byKey.get(key) : undefined),
    finding(tally: KnownItems<PaidAttempt>, plan) {
      const names = tally.found
        .slice(0, namesMax)
        .map(({ item, by }) => `${item.rowId} (${by.taskId ?? "no task is known"})`);
      const items = tally.found.length;
      const all = plan.items.length;
      const of = `${count(all, "item")} ${items === 1 ? "was" : "were"}`;
      const more = items > names.length ? ` and ${items - names.length} more` : "";
      const what = `${items} of ${of} sent from ${workspace.root} before (the newest on ${dateOf(newestOf(tally).sentAt)}), which may have been charged and whose outcome is unknown: ${names.join(", ")}${more}`;
      const anew =
        plan.states.new === all
          ? "--fresh or another --edition makes them again"
          : "a sheet of only these rows with --fresh makes them again";
      const message = `${what}. The workspace's history does not know them, and they would be paid again, for ${inCredits(tally.credits)}: restore ${dirname(workspace.stateFile)} and run \`bulkgen resume\` to continue them; ${anew}.`;
      return { refused: true, finding: { kind: "paid_before", message } };
    },
  };
}

/** The newest spend-log entry of each draft item that is not in the history, by item key. */
async function unknownEntries({
  account,
  clock,
  keys,
  store,
  runs,
}: Question): Promise<Map<string, PaidAttempt>> {
  const byKey = new Map<string, PaidAttempt>();
  const entries = await account.spendLog.unended(clock.now() - unendedMs);
  const began = beginningOf(runs);
  for (const entry of entries) {
    // A process that ended before its item was recorded has sent nothing, if it is of this history.
    const isUnsent = !entry.answered && entry.intendedAt >= began;
    const planned = keys.find(entry.itemKey);
    if (isUnsent || planned === undefined) continue;
    if ((await store?.attemptOfEntry(entry.entry)) == null) byKey.set(planned.key, entry);
  }
  return byKey;
}

/**
 * What another workspace has paid for, or may have, wherever its folder is now; and what this one has paid for before its
 * history was rebuilt without it.
 */
export async function paidElsewhere({
  account,
  clock,
  keys,
  store,
  runs,
  agreed,
  workspace,
}: Question): Promise<PaymentSource> {
  const byKey = new Map<string, PaidElsewhere[]>();
  const own = runs.some(({ options }) => options.rebuilt === true);
  for await (const page of account.spendLog.paidElsewhere(clock.now() - elsewhereMs, own))
    for (const entry of page) {
      const planned = keys.find(entry.itemKey);
      if (planned !== undefined) byKey.set(planned.key, [...(byKey.get(planned.key) ?? []), entry]);
    }
  /** A copy that became independent knows the requests of before. */
  const unknown = async (entries: readonly PaidElsewhere[]) => {
    for (const entry of entries.toReversed())
      if ((await store?.attemptOfEntry(entry.entry)) == null) return entry;
    return undefined;
  };
  return {
    has({ key }) {
      const entries = byKey.get(key);
      return entries && unknown(entries);
    },
    finding(tally: KnownItems<PaidElsewhere>, { job, items: all }) {
      const items = tally.found.length;
      const newest = newestOf(tally);
      const isInDoubt = tally.found.some(({ by }) => by.isInDoubt);
      const [were, are] = items === 1 ? ["was", "is"] : ["were", "are"];
      const paid = `${isInDoubt ? "may have been" : were} paid for`;
      const [gone, way] = wayTo(newest, workspace.root);
      const found = `${items} of ${count(all.length, "item")} ${paid} in the workspace ${newest.root} (the newest on ${dateOf(newest.sentAt)})${gone}`;
      const what = `${found} and ${agreed ? are : "would be"} paid again here, for ${inCredits(tally.credits)}`;
      if (agreed)
        return { refused: false, finding: { kind: "partly_made_before", message: `${what}; ${way}.` } };
      const message = `${what}: ${way}, --job ${shellWord(job)} pays for them again.`;
      return {
        refused: true,
        finding: { kind: "made_before", message, choice: { found, continues: null, again: job } },
      };
    },
  };
}

/** What has become of a workspace, and how to continue there. */
function wayTo(newest: PaidElsewhere, here: string): [gone: string, way: string] {
  const moved = "if you have moved it, --workspace FOLDER continues there";
  if (newest.root === here) return [", whose history is not here any more,", moved];
  if (!isThere(newest)) return [", which is not there any more,", moved];
  return ["", `--workspace ${shellWord(newest.root)} continues there`];
}

/** Whether the workspace is still in its folder. */
function isThere({ root, workspace }: Pick<PaidElsewhere, "root" | "workspace">): boolean {
  const markerFolder = join(root, markerName);
  // Before it was named by its id it had the name of its state file.
  if (isAbsolute(workspace)) return existsSync(markerFolder);
  return hasId(markerFolder, workspace) || workspace.startsWith("postgres:");
}

function newestOf<By extends { sentAt: number }>({ found }: KnownItems<By>): By {
  const [first, ...others] = found.map(({ by }) => by);
  if (first === undefined) throw new Error("a finding about no items");
  return others.reduce((newest, each) => (each.sentAt > newest.sentAt ? each : newest), first);
}

function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/**
 * Items of a run that another workspace, or another job under another catalogue, has paid for, or may have, since the run
 * began. Null if there are none.
 */
export async function paidMeanwhile(
  account: Pick<OpenAccount, "spendLog" | "accounts" | "accountId">,
  store: Pick<Store, "items" | "priceGroups" | "has" | "attemptOfEntry">,
  run: Run,
): Promise<{ items: Item[]; root: string } | null> {
  const made = await madeParams(account, store, run);
  const isElsewhere = await isAny(account.spendLog.paidElsewhere(run.startedAt));
  if (!isElsewhere && !mayHaveOtherKeys(made, run.options.leftOut)) return null;
  const left = await restKeys(store, run, made);
  const found = new Map<string, { item: Item; root: string }>();
  const others = account.spendLog.paidElsewhere(run.startedAt);
  for await (const page of others)
    for (const { itemKey, entry, root } of page) {
      const item = left.get(itemKey);
      // A copy that became independent knows the requests of before.
      if (item !== undefined && (await store.attemptOfEntry(entry)) === null)
        found.set(item.key, { item, root });
    }
  // Another job's items under the same keys are known to the history.
  if ([...left].some(([key, item]) => key !== item.key))
    for await (const page of account.spendLog.paidElsewhere(run.startedAt, true))
      for (const { itemKey, entry, root } of page) {
        const item = left.get(itemKey);
        if (item === undefined || itemKey === item.key || (await store.has(run.jobId, itemKey))) continue;
        if ((await store.attemptOfEntry(entry)) !== null) found.set(item.key, { item, root });
      }
  const all = [...found.values()].toSorted((a, b) => a.item.position - b.item.position);
  const [first] = all;
  return first === undefined ? null : { items: all.map(({ item }) => item), root: first.root };
}

async function isAny(pages: AsyncIterable<readonly unknown[]>): Promise<boolean> {
  for await (const page of pages) if (page.length > 0) return true;
  return false;
}

/** What the items of `paidMeanwhile` cost. */
export function priceOf(items: readonly Item[]) {
  return sumOf(items.map(({ price }) => price));
}
