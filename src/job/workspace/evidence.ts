import { localTime } from "../../core/local-time.js";
import { type Credits, minus, noCredits, plus } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { Item, Store } from "../../core/ports/store.js";
import { isoOrNull } from "../../text/iso.js";
import { shortText, terminalText } from "../../text/terminal.js";

/** The evidence of an item's newest request; null if there was none. */
export async function evidenceOf(store: Pick<Store, "attempt">, itemId: number): Promise<Evidence | null> {
  const attempt = await store.attempt(itemId);
  return attempt && evidenceIn(attempt);
}

/** The evidence of an attempt. */
export function evidenceIn({ sentAt, status, bodySha256, taskId, externalTaskId }: Attempt): Evidence {
  return { sentAt, status, bodySha256, taskId, externalTaskId };
}

/** Why an item is in its state. */
export function reasonOf({ state, note }: Pick<Item, "state" | "note">): string {
  return note ?? (state === "overdue" ? "still processing" : "no reason is known");
}

/** The items in this state, each with why and with its evidence. */
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

/** What a run has cost or may have cost. */
export interface SpentIn {
  /** Charged for good. */
  spent: Credits;
  /** At the service, unknown or held: charged, or possibly charged. */
  pending: Credits;
  /** Of these, for tasks that the service accepted, and how many they are. */
  atService: Credits;
  tasks: number;
  /** How many requests may have been charged, or may not. */
  inDoubt: number;
  /**
   * Requests that were or may have been charged, and whose items were submitted again or skipped, in this run or later.
   */
  lost: WaitingItem[];
  /** The maximum cost of those that this run sent. */
  lostCredits: Credits;
}

export async function spentIn(
  store: Pick<Store, "spending" | "orphans" | "item">,
  runId: number,
): Promise<SpentIn> {
  const { charged, pending, atService, tasks, inDoubt } = await store.spending(runId);
  const lost: WaitingItem[] = [];
  let lostCredits = noCredits;
  let ownLost = 0;
  for (const orphan of await store.orphans({ run: runId })) {
    const { rowId, state } = await store.item(orphan.itemId);
    const fate = state === "dropped" ? "given up" : "its item was submitted again";
    const isOwn = orphan.runId === runId;
    const reason = isOwn ? fate : `${fate}; run ${orphan.runId} sent it and counts its credits`;
    lost.push({ rowId, reason, evidence: evidenceIn(orphan) });
    if (!isOwn) continue;
    lostCredits = plus(lostCredits, orphan.price);
    ownLost++;
  }
  return {
    spent: charged,
    pending: minus(pending, lostCredits),
    atService,
    tasks,
    inDoubt: inDoubt - ownLost,
    lost,
    lostCredits,
  };
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
const reasonCharactersMax = 240;

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

/** The evidence as JSON: nothing but nulls where there is none. */
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
  const told = items.flatMap(({ rowId, evidence }) =>
    evidence === null ? [] : [`${terminalText(rowId)}: ${evidenceText(evidence)}`],
  );
  const more = told.length - itemsMax;
  const rest = more > 0 ? [`and ${more} more: \`${status} --json\` has every one`] : [];
  return [...told.slice(0, itemsMax), ...rest];
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

/** The command that decides about held items. */
export function heldAdvice(sandbox: boolean): string {
  const flag = sandbox ? " --sandbox" : "";
  return `find their tasks at the service, then \`bulkgen resolve ITEM --adopt TASK${flag}\`; or pay for all of them again with \`bulkgen resolve --all --resubmit${flag}\`, or drop them with --skip`;
}

/** When the service is asked again, e.g. `after 2026-11-21 04:10 UTC`. */
export function afterText(at: number): string {
  // Rounded up to the minute.
  return `after ${localTime(at + 59_999)}`;
}

/** Why an item failed or waits; `kind` is empty where the reason says it all. */
export interface Reason {
  rowId: string;
  kind: string;
  reason: string;
}

/** Ids that are named for a reason before the rest is counted. */
const idsMax = 5;

/** The first row ids, and how many more of `all` there are. */
export function someOf(rowIds: readonly string[], all = rowIds.length): string {
  const named = rowIds.slice(0, idsMax).map(terminalText);
  return `${named.join(", ")}${all > named.length ? ` and ${all - named.length} more` : ""}`;
}

/** One line for each reason, the most frequent first, with the ids of its items; beyond `most`, one line for the rest. */
export function groupedReasons(items: readonly Reason[], most: number): string[] {
  const ids = new Map<string, string[]>();
  for (const { rowId, kind, reason } of items) {
    const text = shortText(kind === "" ? reason : `${kind}: ${reason}`, reasonCharactersMax);
    const of = ids.get(text);
    if (of === undefined) ids.set(text, [rowId]);
    else of.push(rowId);
  }
  const groups = [...ids].toSorted(([, a], [, b]) => b.length - a.length);
  const lines = groups.slice(0, most).map(([reason, of]) => `${of.length} × ${reason} (${someOf(of)})`);
  const others = groups.slice(most).reduce((sum, [, of]) => sum + of.length, 0);
  return others === 0 ? lines : [...lines, `${others} × other reasons`];
}
