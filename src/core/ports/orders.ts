import type { Credits } from "../money.js";

/**
 * What a person wants of a run, or of its items, while another process carries it on. That process alone may change
 * them, so the order waits in the workspace until it carries it out; where no process holds the workspace, the command
 * does.
 */
export type Order = RunOrder | ItemOrder;

export type RunOrder = { do: "pause" } | { do: "cancel" };

/** Items are named by their numbers in the workspace. */
export type ItemOrder =
  | { do: "adopt"; items: readonly number[]; task: string }
  | { do: "refetch" | "skip"; items: readonly number[] }
  /** What is paid for: at most the credits that the person has agreed to. */
  | { do: "resubmit" | "retry" | "redo"; items: readonly number[]; agreed: Credits };

export function isRunOrder(order: Order): order is RunOrder {
  return order.do === "pause" || order.do === "cancel";
}

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
