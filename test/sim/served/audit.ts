import type { ItemState } from "../../../src/core/item.js";
import { type Credits, plus, toNumber } from "../../../src/core/money.js";
import { fromMicro, type TaskRecord } from "../../../src/service/state/state.js";
import type { MemoryDisk } from "../memory-disk.js";
import { userId } from "../service.js";
import { Violation } from "../watch.js";
import type { ServedHost } from "./host.js";
import { tasksOf } from "./rules.js";
import { madeBy, type Upstream } from "./upstream.js";

interface ServedBooks {
  /** What the command reports of each item. */
  listed: ReadonlyMap<string, ItemState>;
  upstream: Upstream;
  host: ServedHost;
  disk: MemoryDisk;
  /** Of the job's files. */
  folder: string;
  /** Credits at the beginning. */
  balance: number;
  /** Of each run, as the command tells its user. */
  spendings: readonly { charged: Credits; pending: Credits }[];
}

/** Judges a finished run by the providers' books, the service's account and the archive. */
export function auditServed(books: ServedBooks): void {
  const { records } = books.host;
  if (records === null) throw new Violation("liveness", "the service is down");
  const tasks = tasksOf(records);
  for (const [item, state] of books.listed) checkItem(item, state, tasks);
  checkNothingLost(tasks, books);
  const spent = sum(tasks.filter(({ outcome }) => outcome !== "failed").map(({ costMicro }) => costMicro));
  const told = toNumber(plus(...books.spendings.flatMap(({ charged, pending }) => [charged, pending])));
  if (told !== fromMicro(spent))
    throw new Violation(
      "P8",
      `the command says ${told} credits are spent, the service has ${fromMicro(spent)}`,
    );
  const left = records.state.account(userId)?.balanceMicro ?? 0;
  const due = tasks.filter(({ outcome, refunded }) => outcome === "failed" && !refunded);
  const all = fromMicro(left + spent + sum(due.map(({ costMicro }) => costMicro)));
  if (all !== books.balance)
    throw new Violation("P8", `of ${books.balance} credits, ${all} are accounted for`);
}

function checkItem(item: string, state: ItemState, tasks: readonly TaskRecord[]): void {
  const own = tasks.filter(({ input }) => input["prompt"] === item);
  const kept = own.filter(({ outcome }) => outcome !== "failed");
  if (kept.length > 1) throw new Violation("P2", `${item} has ${kept.length} tasks that are charged`);
  if (state !== "archived" && state !== "failed") throw new Violation("P5", `${item} is left ${state}`);
  const isMade = kept[0]?.outcome === "completed";
  if (isMade !== (state === "archived"))
    throw new Violation("audit", `${item} is ${state}, and its task ${kept[0]?.outcome ?? "has failed"}`);
}

/** P4: what a provider has made and nobody has let go is in the archive, once. */
function checkNothingLost(tasks: readonly TaskRecord[], { upstream, disk, folder }: ServedBooks): void {
  const files = disk.below(folder).filter((path) => path.endsWith(".wav"));
  const contents = files.map((path) => disk.content(path)?.toString("latin1") ?? "");
  const completed = tasks.filter(({ outcome }) => outcome === "completed");
  for (const { id, input } of completed) {
    const made = upstream.executions.filter((one) => one.jobId === id && one.isTold && !one.isLetGo);
    const found = made.filter((one) => contents.includes(madeBy(one).toString("latin1")));
    if (found.length !== 1)
      throw new Violation(
        "P4",
        `what was made of ${input["prompt"]} is in the archive ${found.length} times`,
      );
  }
  if (files.length !== completed.length)
    throw new Violation("P4", `${files.length} files are there of ${completed.length} tasks`);
  const isDone = new Set(completed.map(({ id }) => id));
  for (const { way, end, isLetGo, jobId, prompt } of upstream.executions)
    if (way !== "program" && end === "made" && !isLetGo && !isDone.has(jobId))
      throw new Violation("P4", `what was made of ${prompt} is lost: it was ${jobId}`);
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
