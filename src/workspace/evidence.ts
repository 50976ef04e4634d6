import { nodeDisk } from "../archive/disk/node-disk.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Item } from "../core/ports/store.js";
import { openReceipts } from "../run/receipts/receipts.js";
import type { Store } from "../store/workspace/workspace.js";
import { reasonCharactersMax } from "../text/reasons.js";
import { sandboxFlag } from "../text/shell.js";
import { shortText, terminalText } from "../text/terminal.js";
import { isoOrNull, localTime } from "../text/times.js";
import type { Workspace } from "./workspace.js";

/** The evidence of an item's newest request; null if there was none. */
export async function evidenceOf(store: Pick<Store, "attempt">, itemId: number): Promise<Evidence | null> {
  const attempt = await store.attempt(itemId);
  return attempt && evidenceIn(attempt);
}

export function evidenceIn({ sentAt, status, bodySha256, taskId, externalTaskId }: Attempt): Evidence {
  return { sentAt, status, bodySha256, taskId, externalTaskId };
}

/** Why an item is in its state. */
export function reasonOf({ state, note }: Pick<Item, "state" | "note">): string {
  return note ?? (state === "overdue" ? "still processing" : "no reason is known");
}

/** The items in this state, each with its reason and its evidence. */
export async function waitingIn(
  store: Pick<Store, "attempt">,
  items: readonly Item[],
  state: "held" | "unknown" | "overdue",
): Promise<WaitingItem[]> {
  const waiting: WaitingItem[] = [];
  for (const item of items.filter((candidate) => candidate.state === state)) {
    const { rowId } = item;
    waiting.push({ rowId, reason: reasonOf(item), evidence: await evidenceOf(store, item.id) });
  }
  return waiting;
}

/**
 * The task of a held item whose answer is in the receipts of this folder: a database that went away while the request was
 * answered lacks it, and another folder may have gone on without it. Null if it is not here.
 */
export async function taskInReceipts(
  store: Pick<Store, "attempt" | "run">,
  item: Item,
  workspace: Workspace,
): Promise<string | null> {
  if (workspace.database === null || item.state !== "held") return null;
  const attempt = await store.attempt(item.id);
  const run = attempt?.taskId === null ? await store.run(attempt.runId) : null;
  if (!attempt || !run) return null;
  const receipts = openReceipts(nodeDisk, workspace, () => 0);
  return (await receipts.answerTo(run, item, attempt))?.outcome.taskId ?? null;
}

/** What a person needs to find an item's request, or its task, at the service. */
export interface Evidence {
  /** When the POST was started (UTC ms). */
  sentAt: number;
  /** The HTTP status of its answer; null if no answer came. */
  status: number | null;
  /** SHA-256 of the request's body. */
  bodySha256: string;
  taskId: string | null;
  /** The task at the provider behind the service. */
  externalTaskId: string | null;
}

/** An item that waits for a person, or for its task. */
export interface WaitingItem {
  rowId: string;
  /** Why. */
  reason: string;
  /** Null when it was never submitted. */
  evidence: Evidence | null;
}

const itemsMax = 20;
const hashCharacters = 12;

/** `POST 2026-11-21 04:10:23 UTC, answer 502, body 3f2a91c40b7d`, with the hash shortened to `characters`. */
export function evidenceText(
  { sentAt, status, bodySha256, taskId, externalTaskId }: Evidence,
  characters = hashCharacters,
): string {
  return [
    `POST ${new Date(sentAt).toISOString().slice(0, 19).replace("T", " ")} UTC`,
    status === null ? "no answer" : `answer ${status}`,
    `body ${bodySha256.slice(0, characters)}`,
    ...(taskId === null ? [] : [`task ${terminalText(taskId)}`]),
    ...(externalTaskId === null ? [] : [`provider's task ${terminalText(externalTaskId)}`]),
  ].join(", ");
}

/** The evidence as JSON: only nulls if there is none. */
export function evidenceJson(evidence: Evidence | null) {
  const {
    sentAt = null,
    status = null,
    bodySha256 = null,
    taskId = null,
    externalTaskId = null,
  } = evidence ?? {};
  return { sentAt: isoOrNull(sentAt), status, bodySha256, taskId, externalTaskId };
}

/** The evidence of an item as JSON, with its reason. */
export function waitingJson({ rowId, reason, evidence }: WaitingItem) {
  return { rowId, reason, ...evidenceJson(evidence) };
}

/** A line with the evidence of each of the first items. `status` is the command that shows their run. */
export function evidenceLines(items: readonly WaitingItem[], status: string): string[] {
  const lines = items.flatMap(({ rowId, evidence }) =>
    evidence === null ? [] : [`${terminalText(rowId)}: ${evidenceText(evidence)}`],
  );
  const more = lines.length - itemsMax;
  const rest = more > 0 ? [`and ${more} more: \`${status} --json\` has every one`] : [];
  return [...lines.slice(0, itemsMax), ...rest];
}

/** A line with the reason and evidence of each of the first items. `status` is the command that shows their run. */
export function reasonLines(items: readonly WaitingItem[], status: string): string[] {
  const lines = items.slice(0, itemsMax).map(({ rowId, reason, evidence }) => {
    const found = evidence === null ? "" : `; ${evidenceText(evidence)}`;
    return `${terminalText(rowId)}: ${shortText(reason, reasonCharactersMax)}${found}`;
  });
  const more = items.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more: \`${status} --json\` has every one`] : [])];
}

/** Of how many held items the tasks are known. */
export type TasksKnown = "all" | "some" | "none";

export function tasksKnown(held: readonly Pick<WaitingItem, "evidence">[]): TasksKnown {
  const known = held.filter(({ evidence }) => evidence !== null && evidence.taskId !== null).length;
  if (known === 0) return "none";
  return known === held.length ? "all" : "some";
}

/** The commands that decide about held items. */
export function heldAdvice(known: TasksKnown, sandbox: boolean, held: number): string {
  const flag = sandboxFlag({ sandbox });
  const finds = {
    all: `\`bulkgen resolve --all --refetch${flag}\` tries to download them again, at no cost; --accept keeps what came, even if it failed its check`,
    some: `\`bulkgen resolve ITEM --refetch${flag}\` tries to download again what has a task, at no cost (--accept keeps what came, even if it failed its check); find the tasks of the others at the service, then \`bulkgen resolve ITEM --adopt TASK${flag}\``,
    none: `find the tasks of the held items at the service, then \`bulkgen resolve ITEM --adopt TASK${flag}\``,
  };
  return `${finds[known]}; or pay for all of them again with \`bulkgen resolve --all --resubmit${flag}\`, or drop them with --skip${held < manyHeld || known === "all" ? "" : inAdvance}`;
}

/** From so many on, a service seems to lose answers all the time. */
const manyHeld = 5;
const inAdvance =
  ". Where a service loses many answers, `--orphans resubmit --orphan-credits N` on `run` or `resume` pays up to N credits for such items again by itself";

/** When a run can continue or a task is polled, e.g. `after 2026-11-21 04:10 UTC`. */
export function afterText(at: number): string {
  // Rounded up to the minute.
  return `after ${localTime(at + 59_999)}`;
}
