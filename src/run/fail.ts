import { rowOf } from "../api/errors.js";
import { backoffMs } from "../core/again.js";
import { type FailureKind, rejectionKind } from "../core/failure.js";
import { wantedItems } from "../core/item.js";
import type { Credits } from "../core/money.js";
import type { Item } from "../core/ports/store.js";
import { count } from "../text/amounts.js";
import type { Session } from "./ports.js";

/**
 * A task failed. Nothing was charged for it, so a failure at the provider is retried automatically, unless the manifest no
 * longer asks for the item.
 */
export async function taskFailed(
  session: Session,
  item: Item,
  failure: { kind: FailureKind; message: string; charged: Credits; completedAt: string | null },
): Promise<void> {
  const { store, clock } = session.ports;
  const again =
    failure.kind === "provider" &&
    failure.charged === 0 &&
    !item.vanished &&
    item.failures < session.settings.run.options.retries;
  await store.apply(item.id, "task_failed", {
    note: failure.message,
    failureKind: failure.kind,
    charged: failure.charged,
    completedAt: failure.completedAt,
    ...(again ? { retryAt: clock.now() + backoffMs(item.failures + 1) } : {}),
  });
  session.gate.breaker.failed(item.model, failure.kind, failure.message);
  if (!again) await countFailures(session);
}

/** A request that the service rejected as wrong: the item has failed, and its model may be to blame. */
export async function requestRejected(
  session: Session,
  item: Pick<Item, "model">,
  rejection: { code: string | null; message: string | null },
): Promise<void> {
  const detail = rejection.message ?? rejection.code ?? "no reason was given";
  if (rowOf(rejection.code)?.ofModel) {
    session.gate.breaker.park(item.model, `the service does not offer it any more (${detail})`);
  }
  session.gate.breaker.rejected(item.model, rejectionKind(rejection.code, rejection.message), detail);
  await countFailures(session);
}

async function countFailures(session: Session): Promise<void> {
  const { run } = session.settings;
  const { maxFailures } = run.options;
  if (maxFailures === null) return;
  const counts = await session.ports.store.counts(run.id);
  const all = wantedItems(counts);
  const most =
    "count" in maxFailures ? maxFailures.count : Math.max(1, Math.ceil((all * maxFailures.percent) / 100));
  if (counts.failed < most) return;
  session.gate.stop(
    "failures",
    `${counts.failed} of ${count(all, "item")} ${counts.failed === 1 ? "has" : "have"} failed, which is as many as --max-failures allows`,
  );
}
