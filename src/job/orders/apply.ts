import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { offeredPrice } from "../../core/identity.js";
import { uncollectedStates } from "../../core/item.js";
import { type Credits, inCredits, showCredits, sumOf } from "../../core/money.js";
import type { ItemOrder, OrderOutcome, RunOrder } from "../../core/ports/orders.js";
import type { Item, NewItem, Run } from "../../core/ports/store.js";
import type { RecordedDecision } from "../../run/receipts/receipt-lines.js";
import type { SpendLog } from "../../store/accounts/spend-log.js";
import type { Changes, Store, TransactionPart } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { someOf } from "../../text/reasons.js";
import { terminalText } from "../../text/terminal.js";
import { resumeCommand } from "../../workspace/find-run.js";
import { mayBeDecided } from "./decide.js";
import type { Facts } from "./facts.js";
import { madeOfRejectedText, otherTakesOf, otherTakesText } from "./other-takes.js";
import { addVariants, checkChange, todaysPrices, variantsOf, withChange } from "./redo.js";
import type { Offered } from "./request.js";
import { accept, adopt, mustBeHeld, mustHaveOutputs, mustHaveTask, refetch } from "./resolve.js";

/** Marks the run as interrupted, because it has something to do again. */
export function* leaveOpen(
  changes: Changes,
  now: number,
  { id, state, endedAt }: Run,
): TransactionPart<void> {
  if (state === "cancelled") return;
  yield* changes.setRun(id, { state: "interrupted", exit: null, endedAt: endedAt ?? now });
}

/** An order is applied by the process that has the workspace's lock. */
export interface RunOrderContext {
  clock: Clock;
  /** The items with a request in flight; null if no process executes the order's run. */
  atWork: ReadonlySet<number> | null;
}

/** Changes the run as ordered and returns the outcome. A refused order changes nothing. */
export function* applyRunOrder(
  changes: Changes,
  how: RunOrderContext,
  run: Run,
  order: RunOrder,
): TransactionPart<OrderOutcome> {
  const over = run.state === "finished" || (run.state === "cancelled" && !run.owes);
  if (over)
    return { kind: "refused", message: `run ${run.id} is ${run.state}; nothing is left to ${order.do}` };
  const message = yield* order.do === "pause" ? pause(changes, how, run) : cancel(changes, how, run);
  return { kind: "done", message };
}

function* pause(changes: Changes, { clock, atWork }: RunOrderContext, run: Run): TransactionPart<string> {
  if (run.state !== "cancelled") yield* changes.setRun(run.id, { state: "paused" });
  const goOn = `continue with \`${resumeCommand(run, false)}\``;
  if (atWork)
    return `run ${run.id} is paused: it finishes requests in flight and starts nothing new; ${goOn}`;
  yield* closed(changes, clock, run);
  return `run ${run.id} is paused (it was not in progress); ${goOn}`;
}

function* cancel(changes: Changes, { clock, atWork }: RunOrderContext, run: Run): TransactionPart<string> {
  const dropped = yield* changes.cancelRun(run.id, atWork ?? new Set());
  const counts = yield* changes.counts(run.id);
  const owed = uncollectedStates.reduce((sum, state) => sum + counts[state], 0);
  const nothing = dropped === 0 ? "no item was left to submit" : `${count(dropped, "item")} not submitted`;
  const said = `run ${run.id} is cancelled: ${nothing}`;
  if (!atWork) yield* closed(changes, clock, run);
  if (owed === 0) return said;
  return atWork
    ? `${said}; the ${count(owed, "item")} at the service ${owed === 1 ? "is" : "are"} still collected by the running process`
    : `${said}; \`${resumeCommand(run, false)}\` collects the ${count(owed, "item")} at the service, which ${owed === 1 ? "is" : "are"} or may be paid for`;
}

/** An interrupted process leaves its run without a recorded end. */
function* closed(changes: Changes, clock: Clock, { id, endedAt }: Run): TransactionPart<void> {
  if (endedAt === null) yield* changes.setRun(id, { endedAt: clock.now() });
}

export interface ItemWork {
  store: Store;
  /** Null without an account: only skipping, approving and rejecting items need none. */
  spendLog: SpendLog | null;
  facts: Facts;
  /** The highest charges seen, by price group. */
  charges: ReadonlyMap<string, Credits>;
}

