import type { MediaField } from "../../api/inputs.js";
import type { Task } from "../../api/records.js";
import { serviceTime } from "../../api/times.js";
import { EarlyExit } from "../../core/exit.js";
import { normalText, shortId } from "../../core/identity.js";
import { asCharge, inCredits, sumOf } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { ItemOrder } from "../../core/ports/orders.js";
import type { Item, Run } from "../../core/ports/store.js";
import { isReference } from "../../core/reference.js";
import { isLocalPath } from "../../manifest/local-inputs.js";
import type { Selection } from "../../plan/plan.js";
import { isEverything } from "../../plan/select.js";
import { bodyHash, requestBody } from "../../run/submit.js";
import type { SpendLog } from "../../store/accounts/spend-log.js";
import type { Changes, Store, TransactionPart } from "../../store/workspace/workspace.js";
import { count } from "../../text/amounts.js";
import { terminalText } from "../../text/terminal.js";
import { itemNamed, itemsNamed } from "./item-named.js";
import { eachOnce, type FindItems, selectItems } from "./request.js";

/** The ways out of `held`, which only a person may take. */
export type Resolution = { adopt: string } | "resubmit" | "refetch" | "accept" | "skip";

/** Which held items: by name, or all of the newest run that has any; a selection may narrow these down. */
export interface HeldItems {
  names: readonly string[];
  all: boolean;
  selection: Selection;
  /** Paths of files start from here. */
  cwd: string;
}

/** Decides on held items. */
export function resolveHeld(which: HeldItems, resolution: Resolution): FindItems {
  return async (store) => {
    const { run, items } = await heldItems(store, which);
    const [first] = items;
    if (typeof resolution === "object") {
      if (!first || items.length > 1)
        throw new EarlyExit("usage", `--adopt gives a task to one item, got ${items.length} items`);
      await mustBeFree(store, first, resolution.adopt);
    }
    const note = resolution === "resubmit" ? await doubtText(store, items) : null;
    return { run, offered: items, order: orderOf(items, resolution), note };
  };
}

function orderOf(held: readonly Item[], resolution: Resolution): ItemOrder {
  const items = held.map(({ id }) => id);
  if (typeof resolution === "object") return { do: "adopt", items, task: resolution.adopt };
  const agreed = sumOf(held.map(({ price }) => price));
  return resolution === "resubmit" ? { do: "resubmit", items, agreed } : { do: resolution, items };
}

/** Throws EarlyExit. */
async function heldItems(
  store: Store,
  { names, all, selection, cwd }: HeldItems,
): Promise<{ run: Run; items: Item[] }> {
  if (names.length > 0) {
    const items: Item[] = [];
    for (const name of names) items.push(await heldNamed(store, name, cwd));
    return { run: await runOf(store, items), items: eachOnce(items) };
  }
  if (!all && isEverything(selection))
    throw new EarlyExit(
      "usage",
      "name the held items, add --all, or select some, such as with --filter id=cup*",
    );
  for (const run of (await store.runs()).toReversed()) {
    const held = await store.items(run.id, ["held"]);
    if (held.length > 0) return { run, items: await selectItems(store, run, held, selection, "held item") };
  }
  throw new EarlyExit("done", "nothing to resolve: no item is held");
}

/** Throws EarlyExit for items without a run, or of several runs: an order is about one run. */
async function runOf(store: Store, items: readonly Item[]): Promise<Run> {
  const [first] = items as [Item];
  const other = items.find(({ runId }) => runId !== first.runId);
  if (other) {
    throw new EarlyExit(
      "usage",
      `${terminalText(first.rowId)} is held in run ${first.runId} and ${terminalText(other.rowId)} in run ${other.runId}; resolve them one run after the other`,
    );
  }
  const run = first.runId === null ? null : await store.run(first.runId);
  if (run) return run;
  throw new EarlyExit(
    "usage",
    `${terminalText(first.rowId)} no longer belongs to a run; run its manifest again first`,
  );
}

/**
 * How many of the items were charged already, so that the person decides about paying again; null if none may have been
 * charged.
 */
async function doubtText(store: Store, items: readonly Item[]): Promise<string | null> {
  const charged: Item[] = [];
  const unclear: Item[] = [];
  for (const item of items) {
    const attempt = await store.attempt(item.id);
    // The task of an accepted request has completed, and its outputs cannot be had.
    const isMade = attempt?.outcome === "accepted" && attempt.charged !== 0;
    if (attempt?.verdict === "charged" || isMade) charged.push(item);
    else if (attempt?.verdict === "undecided") unclear.push(item);
  }
  const credits = (some: readonly Item[]) => inCredits(sumOf(some.map(({ price }) => price)));
  const known = `${charged.length} of ${count(items.length, "item")} ${charged.length === 1 ? "was" : "were"} charged before (${credits(charged)})`;
  const perhaps = `${unclear.length} may have been (up to ${credits(unclear)})`;
  if (charged.length + unclear.length === 0) return null;
  return `${known}${unclear.length === 0 ? "" : `, ${perhaps}`}; what is submitted again is paid for a second time.`;
}

