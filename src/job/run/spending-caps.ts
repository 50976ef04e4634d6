import type { Model } from "../../api/records.js";
import { EarlyExit } from "../../core/exit.js";
import { type Credits, noCredits, plus } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { BalanceMark } from "../../core/ports/spend-log.js";
import { dayOf } from "../../core/quota/quota.js";
import type { SpendingCaps } from "../../plan/plan.js";
import type { Store } from "../../store/workspace/workspace.js";
import { nearest } from "../../text/nearest.js";
import type { OpenAccount } from "../../workspace/account.js";

/** What a run may spend, as its flags say. */
export type SpendingOptions = Pick<RunOptions, "maxCredits" | "modelCaps" | "keepCredits" | "dailyCredits">;

interface Where {
  run: SpendingOptions;
  account: OpenAccount;
  store: Store | null;
  /** Part of the balance that the plan calculates with. */
  mark: BalanceMark;
}

/**
 * What a run may spend, with what already counts against it: spending of the run to be continued, of the day, and of the
 * balance.
 */
export async function spendingCaps(
  { run, account, store, mark }: Where,
  runId: number | null,
): Promise<SpendingCaps> {
  const { maxCredits, modelCaps = {}, keepCredits = null, dailyCredits } = run;
  const spent = async (of?: { model: string }): Promise<Credits> => {
    if (store === null || runId === null) return noCredits;
    const { charged, pending } = await store.spending(runId, of);
    return plus(charged, pending);
  };
  const models = Object.entries(modelCaps).map(
    async ([model, most]) => [model, { most, spent: await spent({ model }) }] as const,
  );
  const taken = async () => {
    const { since, before } = await account.accounts.takenFrom(account.accountId(), mark);
    return plus(since, before);
  };
  const today = () => account.accounts.spentOn(account.accountId(), dayOf(account.service.time.now));
  return {
    total: maxCredits === null ? null : { most: maxCredits, spent: await spent() },
    models: new Map(await Promise.all(models)),
    keep: keepCredits === null ? null : plus(keepCredits, await taken()),
    daily: dailyCredits === undefined ? null : { most: dailyCredits, spent: await today() },
  };
}

/** A cap for a model that does not exist would have no effect. Throws EarlyExit. */
export function checkModels(capped: readonly string[], models: readonly Model[]): void {
  const names = models.map(({ model_key: name }) => name);
  const unknown = capped.find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const near = nearest(unknown, names);
  const hint = near === undefined ? "." : `; did you mean ${near}?`;
  throw new EarlyExit(
    "usage",
    `--max-credits-per-model: expected a model of the service, got ${JSON.stringify(unknown)}${hint} Nothing was submitted.`,
  );
}
