import { utcTime } from "../../core/quota/quota.js";
import { shortText, terminalText } from "../../text/terminal.js";

/** What a person needs to find an item's request, or its task, at the service. */
export interface Evidence {
  /** When the POST was begun (UTC ms). */
  sentAt: number;
  /** What the service answered to it; null when no answer came. */
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
const reasonCharactersMax = 160;

/** `POST 2026-11-21 04:10:23 UTC, answer 502, body 3f2a91c40b7d`; the hash as far as there is room for it. */
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

/** The same for programs. */
export function evidenceJson(evidence: Evidence | null): object {
  if (evidence === null) return {};
  const { sentAt, ...rest } = evidence;
  return { ...rest, sentAt: new Date(sentAt).toISOString() };
}

/** The same of an item, with its reason. */
export function waitingJson({ rowId, reason, evidence }: WaitingItem): object {
  return { rowId, reason, ...evidenceJson(evidence) };
}

/** A line for each of the first items, with its evidence. */
export function evidenceLines(items: readonly WaitingItem[]): string[] {
  const told = items.flatMap(({ rowId, evidence }) =>
    evidence === null ? [] : [`${terminalText(rowId)}: ${evidenceText(evidence)}`],
  );
  const more = told.length - itemsMax;
  const rest = more > 0 ? [`and ${more} more: \`bulkgen status --json\` has every one`] : [];
  return [...told.slice(0, itemsMax), ...rest];
}

/** The same, each with its reason. */
export function reasonLines(items: readonly WaitingItem[]): string[] {
  const lines = items.slice(0, itemsMax).map(({ rowId, reason, evidence }) => {
    const found = evidence === null ? "" : `; ${evidenceText(evidence)}`;
    return `${terminalText(rowId)}: ${shortText(reason, reasonCharactersMax)}${found}`;
  });
  const more = items.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more: \`bulkgen status --json\` has every one`] : [])];
}

/** What to type for held items. */
export function heldAdvice(sandbox: boolean): string {
  const flag = sandbox ? " --sandbox" : "";
  return `find their tasks at the service, then \`bulkgen resolve ITEM --adopt TASK${flag}\`, or --resubmit, or --skip`;
}

/** When the service is asked again, such as `after 2026-11-21 04:10 UTC`. */
export function nextLookText(at: number): string {
  // A time to the minute, and not before.
  return `after ${utcTime(at + 59_999)}`;
}