/** The held item with that name. Throws EarlyExit if no item with that name is held, or several are. */
async function heldNamed(store: Store, name: string, cwd: string): Promise<Item> {
  const held = (await itemsNamed(store, name, cwd)).filter(({ state }) => state === "held");
  if (held.length > 1) throw severalHeld(name, held, await store.runs());
  const item = held[0] ?? (await itemNamed(store, name, cwd));
  mustBeHeld(item);
  return item;
}

function severalHeld(name: string, held: readonly Item[], runs: readonly Run[]): EarlyExit {
  const lines = held.map((item) => {
    const { rowId, rowNumber, runId, edition, key } = item;
    // A changed row has its old and its new item in the same run.
    const isAlone = !held.some((other) => other !== item && other.runId === runId && other.rowId === rowId);
    const job = runs.find(({ id }) => id === runId)?.jobName;
    return [
      `  ${runId}:${isAlone ? rowId : shortId(key)}  job ${job}, run ${runId}`,
      edition === "" ? "first edition" : `edition ${edition}`,
      `row ${rowNumber}`,
    ].join(", ");
  });
  return new EarlyExit(
    "usage",
    [`${held.length} held items are called ${JSON.stringify(name)}; name one of them:`, ...lines].join("\n"),
  );
}

/** Throws EarlyExit for an item that is not held. */
export function mustBeHeld({ state, rowId }: Item): void {
  if (state === "held") return;
  throw new EarlyExit(
    "usage",
    [
      `only held items can be resolved: expected held, got ${state} for ${terminalText(rowId)}`,
      ...(state === "failed" ? ["Failed items can be submitted again: `bulkgen help retry`"] : []),
    ].join(". "),
  );
}

/** Throws EarlyExit if the task belongs to another item, or to an earlier request of this item. */
async function mustBeFree(store: Store, item: Item, taskId: string): Promise<void> {
  const [owner] = await store.find(taskId);
  if (!owner) return;
  const isOwn = owner.id === item.id;
  if (isOwn && (await store.attempt(item.id))?.taskId === taskId) return;
  const whose = isOwn ? `an earlier request of ${owner.rowId}` : owner.rowId;
  throw new EarlyExit("usage", `task ${taskId} already belongs to ${whose}; nothing was changed`);
}

/** Throws EarlyExit if the task belongs to a request of another workspace. */
async function mustBeOurs(spendLog: SpendLog, taskId: string): Promise<void> {
  const owner = await spendLog.otherOwner(taskId);
  if (owner === null) return;
  throw new EarlyExit(
    "usage",
    `task ${taskId} already belongs to another workspace (${owner}); nothing was changed`,
  );
}

/** Throws EarlyExit if there is nothing that an item's outputs can be downloaded from. */
export async function mustHaveTask(store: Store, item: Item): Promise<void> {
  if ((await store.attempt(item.id))?.taskId) return;
  throw new EarlyExit(
    "usage",
    `${item.rowId} has no task id to download from; find its task, then use --adopt`,
  );
}

/** Makes an item download its outputs again. */
export function* refetch(changes: Changes, itemId: number): TransactionPart<void> {
  yield* changes.apply(itemId, "refetch", { nextAt: 0 });
  yield* changes.expire(itemId, "fetched again by a person");
}

/** Throws EarlyExit if nothing has come that a person could accept. */
export async function mustHaveOutputs(store: Store, item: Item): Promise<void> {
  await mustHaveTask(store, item);
  if ((await store.outputs(item.id)).length > 0) return;
  throw new EarlyExit(
    "usage",
    `${terminalText(item.rowId)} has no output to accept: its task has no usable address. \`bulkgen resolve ${terminalText(item.rowId)} --refetch\` asks for one again`,
  );
}

/** Keeps an item's outputs as they are: as they lie in the quarantine, or as they are downloaded now. */
export function* accept(changes: Changes, itemId: number): TransactionPart<void> {
  yield* changes.apply(itemId, "refetch", { nextAt: 0, accepts: true });
}

/**
 * Checks a task that a person found for an item, and returns what the item takes from it. After this the spend log
 * knows the task. That is right even if the item does not take it, and would be missing if the process ended after the
 * item took it. Throws EarlyExit if the task belongs to another item or its record differs.
 */
