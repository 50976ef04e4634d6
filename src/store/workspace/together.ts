import type { Changes, Store, TransactionPart } from "../../core/ports/store.js";
import type { Script } from "../script.js";
import { approvalChanges } from "./approvals.js";
import { attemptChanges } from "./attempts.js";
import { itemChanges } from "./items.js";
import { orderChanges } from "./orders.js";
import { runChanges } from "./runs.js";
import type { RootedDatabase } from "./transition.js";

/** Changes of several kinds in one transaction. */
export function togetherMethod(connection: RootedDatabase): Pick<Store, "together"> {
  const changes: Changes = {
    ...runChanges(connection),
    ...itemChanges(connection),
    ...attemptChanges(connection),
    ...approvalChanges(connection),
    ...orderChanges(connection),
  };
  return {
    // What the parts ask are queries: callers have no others.
    together: async <Result>(work: (changes: Changes) => TransactionPart<Result>) =>
      connection.atomic(() => work(changes) as Script<Result>),
  };
}
