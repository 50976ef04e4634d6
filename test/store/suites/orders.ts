import { describe, expect, test } from "vitest";
import type { ModelList, Task } from "../../../src/api/records.js";
import type { Clock } from "../../../src/clock.js";
import { WakeSignal } from "../../../src/clock.js";
import { credits } from "../../../src/core/money.js";
import type { ItemOrder, Order, OrderOutcome } from "../../../src/core/ports/orders.js";
import type { Item, NewItem, Run } from "../../../src/core/ports/store.js";
import { pollOrders } from "../../../src/job/orders/attend.js";
import type { Session } from "../../../src/run/ports.js";
import type { SpendLog } from "../../../src/store/accounts/spend-log.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { newItem, runStart } from "../item-fixture.js";
import type { OpenDatabase, OpenedDatabase } from "./open.js";

const owner = { origin: runStart.origin, fingerprint: "f1", workspace: "here" };
const fit: ModelList = {
  models: [{ model_key: "picture", credits_cost: 4 }],
} as unknown as ModelList;

/** Methods of the two ports that write. */
const writes = /^(apply|expire|adopt|approve|add|startRun|setRun|cancelRun|finishOrder|together|answered)$/;

class Killed extends Error {}

/** A process that dies just after so many of its writes. */
class Process {
  private left: number;

  constructor(writesLeft: number) {
    this.left = writesLeft;
  }

  port<Port extends object>(port: Port): Port {
    const methods = Object.entries(port).map(([name, act]) => {
      const method = async (...values: unknown[]) => {
        if (this.left === 0) throw new Killed();
        const result = await act(...values);
        if (writes.test(name) && --this.left === 0) throw new Killed();
        return result;
      };
      return [name, method];
    });
    return Object.fromEntries(methods) as Port;
  }

  get isDead(): boolean {
    return this.left === 0;
  }
}

/** Time passes as soon as somebody waits for it. */
const hurrying: Clock = {
  now: () => 0,
  monotonic: () => 0,
  sleep: () => new Promise((resolve) => setImmediate(resolve)),
};

interface Stage extends OpenedDatabase {
  spendLog: SpendLog;
  run: Run;
  /** Of another job; the process that carries out the orders executes it. */
  own: Run;
  item(id: string): Promise<Item>;
}

/** A run with items that orders are about. */
async function stageOf(open: OpenDatabase): Promise<Stage> {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const opened = await open(clock);
  const { store, accounts } = opened;
  const account = await accounts.accountOf(owner.origin, owner.fingerprint);
  await accounts.setLimits(account.id, { perMinute: 60, perDay: 10_000 });
  const spendLog = accounts.spendLog(owner);
  const run = await store.startRun((await store.job("demo")).id, runStart);
  const own = await store.startRun((await store.job("other")).id, runStart);
  const item = async (id: string) => (await store.items(run.id)).find(({ rowId }) => rowId === id) as Item;
  const child: Partial<NewItem> = {
    inputs: { image_url: "@x" },
    parents: [{ field: "image_url", key: "k1:made1", output: 1 }],
  };
  await store.enroll(run.id, [
    ...["held1", "held2", "lost1", "failed1", "failed2", "planned1"].map((id, position) =>
      newItem(id, { position }),
    ),
    newItem("made1", { position: 7, approve: true }),
    newItem("made2", { position: 8, approve: true }),
    newItem("child1", { position: 9, ...child }),
  ]);
  const begin = async (id: string) => {
    const { id: itemId, key, price } = await item(id);
    const spendLogId = await spendLog.intend({ itemKey: key, price, at: clock.now() });
    const attempt = await store.intend(itemId, {
      runId: run.id,
      sentAt: clock.now(),
      bodySha256: "0",
      spendLogId,
    });
    return { itemId, attempt: attempt.id, spendLogId };
  };
  for (const id of ["held1", "held2"]) {
    const { itemId, attempt, spendLogId } = await begin(id);
    await store.conclude(attempt, "unanswered", {});
    await spendLog.answered(spendLogId, { outcome: "unknown", completeError: false });
    await store.giveVerdict(itemId, "undecided", "no evidence");
  }
  for (const id of ["failed1", "failed2"])
    await store.conclude((await begin(id)).attempt, "rejected", { message: "no such style" });
  for (const id of ["made1", "made2", "lost1"]) {
    const { itemId, attempt, spendLogId } = await begin(id);
    await store.conclude(attempt, "accepted", { taskId: `task-${id}`, charged: credits(4) });
    await spendLog.answered(spendLogId, { outcome: "accepted", charged: credits(4), taskId: `task-${id}` });
    await store.complete(itemId, {
      urls: [`https://files.example/${id}`],
      fetchBy: 0,
      charged: credits(4),
      createdAt: "2026-01-01T00:00:00Z",
      completedAt: null,
    });
    await spendLog.polled(spendLogId, { task: "completed", charged: credits(4), endedAt: clock.now() });
    const file = { file: `${id}.png`, bytes: 3, sha256: "ab", mime: "image/png", check: "decoded" };
    if (id === "lost1") await store.apply(itemId, "unfetchable", { note: "gone" });
    else await store.saved(itemId, 1, file);
  }
  return { ...opened, spendLog, run, own, item };
}