export async function adopt(
  store: Store,
  spendLog: SpendLog,
  item: Item,
  task: Task,
): Promise<Parameters<Store["adopt"]>[1]> {
  const newest = await store.attempt(item.id);
  if (!newest) throw new Error(`${item.rowId} is held without an attempt`);
  const { task_id: taskId } = task;
  const attempt = attemptOf(task, newest, await store.orphans({ item: item.id }));
  await mustBeFree(store, item, taskId);
  // If the workspace was moved, its own request is on record under the old path.
  if (attempt.taskId !== taskId) await mustBeOurs(spendLog, taskId);
  const against = [...mismatches(item, attempt, task), ...(await madeOfOthers(store, item, attempt, task))];
  if (against.length > 0) {
    throw new EarlyExit(
      "usage",
      `task ${taskId} does not match ${item.rowId}:\n  ${against.join("\n  ")}\nNothing was changed.`,
    );
  }
  const charged = asCharge(task.credits_consumed) ?? item.price;
  // From now on the charge is explained, and a refund is expected if the task fails.
  if (attempt.spendLogId !== null)
    await spendLog.answered(attempt.spendLogId, { outcome: "accepted", charged, taskId });
  return { taskId, charged, attempt: attempt.id };
}

/**
 * Which of an item's requests made the task: among those that may have, the one that was sent closest to the task's
 * creation.
 */
function attemptOf(task: Task, newest: Attempt, lost: readonly Attempt[]): Attempt {
  if (newest.taskId !== null) return newest;
  const distance = ({ sentAt }: Attempt) => Math.abs(serviceTime(task.created_at) - sentAt);
  return lost.reduce((best, other) => (distance(other) < distance(best) ? other : best), newest);
}

/** How far (ms) a task's creation may be from the sending of its request: wrong clocks, late arrival. */
const createdMsMax = 15 * 60_000;

/**
 * Why a task cannot be the one that an item's lost request created: differences of `input`, `model` and `created_at`,
 * one line each. Empty if there are none. Fields that the task does not show are ignored.
 */
export function mismatches(item: Item, attempt: Attempt, task: Task): string[] {
  const wanted: [string, string | null | undefined][] = [
    ["prompt", item.prompt],
    ...Object.entries(item.params),
    ...Object.entries(item.inputs),
  ];
  const found = wanted.flatMap(([field, expected]) => {
    const got = task.input[field];
    if (expected === null || expected === undefined || got === undefined) return [];
    if (field in item.inputs && isAddressedLate(expected, String(got))) return [];
    return normalText(String(got)) === normalText(expected) ? [] : [differs(field, expected, String(got))];
  });
  if (task.model !== item.model) found.unshift(differs("model", item.model, task.model));
  if (!isCreatedBy(attempt, task.created_at)) {
    found.push(
      differs(
        "created_at",
        `within 15 minutes of ${new Date(attempt.sentAt).toISOString()}`,
        task.created_at,
      ),
    );
  }
  return found;
}

/**
 * Whether an input got its address when it was sent: an output of another item has a new one at each poll, and a local
 * file the one at which it was published. A sandbox takes the path itself.
 */
function isAddressedLate(value: string, sent: string): boolean {
  return isReference(value) || (isLocalPath(value) && !isLocalPath(sent));
}

/**
 * A line if the task was made from the inputs of another held item; none otherwise. The addresses of inputs that are
 * published or handed on late are on record only within the hash of the request, so the hashes are compared.
 */
async function madeOfOthers(store: Store, item: Item, attempt: Attempt, task: Task): Promise<string[]> {
  const sent = Object.entries(item.inputs).map(
    ([field, value]) => [field, String(task.input[field] ?? value)] as const,
  );
  const late = sent.find(([field, value]) => isAddressedLate(item.inputs[field as MediaField] ?? "", value));
  if (!late) return [];
  const bodySha256 = bodyHash(requestBody({ ...item, inputs: Object.fromEntries(sent) }));
  if (bodySha256 === attempt.bodySha256) return [];
  const [field, address] = late;
  for (const other of await store.items(item.runId ?? attempt.runId, ["held"])) {
    if (other.id === item.id || (await store.attempt(other.id))?.bodySha256 !== bodySha256) continue;
    return [
      `${field}: expected what was sent for ${item.rowId}, got ${JSON.stringify(address)}, which was sent for ${other.rowId}`,
    ];
  }
  return [];
}

/** Whether a task created at this time (ISO 8601) may belong to the request. */
export function isCreatedBy({ sentAt }: Pick<Attempt, "sentAt">, createdAt: string): boolean {
  return Math.abs(serviceTime(createdAt) - sentAt) <= createdMsMax;
}

function differs(field: string, expected: string, got: string): string {
  return `${field}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`;
}