/** Items at today's prices. Throws EarlyExit. */
export function pricesNow<Priced extends Offered>(
  items: readonly Priced[],
  { models }: Facts,
  charges: ReadonlyMap<string, Credits>,
): Priced[] {
  if (models) return todaysPrices(items, models, charges);
  return items.map((item) => ({ ...item, price: offeredPrice(item, item.price, charges) }));
}

/** What an order about items has changed, in a few words. */
export interface AppliedOrder {
  done: string;
  /** The runs that still have to continue with the items: theirs, or the one started for them. */
  runs: readonly Run[];
  /** What a person has decided about items by it, for the receipts. */
  decisions?: readonly RecordedDecision[];
}

/**
 * Checks an order about items and returns a function that applies it. Throws EarlyExit, and changes nothing, if the items
 * have changed since the person saw them.
 */
export async function checkedOrder(
  work: ItemWork,
  run: Run,
  order: ItemOrder,
): Promise<(changes: Changes) => TransactionPart<AppliedOrder>> {
  const items = await Promise.all(order.items.map((id) => work.store.item(id)));
  if (order.do === "redo") return redo(work, run, items, order);
  if (order.do === "approve" || order.do === "reject") return decide(work, items, order.do);
  const apply =
    order.do === "retry" ? retry(work, run, items, order.agreed) : await resolve(work, items, order);
  return function* (changes) {
    const done = yield* apply(changes);
    const changed = "agreed" in order ? yield* reopened(changes, run, order.items) : run;
    return { done, runs: order.do === "skip" ? [] : [changed] };
  };
}

async function decide(
  { store }: ItemWork,
  items: readonly Item[],
  what: "approve" | "reject",
): Promise<(changes: Changes) => TransactionPart<AppliedOrder>> {
  for (const item of items) mayBeDecided(item, what);
  const approval = what === "approve" ? "approved" : "rejected";
  const [first] = items;
  const named = items.length === 1 ? `${terminalText(first?.rowId ?? "")} is` : `${items.length} items are`;
  const runs = await store.runs();
  const flags = runs.at(-1)?.options.sandbox ? " --sandbox" : "";
  const chosen =
    what === "approve" ? otherTakesText(await otherTakesOf(store, items, "approved"), flags) : null;
  const rejected =
    what === "reject" && first
      ? await store.madeOf(
          first.jobId,
          items.map(({ key }) => key),
        )
      : [];
  const made = rejected.length > 0 ? madeOfRejectedText(rejected) : chosen;
  return function* (changes) {
    const released = yield* changes.approve(
      items.map(({ id }) => id),
      approval,
    );
    const next =
      released.length === 0
        ? ""
        : `${count(released.length, "item that waited", "items that waited")} can be made`;
    const more = made === null ? "" : `. ${made}`;
    return {
      // The command that makes what waited follows.
      done: `${named} ${approval}${more}${next === "" ? "" : `${made === null ? ", and" : "."} ${next}`}`,
      runs: runs.filter(({ id }) => released.includes(id)),
      decisions: items.map((item) => decisionOn(item, runs, approval)),
    };
  };
}

function decisionOn(
  { jobId, key }: Item,
  runs: readonly Run[],
  decision: RecordedDecision["decision"],
): RecordedDecision {
  const job = runs.find((run) => run.jobId === jobId)?.jobName ?? "";
  return { job, key, decision };
}

/** Reopens a cancelled run for these items; its other items are still not submitted. */
function* reopened(changes: Changes, run: Run, items: readonly number[]): TransactionPart<Run> {
  if (run.state !== "cancelled") return run;
  yield* changes.cancelRun(run.id, new Set(items));
  yield* changes.setRun(run.id, { state: "interrupted" });
  return { ...run, state: "interrupted" };
}

/** Throws EarlyExit if a model does not take what retakes change. */
export async function checkRedo(
  store: Pick<Store, "item">,
  { items, change }: Extract<ItemOrder, { do: "redo" }>,
  { models }: Facts,
): Promise<void> {
  if (!change || !models) return;
  const wanted = await Promise.all(items.map(async (id) => withChange(await store.item(id), change)));
  checkChange(wanted, change, models);
}

