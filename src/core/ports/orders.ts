import type { Credits } from "../money.js";

/**
 * An order to a run or its items while another process executes the run. Only that process may change them, so the order
 * waits in the workspace until it is applied; if no process is using the workspace, the command applies it.
 */
export type Order = RunOrder | ItemOrder;

export type RunOrder = { do: "pause" } | { do: "cancel" };

/** Items are named by their numbers in the workspace. */
export type ItemOrder =
  | { do: "adopt"; items: readonly number[]; task: string }
  | { do: "refetch" | "accept" | "skip"; items: readonly number[] }
  | { do: "approve"; items: readonly number[] }
  | { do: "reject"; items: readonly number[] }
  /** The most credits that the person agreed to pay. */
  | { do: "resubmit" | "retry"; items: readonly number[]; agreed: Credits }
  /** With `rejects`, the items are rejected, and their variants replace them. With `change`, the variants differ in that. */
  | { do: "redo"; items: readonly number[]; agreed: Credits; rejects?: true; change?: RequestChange };

/** What a retake asks for in place of what its item was made from. */
export interface RequestChange {
  prompt?: string;
  /** By key; the others stay. An empty value leaves the param out. */
  params?: Readonly<Record<string, string>>;
}

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

/** The outcome of an order, with a message for the person. A void order was given to a process that had ended. */
export interface OrderOutcome {
  kind: "done" | "refused" | "void";
  message: string;
}
