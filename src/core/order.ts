/**
 * What a person wants of a run while another process carries it on. That process alone may change the run, so the
 * order waits in the workspace until it carries it out; where no process holds the workspace, the command does.
 */
export type Order = { do: "pause" } | { do: "cancel" };

export interface GivenOrder {
  id: number;
  runId: number;
  order: Order;
  /** UTC ms. */
  givenAt: number;
}

/** What became of an order, in words for whoever gave it. An order that is void was given to a process that had ended. */
export interface OrderOutcome {
  kind: "done" | "refused" | "void";
  message: string;
}

/** The port to the orders of one workspace. Every method is one transaction. */
export interface Orders {
  give(runId: number, order: Order): Promise<number>;
  /** Orders that wait, oldest first. */
  waitingOrders(): Promise<GivenOrder[]>;
  settle(orderId: number, outcome: OrderOutcome): Promise<void>;
  /** Null while it waits. */
  outcomeOf(orderId: number): Promise<OrderOutcome | null>;
  /** Takes an order back. False when it was settled already. */
  withdraw(orderId: number): Promise<boolean>;
}