async function redo(
  { store, facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  { agreed, rejects, change }: Extract<ItemOrder, { do: "redo" }>,
): Promise<(changes: Changes) => TransactionPart<AppliedOrder>> {
  if (!facts.models) throw new Error("a redo without today's prices");
  const wanted = items.map((item) => withChange(item, change ?? null));
  if (change) checkChange(wanted, change, facts.models);
  const made = await variantsOf(store, run, pricesNow(wanted, facts, charges));
  // A person who rejects a take decides about the next one.
  const variants = rejects ? made.map((variant) => ({ ...variant, approve: true as const })) : made;
  withinPrice(variants, agreed, (price) =>
    change?.params ? ` With --max-price ${showCredits(price)} you agree to it.` : "",
  );
  return function* (changes) {
    if (rejects)
      yield* changes.approve(
        items.map(({ id }) => id),
        "rejected",
      );
    return {
      decisions: rejects ? items.map((item) => decisionOn(item, [run], "rejected")) : [],
      runs: [yield* addVariants(changes, run, variants)],
      done: `${someOf(variants.map(({ rowId }) => rowId))} ${variants.length === 1 ? "is" : "are"} planned`,
    };
  };
}

function retry(
  { facts, charges }: ItemWork,
  run: Run,
  items: readonly Item[],
  agreed: Credits,
): (changes: Changes) => TransactionPart<string> {
  const failed = pricesNow(
    items.filter(({ state }) => state === "failed"),
    facts,
    charges,
  );
  if (failed.length === 0)
    throw new EarlyExit("usage", `nothing to retry in run ${run.id}: these items are not failed any more`);
  withinPrice(failed, agreed);
  return function* (changes) {
    for (const item of failed) yield* submitAgain(changes, item, item.price);
    return `${count(failed.length, "failed item")} ${failed.length === 1 ? "is" : "are"} planned again`;
  };
}

/** Plans a failed item again. Its local files are published again if the service could not read them. */
export function* submitAgain(
  changes: Changes,
  { id, failureKind, files = {} }: Pick<Item, "id" | "failureKind" | "files">,
  price: Credits,
): TransactionPart<void> {
  const hashes = failureKind === "input" ? Object.values(files) : [];
  const publishAgain = hashes.map((hash) => hash.replace("sha256:", ""));
  yield* changes.apply(id, "retry", { nextAt: 0, price, publishAgain });
}

async function resolve(
  { store, spendLog, facts, charges }: ItemWork,
  items: readonly Item[],
  order: Exclude<ItemOrder, { do: "redo" | "approve" | "reject" }>,
): Promise<(changes: Changes) => TransactionPart<string>> {
  const [item] = items;
  if (!item) throw new Error(`an order to ${order.do} nothing`);
  for (const each of items) mustBeHeld(each);
  const isOne = items.length === 1;
  const what = isOne ? terminalText(item.rowId) : count(items.length, "item");
  switch (order.do) {
    case "skip":
      return function* (changes) {
        for (const { id } of items) yield* changes.apply(id, "skipped", { note: "skipped by a person" });
        return `${what} ${isOne ? "is" : "are"} skipped; ${isOne ? "its" : "their"} possible cost stays counted`;
      };
    case "refetch":
      for (const each of items) await mustHaveTask(store, each);
      return function* (changes) {
        for (const { id } of items) yield* refetch(changes, id);
        return `the outputs of ${what} will be downloaded again`;
      };
    case "accept":
      for (const each of items) await mustHaveOutputs(store, each);
      return function* (changes) {
        for (const { id } of items) yield* accept(changes, id);
        return `the outputs of ${what} will be kept as they are, marked as not proven`;
      };
    case "adopt": {
      if (!spendLog || !facts.task) throw new Error("a task is adopted without its record");
      const found = await adopt(store, spendLog, item, facts.task);
      return function* (changes) {
        yield* changes.adopt(item.id, found);
        return `task ${order.task} is now the task of ${terminalText(item.rowId)}`;
      };
    }
    default: {
      const priced = pricesNow(items, facts, charges);
      withinPrice(priced, order.agreed);
      return function* (changes) {
        for (const { id, price } of priced) yield* changes.apply(id, "resubmit", { nextAt: 0, price });
        return `${what} will be submitted again`;
      };
    }
  }
}

/** Refuses a higher price than the person agreed to: prices may have changed since. */
function withinPrice(
  items: readonly Pick<NewItem, "price">[],
  agreed: Credits,
  hint: (price: Credits) => string = () => "",
): void {
  const price = sumOf(items.map((item) => item.price));
  if (price <= agreed) return;
  throw new EarlyExit(
    "usage",
    `the price has changed: expected at most ${showCredits(agreed)} as agreed to, got ${inCredits(price)}. Nothing was changed.${hint(price)}`,
  );
}
