import type { GivenOrder, Order, OrderOutcome } from "../../core/ports/orders.js";
import type { Database, InTransaction, Script } from "../script.js";

export function orderChanges({ sql, clock }: InTransaction) {
  return {
    *isWaiting(orderId: number): Script<boolean> {
      return (yield* sql("SELECT 1 FROM orders WHERE id = ? AND outcome IS NULL").get(orderId)) !== undefined;
    },

    *finishOrder(orderId: number, { kind, message }: OrderOutcome): Script<void> {
      yield* sql(
        "UPDATE orders SET outcome = ?, message = ?, ended_at = ? WHERE id = ? AND outcome IS NULL",
      ).run(kind, message, clock.now(), orderId);
    },
  };
}

/** Orders to the process that has the workspace's lock. */
export function orderMethods(connection: Database) {
  const { sql, atomic, read, clock } = connection;
  const { isWaiting, finishOrder } = orderChanges(connection);
  return {
    give: async (runId: number, order: Order): Promise<number> =>
      atomic(function* () {
        return yield* sql("INSERT INTO orders (run_id, given_at, what) VALUES (?, ?, ?)").insert(
          runId,
          clock.now(),
          JSON.stringify(order),
        );
      }),

    /** Orders that wait, oldest first. */
    waitingOrders: (): Promise<GivenOrder[]> =>
      read(function* () {
        const rows = (yield* sql(
          "SELECT * FROM orders WHERE outcome IS NULL ORDER BY id",
        ).all()) as OrderRow[];
        return rows.map(
          (row): GivenOrder => ({
            id: row.id,
            runId: row.run_id,
            order: JSON.parse(row.what) as Order,
            givenAt: row.given_at,
          }),
        );
      }),

    /** Whether the order has no outcome yet and was not withdrawn. */
    isWaiting: (orderId: number): Promise<boolean> => read(() => isWaiting(orderId)),

    finishOrder: async (orderId: number, outcome: OrderOutcome): Promise<void> =>
      atomic(() => finishOrder(orderId, outcome)),

    /** Null while it waits. */
    outcomeOf: (orderId: number): Promise<OrderOutcome | null> =>
      read(function* () {
        const row = (yield* sql("SELECT * FROM orders WHERE id = ?").get(orderId)) as OrderRow | undefined;
        return row?.outcome ? { kind: row.outcome, message: row.message ?? "" } : null;
      }),

    /** Withdraws an order. False if it already has an outcome. */
    withdraw: async (orderId: number): Promise<boolean> =>
      atomic(function* () {
        const changes = yield* sql("DELETE FROM orders WHERE id = ? AND outcome IS NULL").changes(orderId);
        return changes > 0;
      }),
  };
}

interface OrderRow {
  id: number;
  run_id: number;
  given_at: number;
  what: string;
  outcome: OrderOutcome["kind"] | null;
  message: string | null;
}
