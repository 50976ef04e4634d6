import { createHash } from "node:crypto";
import type { Clock } from "../../clock.js";
import { defaultReconcile } from "../../core/charges/readings.js";
import type { ItemEvent, ItemState } from "../../core/item.js";
import { credits, noCredits } from "../../core/money.js";
import type { RunOptions } from "../../core/next/options.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { Item, Run, RunStart, Store } from "../../core/ports/store.js";
import { concludeItem } from "../../run/conclude.js";
import type { Conclusion } from "../../run/receipts/conclusion.js";
import type { IntentLine } from "../../run/receipts/receipt-lines.js";
import { isCreatedBy } from "../orders/resolve.js";
import type { BookVerdicts } from "../workspace/book-verdicts.js";
import type { ArchivedLine } from "./archive-history.js";
import type { FoundItem } from "./rebuild-items.js";

/** Stands still at the time of what is being written down again. */
export class PastClock implements Clock {
  private time = 0;

  constructor(private readonly clock: Clock) {}

  at(time: string | null): void {
    const known = time === null ? Number.NaN : Date.parse(time);
    this.time = Number.isNaN(known) ? this.clock.now() : known;
  }

  now(): number {
    return this.time;
  }

  monotonic(): number {
    return this.clock.monotonic();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.clock.sleep(ms, signal);
  }
}

/** Where a job's files go and whom it belongs to, where no receipt says so. */
export interface Unsaid {
  origin: string;
  accountId: string;
  outFolder: string;
  manifestFolder: string;
  sandbox: boolean;
}

/** What receipts and archive do not say. */
export interface Beside {
  unsaid: Unsaid;
  verdicts: Pick<BookVerdicts, "on">;
}

/** Writes the items down again, step by step as they went: a run for each job, edition, place of the files and account. */
export async function refill(
  store: Store,
  clock: PastClock,
  items: readonly FoundItem[],
  { unsaid, verdicts }: Beside,
): Promise<void> {
  const expected = expectedOutputs(items);
  const runs = new Map<string, FoundItem[]>();
  for (const found of items) {
    const of = JSON.stringify([
      found.job,
      found.item.edition,
      placeOf(found, unsaid),
      accountOf(found, unsaid),
    ]);
    const group = runs.get(of) ?? [];
    runs.set(of, group);
    group.push(found);
  }
  const owing: number[] = [];
  for (const group of runs.values()) {
    const run = await refillRun(store, clock, group, { unsaid, verdicts, expected });
    if (run.owes) owing.push(run.id);
  }
  // Not before all are there: a run that is open would be gone on with by the next one of its edition.
  for (const id of owing) await store.setRun(id, { state: "interrupted" });
}

/** The output folder that has an item's newest file; where it has none, the one that it was asked for. */
function placeOf({ attempts, outputs, intent }: FoundItem, { outFolder }: Unsaid): string {
  const newest = attempts.get(Math.max(...attempts.keys()))?.answer?.conclusion.outcome.taskId;
  const output = outputs.find(({ task }) => task === newest) ?? outputs.at(-1);
  return output?.outFolder ?? intent?.out ?? outFolder;
}

/** Who asked for an item: a run's tasks are all of one user, or nobody could collect them. */
function accountOf({ intent }: FoundItem, unsaid: Unsaid): Pick<RunStart, "origin" | "accountId"> {
  return { origin: intent?.origin ?? unsaid.origin, accountId: intent?.account ?? unsaid.accountId };
}

type Context = Beside & { expected: ReadonlyMap<string, number> };

