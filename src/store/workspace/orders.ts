import type { GivenOrder, Order, OrderOutcome, Orders } from "../../core/ports/orders.js";
import type { AsScript, Database, InTransaction } from "../script.js";

type OrderChanges = { [Name in "isWaiting" | "finishOrder"]: AsScript<Orders[Name]> };

export function orderChanges({ sql, clock }: InTransaction): OrderChanges {
  return {
    *isWaiting(orderId) {
      return (yield* sql("SELECT 1 FROM orders WHERE id = ? AND outcome IS NULL").get(orderId)) !== undefined;
    },

    *finishOrder(orderId, { kind, message }) {
      yield* sql(
        "UPDATE orders SET outcome = ?, message = ?, ended_at = ? WHERE id = ? AND outcome IS NULL",
      ).run(kind, message, clock.now(), orderId);
    },
  };
}

/** Orders to the process that has the workspace's lock. */
export function orderMethods(connection: Database): Orders {
  const { sql, atomic, read, clock } = connection;
  const { isWaiting, finishOrder } = orderChanges(connection);
  return {
    give: async (runId, order) =>
      atomic(function* () {
        return yield* sql("INSERT INTO orders (run_id, given_at, what) VALUES (?, ?, ?)").insert(
          runId,
          clock.now(),
          JSON.stringify(order),
        );
      }),

    waitingOrders: () =>
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

    isWaiting: (orderId) => read(() => isWaiting(orderId)),

    finishOrder: async (orderId, outcome) => atomic(() => finishOrder(orderId, outcome)),

    outcomeOf: (orderId) =>
      read(function* () {
        const row = (yield* sql("SELECT * FROM orders WHERE id = ?").get(orderId)) as OrderRow | undefined;
        return row?.outcome ? { kind: row.outcome, message: row.message ?? "" } : null;
      }),

    withdraw: async (orderId) =>
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
