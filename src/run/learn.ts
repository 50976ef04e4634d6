import type { TaskOutcome } from "../client/answer.js";
import { priceGroup } from "../core/identity.js";
import type { Credits } from "../core/money.js";
import type { RunGroup } from "../core/next/next.js";
import type { DurationEstimates } from "../core/pace/pace.js";
import { durationOf } from "../core/pace/pace.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Item } from "../core/ports/store.js";
import type { Prices } from "./gate/prices.js";
import type { RunPorts, Session } from "./ports.js";
import type { Turns } from "./turns.js";

/**
 * Loads what earlier runs learned about this run's models and their prices, and the tasks that were found unfinished.
 */
export async function recall(
  { ports, settings, gate: { prices } }: Session,
  paces: DurationEstimates,
  turns: Turns,
): Promise<void> {
  const groups = await ports.store.groups(settings.run.id);
  const charges = await chargesOf(ports, groups);
  for (const { group, price, model, category } of groups) {
    paces.register(group, model, category);
    prices.recall({ group, price }, charges.get(group));
  }
  const models = [...new Set(groups.map(({ model }) => model))];
  for (const { model, group, ms } of await ports.accounts.durations(ports.accountId, models)) {
    paces.register(group, model, "");
    paces.finished(group, 0, ms);
  }
  const { tasks } = await ports.store.due(settings.run.id, 0, { models: [], prices: [] }, []);
  for (const { id, group, since, seenAt, kind } of tasks) {
    if (kind !== "expired" && seenAt !== null && !turns.has(group))
      paces.unfinished(group, id, seenAt - since);
  }
}

/**
 * The highest known charges. A process may have ended after it recorded a charge here and before it stored it for the
 * account. One that is no more than was planned may be from before a price rose.
 */
async function chargesOf(
  { accounts, accountId }: Pick<RunPorts, "accounts" | "accountId">,
  groups: readonly RunGroup[],
): Promise<Map<string, Credits>> {
  const charges = new Map(await accounts.highestCharges(accountId));
  for (const { group, price, charged } of groups) {
    if (charged === null || charged <= (charges.get(group) ?? price)) continue;
    charges.set(group, charged);
    await accounts.charged(accountId, group, charged);
  }
  return charges;
}

/** A task is done: learns how long it took, however late the poll was. */
export async function learn(
  { accounts, accountId, clock }: Pick<RunPorts, "accounts" | "accountId" | "clock">,
  paces: DurationEstimates,
  item: Item,
  attempt: Attempt,
  outcome: Extract<TaskOutcome, { kind: "completed" }>,
): Promise<void> {
  const group = priceGroup(item);
  const { startedAt } = outcome;
  const ms = durationOf(
    { ...outcome, createdAt: startedAt ?? outcome.createdAt },
    {
      sentAt: attempt.intendedAt,
      // It may have been found waiting, long before it began.
      unfinishedAt: startedAt === undefined ? item.seenAt : null,
      seenAt: clock.now(),
    },
  );
  if (ms === null) return paces.forget(group, item.id);
  paces.finished(group, item.id, ms);
  await accounts.lasted(accountId, { model: item.model, group }, ms);
}

/**
 * A task is done: learns its charge if the poll states it, because the answer to the paid request may have lacked it or
 * been lost.
 */
export async function learnCharge(
  { accounts, accountId }: Pick<RunPorts, "accounts" | "accountId">,
  prices: Prices,
  item: Item,
  charged: Credits | null,
): Promise<void> {
  const isNews = prices.seen(item, charged);
  if (isNews && charged !== null) await accounts.charged(accountId, priceGroup(item), charged);
}