async function refillRun(
  store: Store,
  clock: PastClock,
  group: readonly FoundItem[],
  { unsaid, verdicts, expected }: Context,
): Promise<Run> {
  const [first] = group;
  if (!first) throw new Error("a run of no items");
  clock.at(group.map((found) => firstTime(found)).toSorted()[0] ?? null);
  const run = await store.startRun((await store.job(first.job)).id, startOf(first, group, unsaid));
  await store.add(
    run.id,
    group.map(({ item }) => item),
  );
  const made = new Map((await store.items(run.id)).map((item) => [item.key, item]));
  for (const found of group) {
    const item = made.get(found.item.key);
    if (!item) throw new Error(`the item ${found.item.key} was not made`);
    const refilling = new Refilling(store, clock, verdicts, run.id, item);
    await refilling.attempts(found);
    await refilling.archive(found, expected.get(groupOf(found)) ?? 1);
  }
  clock.at(null);
  // What was refused waits for its manifest: nothing is bought that nobody has just agreed to.
  await store.cancelRun(run.id, new Set());
  await store.setRun(run.id, { state: "finished", endedAt: clock.now() });
  return (await store.run(run.id)) ?? run;
}

class Refilling {
  constructor(
    private readonly store: Store,
    private readonly clock: PastClock,
    private readonly verdicts: Beside["verdicts"],
    private readonly runId: number,
    private readonly item: Item,
  ) {}

  /** Every attempt has its number again; one that nobody knows any more counts as unanswered. */
  async attempts({ attempts }: FoundItem): Promise<void> {
    const last = Math.max(0, ...attempts.keys());
    for (let number = 1; number <= last; number++) {
      const { intent = null, answer = null } = attempts.get(number) ?? {};
      this.clock.at(intent?.at ?? answer?.at ?? null);
      await this.intend(intent);
      if (answer) this.clock.at(answer.at);
      await this.conclude(answer?.conclusion ?? unanswered);
    }
  }

  /** What the archive has of its outputs, when that is all of them. */
  async archive({ outputs }: FoundItem, expected: number): Promise<void> {
    const { store, clock, item } = this;
    const attempt = await store.attempt(item.id);
    const task = outputs.find((line) => line.task === attempt?.taskId)?.task ?? outputs.at(-1)?.task;
    const lines = outputs.filter((line) => line.task === task).toSorted((a, b) => a.output - b.output);
    const [line] = lines;
    if (!line || !isWhole(lines, expected)) return;
    if (line.task === "") return this.supply(line);
    const isNewest = line.task === attempt?.taskId;
    // What an earlier request led to was given up when a newer one was made.
    if (!isNewest && (await store.find(line.task)).length > 0) return;
    clock.at(line.completed ?? line.saved ?? null);
    if (!isNewest) await this.takeTask(line, attempt);
    await store.complete(item.id, {
      // Long expired, like any address on record.
      fetchBy: 0,
      urls: lines.map(({ output }) => `https://expired.invalid/${task}/${output}`),
      charged: line.credits === null ? null : credits(line.credits),
      createdAt: line.created ?? "",
      completedAt: line.completed,
    });
    for (const { output, file, bytes, sha256, mime, check } of lines) {
      await store.saved(item.id, output, { file, bytes, sha256, mime, check });
    }
  }

  /** The archive knows of a task that the receipts do not: adopted by a person for a request without an answer, or lost. */
  private async takeTask(line: ArchivedLine, attempt: Attempt | null): Promise<void> {
    const { store, item } = this;
    const taskId = line.task;
    const charged = line.credits === null ? null : credits(line.credits);
    const isOpen = attempt !== null && (await store.item(item.id)).state === "unknown";
    if (isOpen && isCreatedBy(attempt, line.created ?? "")) {
      await store.apply(item.id, "undecided", {});
      return store.adopt(item.id, { taskId, charged: charged ?? item.price });
    }
    await this.intend(null);
    await this.conclude({
      event: "accepted",
      outcome: { taskId, ...(charged === null ? {} : { charged }) },
    });
  }

  /** A file that was made elsewhere, for an item that nothing was asked for. */
  private async supply({ file, bytes, sha256, mime, check, saved }: ArchivedLine): Promise<void> {
    const { store, clock, item, runId } = this;
    if (!["planned", "failed"].includes((await store.item(item.id)).state)) return;
    clock.at(saved);
    await store.supply(runId, item, { file, bytes, sha256, mime, check });
  }

