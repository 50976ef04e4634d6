import { createHash } from "node:crypto";
import type { Attempt } from "../core/ports/attempt.js";
import type { Item } from "../core/ports/store.js";

/**
 * The `Idempotency-Key` of an attempt: the same whenever it is sent, and no other attempt's. Every paid request has one; what it
 * is worth, the service says.
 */
export function repeatKey(
  { key }: Pick<Item, "key">,
  attempt: Pick<Attempt, "id" | "sentAt" | "bodySha256">,
): string {
  const { id, sentAt, bodySha256 } = attempt;
  return createHash("sha256").update([key, id, sentAt, bodySha256].join(" ")).digest("hex").slice(0, 32);
}
