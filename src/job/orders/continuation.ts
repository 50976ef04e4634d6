import type { Run, Store } from "../../core/ports/store.js";
import type { WorkspaceSession } from "../workspace/open.js";
import { orderItems, pricesNow } from "./apply.js";
import { factsFor, needsFacts } from "./facts.js";
import { agreedTo, type FindItems, type ItemRequest, type PriceConsent } from "./request.js";

/** Does what is wanted in this process, and lets its run go on with it. */
export function continuationOf(wish: FindItems, consent: PriceConsent): Continuation {
  let wanted: ItemRequest | null = null;
  return {
    async choose(store) {
      wanted = await wish(store);
      return wanted.run;
    },
    async change({ store, account }) {
      if (!wanted) throw new Error("a wish that was never found");
      const { run, order, offered } = wanted;
      const facts = await factsFor(order, account);
      const charges = await account.accounts.highestCharges(account.accountId());
      const agreed = await agreedTo(order, pricesNow(offered, facts, charges), consent);
      const { run: changed } = await orderItems({ store, books: account.books, facts, charges }, run, agreed);
      return { ...changed, requests: changed.requests + (needsFacts(order) ? 1 : 0) };
    },
  };
}

/** What resume, retry and redo have in common: they go on with a run that is there, and read no manifest. */
export interface Continuation {
  /** Finds the run, before anything is locked or asked. Throws EarlyExit where there is none. */
  choose(store: Store): Promise<Run>;
  /** What changes before it goes on, with the workspace held and the account known; returns the run to carry on. */
  change?(hold: WorkspaceSession, run: Run): Promise<Run>;
}
