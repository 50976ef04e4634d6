import { ServiceError } from "../client/service.js";
import { mismatches } from "../core/adopt.js";
import { EarlyExit } from "../core/exit.js";
import { credits } from "../core/money.js";
import type { Item, Store } from "../core/store.js";
import { openWorkspace } from "../store/workspace.js";
import type { OpenAccount } from "./account.js";
import type { Continuation } from "./continue-job.js";
import { itemNamed } from "./item-named.js";
import { type HoldOptions, lockWorkspace } from "./open.js";
import { agreed, type PriceConsent } from "./retry.js";

/** The ways out of `held`, which only a person may take. */
export type Resolution = { adopt: string } | "resubmit" | "refetch";

/** Decides on a held item, and lets its run go on with it. */
export function resolveHeld(name: string, resolution: Resolution, consent: PriceConsent): Continuation {
  let item: Item | null = null;
  return {
    async choose(store) {
      item = await heldItem(store, name);
      const run = item.runId === null ? null : await store.run(item.runId);
      if (!run)
        throw new EarlyExit(
          "usage",
          `${item.rowId} belongs to no run any more; run its manifest again first`,
        );
      return run;
    },
    async change({ store, account }, run) {
      const held = item ? await store.item(item.id) : null;
      if (!held) throw new Error("a resolution without its item");
      if (resolution === "resubmit") await resubmit(store, held, consent);
      else if (resolution === "refetch") await refetch(store, held);
      else await adopt(store, account, held, resolution.adopt);
      return run;
    },
  };
}

/** Gives a held item up: it is dropped, and what it may have cost stays counted. Asks nobody. */
export async function skipHeld(
  options: Pick<HoldOptions, "workspace" | "ifLocked" | "clock" | "signal" | "onLocked">,
  name: string,
): Promise<Item> {
  const lock = await lockWorkspace(options);
  const store = openWorkspace(options.workspace.stateFile, options.clock);
  try {
    const item = await heldItem(store, name);
    await store.apply(item.id, "skipped", { note: "skipped by a person" });
    return item;
  } finally {
    store.close();
    lock.release();
  }
}

async function heldItem(store: Store, name: string): Promise<Item> {
  const item = await itemNamed(store, name);
  if (item.state === "held") return item;
  throw new EarlyExit(
    "usage",
    `only held items can be resolved: expected held, got ${item.state} for ${item.rowId}`,
  );
}

async function resubmit(store: Store, item: Item, consent: PriceConsent): Promise<void> {
  await agreed(consent, [item]);
  await store.apply(item.id, "resubmit", { nextAt: 0 });
}

async function refetch(store: Store, item: Item): Promise<void> {
  const attempt = await store.attempt(item.id);
  if (!attempt?.taskId) {
    throw new EarlyExit(
      "usage",
      `${item.rowId} has no task id to fetch again; find its task, then --adopt it`,
    );
  }
  await store.apply(item.id, "refetch", { nextAt: 0 });
  await store.expire(item.id, "fetched again by a person");
}

async function adopt(store: Store, account: OpenAccount, item: Item, taskId: string): Promise<void> {
  const attempt = await store.attempt(item.id);
  if (!attempt) throw new Error(`${item.rowId} is held without an attempt`);
  const [owner] = await store.find(taskId);
  if (owner && owner.id !== item.id) {
    throw new EarlyExit("usage", `task ${taskId} belongs to ${owner.rowId} already; nothing was changed`);
  }
  const task = await account.service.taskRecord(taskId).catch((error: unknown) => {
    if (!(error instanceof ServiceError)) throw error;
    throw new EarlyExit("usage", `task ${taskId} cannot be adopted: ${error.message}. Nothing was changed.`);
  });
  const against = mismatches(item, attempt, task);
  if (against.length > 0) {
    throw new EarlyExit(
      "usage",
      `task ${taskId} is not the one of ${item.rowId}:\n  ${against.join("\n  ")}\nNothing was changed.`,
    );
  }
  const charged = credits(task.credits_consumed);
  await store.adopt(item.id, { taskId, charged });
  // From now on the charge is explained, and a refund is expected if the task fails.
  if (attempt.bookEntry !== null)
    await account.books.answered(attempt.bookEntry, { outcome: "accepted", charged });
}