  private async intend(intent: IntentLine | null): Promise<void> {
    await this.settle();
    const { state } = await this.store.item(this.item.id);
    for (const event of backToPlanned[state] ?? []) await this.store.apply(this.item.id, event, {});
    await this.store.intend(this.item.id, {
      runId: this.runId,
      sentAt: sentAt(intent) ?? this.clock.now(),
      bodySha256:
        intent === null ? "" : createHash("sha256").update(JSON.stringify(intent.request)).digest("hex"),
      bookEntry: intent?.bookEntry ?? null,
    });
  }

  /**
   * A request without an answer that another one followed was given up as lost, or there was proof that it was not
   * charged. Without its verdict it would count neither against what may be paid again by itself nor as lost.
   */
  private async settle(): Promise<void> {
    const { store, item } = this;
    const attempt = await store.attempt(item.id);
    if (attempt === null || (await store.item(item.id)).state !== "unknown") return;
    await store.giveVerdict(item.id, await this.verdicts.on(attempt.bookEntry), "submitted again");
  }

  private async conclude(conclusion: Conclusion): Promise<void> {
    const attempt = await this.store.attempt(this.item.id);
    if (!attempt) throw new Error(`item ${this.item.id} has no attempt`);
    await concludeItem(this.store, attempt, conclusion);
  }
}

/** What must have happened before an item was submitted again. */
const backToPlanned: Readonly<Partial<Record<ItemState, readonly ItemEvent[]>>> = {
  failed: ["retry"],
  processing: ["task_failed", "retry"],
  held: ["resubmit"],
};

/** When a request was sent, by the service's clock; null where its line does not tell. */
function sentAt(intent: IntentLine | null): number | null {
  const at = Date.parse(intent?.sentAt ?? "");
  return Number.isNaN(at) ? null : at;
}

const unanswered: Conclusion = {
  event: "unanswered",
  outcome: { message: "the receipts know no answer" },
};

/** Outputs from 1 on, and as many as other tasks of its kind have. */
function isWhole(lines: readonly ArchivedLine[], expected: number): boolean {
  return lines.length >= expected && lines.every(({ output }, index) => output === index + 1);
}

/** The most outputs that a task of a model with its params has in the archive. */
function expectedOutputs(items: readonly FoundItem[]): Map<string, number> {
  const most = new Map<string, number>();
  for (const found of items) {
    const numbers = found.outputs.map(({ output }) => output);
    most.set(groupOf(found), Math.max(most.get(groupOf(found)) ?? 1, ...numbers));
  }
  return most;
}

function groupOf({ item: { model, params } }: FoundItem): string {
  return JSON.stringify([model, params]);
}

function firstTime({ attempts, outputs }: FoundItem): string {
  const [first] = attempts.values();
  return first?.intent?.at ?? first?.answer?.at ?? outputs[0]?.saved ?? "";
}

function startOf(found: FoundItem, group: readonly FoundItem[], unsaid: Unsaid): RunStart {
  const intent = group.find(({ intent }) => intent)?.intent;
  return {
    manifest: intent?.manifest ?? `${unsaid.manifestFolder}/${found.job}.csv`,
    ...accountOf(found, unsaid),
    edition: found.item.edition,
    outFolder: placeOf(found, unsaid),
    options: { ...plainOptions, sandbox: unsaid.sandbox },
  };
}

/** Nothing is bought under a cap that nobody remembers: `resume` collects, and the manifest run again says anew. */
const plainOptions: Omit<RunOptions, "sandbox"> = {
  maxCredits: noCredits,
  maxFailures: null,
  retries: 0,
  downloads: 4,
  onInsufficient: "stop",
  onDailyLimit: "stop",
  until: null,
  maxDurationMs: null,
  overdueWaitMs: 0,
  settle: "stop",
  ...defaultReconcile,
  unsettledMax: 5,
  orphanCredits: noCredits,
};
