import type { Apart, Database, QueryResult, Script } from "../script.js";
import { type Line, NetworkCut } from "./line.js";

/** A script whose caller waits for its result. */
export interface WaitingScript {
  script(): Script<unknown>;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

interface WaitingWriter extends WaitingScript {
  isOnce: boolean;
  part: Apart["part"] | null;
}

/** A transaction that was rolled back because one of its scripts failed. */
export class GroupFailed extends Error {}

/**
 * Scripts that come in while others are run share the next transaction, and with it the round trips of its ends and its
 * sync. `run` runs the transaction and returns a function that tells each script's caller how it ended. Where one of them
 * fails, each is run again in a transaction of its own, so that it fails alone; where the transaction itself fails, all
 * callers get its error.
 */
export function inGroups(run: (group: readonly WaitingWriter[]) => Promise<() => void>): Database["atomic"] {
  const waiting: WaitingWriter[] = [];
  let isRunning = false;
  const runNow = async (group: readonly WaitingWriter[]): Promise<void> => {
    try {
      const tell = await run(group);
      tell();
    } catch (error) {
      if (error instanceof GroupFailed) for (const one of group) await runNow([one]);
      else for (const { reject } of group) reject(error);
    }
  };
  const runAll = async () => {
    isRunning = true;
    while (waiting.length > 0) {
      const alone = waiting.findIndex(({ isOnce }) => isOnce);
      await runNow(waiting.splice(0, alone < 0 ? waiting.length : Math.max(1, alone)));
    }
    isRunning = false;
  };
  return <Result>(script: () => Script<Result>, how?: "once" | Apart) =>
    new Promise<Result>((resolve, reject) => {
      const isOnce = how === "once";
      const part = typeof how === "object" ? how.part : null;
      waiting.push({ script, isOnce, part, resolve: resolve as (result: unknown) => void, reject });
      if (!isRunning) void runAll();
    });
}

export async function runGroup(line: Line, group: readonly WaitingWriter[]): Promise<() => void> {
  const ends: (() => void)[] = [];
  try {
    for (const batch of sideBySide(group)) {
      const turns = batch.length === 1 ? null : new Turns(batch.length);
      const running = batch.map(async ({ script, resolve }) => {
        const result = await drive(line, script(), turns).finally(() => turns?.leave());
        ends.push(() => resolve(result));
      });
      // If one fails, the others still ask on: wait for all of them before the transaction ends.
      const failed = (await Promise.allSettled(running)).find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    }
    await line.allAnswered();
  } catch (error) {
    throw group.length === 1 || error instanceof NetworkCut ? error : new GroupFailed();
  }
  return () => {
    for (const end of ends) end();
  };
}

/** Neighbours that may run side by side, in the order in which they came. */
function sideBySide(group: readonly WaitingWriter[]): WaitingWriter[][] {
  const batches: WaitingWriter[][] = [];
  let parts = new Set<unknown>();
  for (const one of group) {
    const joins = one.part !== null && parts.size > 0 && !parts.has(one.part) && !parts.has(null);
    if (joins) batches.at(-1)?.push(one);
    else {
      batches.push([one]);
      parts = new Set();
    }
    parts.add(one.part);
  }
  return batches;
}

/** Scripts that run side by side: those that want to be alone wait until the others have ended or wait too. */
class Turns {
  private readonly waiting: (() => void)[] = [];

  constructor(private running: number) {}

  async alone(): Promise<void> {
    const turn = new Promise<void>((resolve) => this.waiting.push(resolve));
    this.leave();
    await turn;
  }

  leave(): void {
    if (--this.running > 0) return;
    const next = this.waiting.shift();
    if (next === undefined) return;
    this.running = 1;
    next();
  }
}

/** Questions on their way at once: a script may tell a million, and what waits is in memory. */
const openMax = 200;

/** Runs a script from answer to answer. */
export async function drive<Result>(
  line: Line,
  script: Script<Result>,
  turns: Turns | null = null,
): Promise<Result> {
  let step = script.next();
  while (!step.done) {
    const { text, values, isTold, isAlone } = step.value;
    let result: QueryResult = { rows: [], changes: 0 };
    try {
      if (isAlone) await turns?.alone();
      else if (isTold) {
        line.tell(text, values);
        if (turns === null && line.open >= openMax) await line.allAnswered();
      } else {
        const { rows, rowCount } = await line.ask(text, values);
        result = { rows, changes: rowCount ?? 0 };
      }
    } catch (error) {
      step = script.throw(error);
      continue;
    }
    step = script.next(result);
  }
  return step.value;
}
