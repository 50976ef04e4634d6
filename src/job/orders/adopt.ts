import type { Task } from "../../api/records.js";
import { normalText } from "../../core/identity.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { Item } from "../../core/ports/store.js";

/** How far a task's creation may lie from the sending of the request it is said to answer, in ms: wrong clocks, late arrival. */
const createdMsMax = 15 * 60_000;

/**
 * What speaks against a task being the one that an item's lost request made: its own words (`input`, `model`,
 * `created_at`) against the item's, one line each. Empty when nothing does. Fields that the task does not show are not
 * held against it.
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

/** Whether a task that was created then (ISO 8601) may be the one that a request made. */
export function isCreatedBy({ sentAt }: Pick<Attempt, "sentAt">, createdAt: string): boolean {
  return Math.abs(Date.parse(createdAt) - sentAt) <= createdMsMax;
}

function differs(field: string, expected: string, got: string): string {
  return `${field}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`;
}