/** Waits for the order in a new process with the workspace, which may die in the middle of it. */
async function ordered(stage: Stage, order: Order, process: Process): Promise<OrderOutcome | null> {
  const { run, own, accounts } = stage;
  const store = process.port(stage.store);
  const { id: accountId } = await accounts.accountOf(owner.origin, owner.fingerprint);
  const bell = new WakeSignal();
  const session = {
    ports: {
      store,
      accounts,
      accountId,
      spendLog: process.port(stage.spendLog),
      receipts: { decided: async () => undefined },
      workspace: "here",
      clock: hurrying,
      bell,
    },
    settings: { run: own },
    gate: { stops: [], requests: 0, breaker: { forget: () => undefined }, stop: () => undefined },
  } as unknown as Session;
  const task = {
    task_id: "task-found",
    model: "picture",
    created_at: "2026-01-01T00:00:00Z",
    input: {},
    credits_consumed: 4,
  } as unknown as Task;
  const account = { service: { taskRecord: async () => task }, models: async () => fit } as never;
  const polling = await pollOrders({ store, clock: hurrying, session, account });
  const given = await stage.store.give(run.id, order);
  try {
    while (!process.isDead && (await stage.store.isWaiting(given))) {
      await hurrying.sleep(0);
      await polling.attend(new Set());
    }
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
  }
  await polling.close().catch(() => undefined);
  return stage.store.outcomeOf(given);
}

/** What the workspace and the spend log have on record. */
async function recorded({ ask, store, spendLog }: Stage): Promise<object> {
  return {
    items: await ask("SELECT key, run_id, state, price, approval, note, expired FROM items ORDER BY id"),
    runs: await ask("SELECT id, state, exit, ended_at IS NULL AS open FROM runs ORDER BY id"),
    attempts: await ask("SELECT item_id, number, outcome, task_id, charged FROM attempts ORDER BY id"),
    waiting: await store.waitingOrders(),
    tasks: (await spendLog.open()).length,
  };
}

interface Case {
  order(stage: Stage): Promise<Order>;
  /** Before it. */
  cancelled?: true;
}

const items = async ({ item }: Stage, ...ids: string[]) =>
  (await Promise.all(ids.map(item))).map(({ id }) => id);
const itemOrder =
  (does: ItemOrder["do"], ids: string[], more: object = {}) =>
  async (stage: Stage) =>
    ({ do: does, items: await items(stage, ...ids), ...more }) as ItemOrder;
const agreed = credits(8);

const cases: Readonly<Record<string, Case>> = {
  pause: { order: async () => ({ do: "pause" }) },
  cancel: { order: async () => ({ do: "cancel" }) },
  adopt: { order: itemOrder("adopt", ["held1"], { task: "task-found" }) },
  refetch: { order: itemOrder("refetch", ["lost1"]) },
  skip: { order: itemOrder("skip", ["held1", "held2"]) },
  resubmit: { order: itemOrder("resubmit", ["held1", "held2"], { agreed }) },
  retry: { order: itemOrder("retry", ["failed1", "failed2"], { agreed }) },
  "retry in a cancelled run": {
    order: itemOrder("retry", ["failed1", "failed2"], { agreed }),
    cancelled: true,
  },
  redo: { order: itemOrder("redo", ["made1", "made2"], { agreed }) },
  "redo of what is rejected": { order: itemOrder("redo", ["made1", "made2"], { agreed, rejects: true }) },
  approve: { order: itemOrder("approve", ["made1", "made2"]) },
  reject: { order: itemOrder("reject", ["made1", "made2"]) },
};

export function ordersSuite(open: OpenDatabase): void {
  describe.each(Object.entries(cases))("an order to %s", (_, { order, cancelled }) => {
    async function begin(): Promise<Stage> {
      const stage = await stageOf(open);
      if (cancelled) await stage.store.cancelRun(stage.run.id, new Set());
      return stage;
    }

    test("P2: is carried out once, wherever its process dies, and is told of as done", async () => {
      const whole = await begin();
      const done = await ordered(whole, await order(whole), new Process(Number.POSITIVE_INFINITY));
      expect(done?.kind, done?.message).toBe("done");
      const expected = await recorded(whole);
      let isOver = false;
      for (let writesLeft = 1; !isOver; writesLeft++) {
        const stage = await begin();
        const process = new Process(writesLeft);
        const wanted = await order(stage);
        let outcome = await ordered(stage, wanted, process);
        isOver = !process.isDead;
        // The command that waits gives it to the next process, if this one has left it undone.
        outcome ??= await ordered(stage, wanted, new Process(Number.POSITIVE_INFINITY));
        expect(outcome, `after ${writesLeft} writes`).toEqual(done);
        expect(await recorded(stage), `after ${writesLeft} writes`).toEqual(expected);
      }
    });

    test("is not carried out once it was withdrawn", async () => {
      const stage = await begin();
      const before = await recorded(stage);
      const { store } = stage;
      const withdrawing = {
        ...store,
        together: async (work: Parameters<typeof store.together>[0]) => {
          for (const { id } of await store.waitingOrders()) await store.withdraw(id);
          return store.together(work);
        },
      } as Store;
      const late = { ...stage, store: withdrawing };
      await ordered(late, await order(stage), new Process(Number.POSITIVE_INFINITY));
      // That a task was found is true all the same.
      expect({ ...(await recorded(stage)), tasks: 0 }).toEqual({ ...before, tasks: 0 });
    });
  });
}
