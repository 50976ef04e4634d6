import PQueue from "p-queue";
import { plus } from "../core/money.js";
import { type Decision, type Due, hasWork, type NextStep, next, type View } from "../core/next/next.js";
import type { Quota } from "../core/quota/quota.js";
import { isOpen, type StepKind, type Stop } from "../core/stop.js";
import { readBalanceWhenDue, recheckBalance } from "./balance.js";
import { Debt, stopForLongWait } from "./debt.js";
import { fetchOutputs } from "./fetch.js";
import { recall } from "./learn.js";
import { pollTask } from "./look.js";
import { recover } from "./recover.js";
import type { Session } from "./session.js";
import type { SubmitPause } from "./settling.js";
import { submit } from "./submit.js";
import { firstHeads, reachesAll } from "./waiting.js";
import { OverdueWait, WakeSignal } from "./waits.js";

/** Where a run stands at one turn of its loop. */
export interface Progress {
  counts: View["counts"];
  quota: Quota;
  waiting: Decision["waiting"];
  /** Until when nothing happens by itself (UTC ms), when something is waited for. */
  until: number | null;
  stops: readonly Stop[];
  diskTrouble: string | null;
  /** What is to be found out before anything else is submitted. */
  hold: SubmitPause | null;
}

export function progressOf(
  { stops, refusedByDisk: diskTrouble, settling }: Session,
  { counts, quota }: View,
  { waiting, wakeAt }: Decision,
): Progress {
  const submits = counts.planned > 0 && isOpen("submit", stops);
  return {
    counts,
    quota,
    waiting,
    stops,
    diskTrouble,
    until: waiting === null ? null : wakeAt,
    hold: submits ? settling.hold : null,
  };
}

/** What a run can be told while it goes on. */
export interface Control {
  /** No new requests: answers in flight are awaited, downloads get a moment. */
  interrupt: AbortSignal;
  onProgress(progress: Progress): void;
  /** Carries out what was ordered meanwhile, at an instant at which no item but the busy ones is being worked on. */
  attend?(busy: ReadonlySet<number>): Promise<void>;
}

/** Milliseconds that downloads are given to finish after an interruption. */
const downloadGraceMs = 5_000;
/** The longest sleep without a look around (ms): other processes change what the account may do. */
const napMsMax = 900_000;
/** The number of requests is saved before a longer sleep than this (ms), else no more often: each time costs the disk a sync. */
const requestsMs = 60_000;
/** Sleep after another process was quicker (ms). */
const contendedMs = 1_000;

/**
 * The loop, whole: load what is due, ask `next`, start its steps, sleep until it said or until a step ends. Steps save
 * what they intend before they act and what came of it after; so the loop may end anywhere.
 */
export async function runLoop(session: Session, control: Control): Promise<void> {
  const loop = new Loop(session, control);
  await recover(session);
  await session.settling.judge();
  await recall(session);
  await loop.go();
}

class Loop {
  private readonly busy = new Map<number, StepKind>();
  private readonly requests: PQueue;
  private readonly downloads: PQueue;
  private readonly cutDownloads = new AbortController();
  private readonly bell = new WakeSignal();
  private crash: unknown;
  /** What is paid for and due has been begun with: it goes before what is unknown, and that before what is bought. */
  private collects = false;
  private readonly overdueWait: OverdueWait;
  private savedRequests: { number: number; at: number };
  private readonly debt: Debt;

  constructor(
    private readonly session: Session,
    private readonly control: Control,
  ) {
    const { lanes, polls, downloads } = session.settings;
    this.savedRequests = { number: session.requests, at: Number.NEGATIVE_INFINITY };
    this.debt = new Debt(session);
    this.overdueWait = new OverdueWait(session.ports.clock, session.settings.overdueWaitMs);
    this.requests = new PQueue({ concurrency: lanes + polls });
    this.downloads = new PQueue({ concurrency: downloads });
  }

  async go(): Promise<void> {
    const onInterrupt = () => this.bell.ring();
    this.control.interrupt.addEventListener("abort", onInterrupt);
    this.session.wake = onInterrupt;
    try {
      while (this.crash === undefined) {
        if (this.control.interrupt.aborted) this.session.stop("interrupted", "interrupted");
        this.bell.listen();
        const turnAt = this.session.ports.clock.now();
        await this.control.attend?.(new Set(this.busy.keys()));
        await readBalanceWhenDue(this.session);
        if (this.collects) await this.settleUnknowns();
        const view = await this.view();
        const decision = next(view);
        this.control.onProgress(progressOf(this.session, view, decision));
        if (this.isCapped(view, decision) && (await recheckBalance(this.session, view.committed, view.quota)))
          continue;
        if (this.addStops(view, decision)) continue;
        if (this.session.caps.wait(decision.cappedModels, view.modelBudgets ?? new Map())) continue;
        if (decision.done && (await this.fetchMissing())) continue;
        if (decision.done || this.session.stopped("interrupted")) break;
        const began = await this.beginAll(decision.steps);
        if (this.collects) await this.nap(began ? decision.wakeAt : view.now + contendedMs, turnAt);
        this.collects = true;
      }
    } finally {
      this.control.interrupt.removeEventListener("abort", onInterrupt);
      await this.settle();
    }
    if (this.crash !== undefined) throw this.crash;
  }

  private async view(): Promise<View> {
    const { store, accounts, accountId, service, clock } = this.session.ports;
    const { run, lanes, polls, downloads, profile } = this.session.settings;
    const modelBudgets = await this.session.caps.rooms(store, run.id);
    const { parked, paces } = this.session;
    const limit = this.busy.size + lanes + polls + downloads;
    const pace = (group: string) => paces.of(group);
    const waiting = await this.session.waiting.groups(parked);
    const spending = await store.spending(run.id);
    const committed = plus(spending.charged, spending.pending);
    await this.session.caps.lookAtKept(accounts, accountId, committed);
    await this.session.caps.lookAtDay(accounts, accountId, { now: service.time.now, committed });
    if (this.session.caps.takeBack(committed)) this.session.liftCaps();
    const inOrder =
      this.session.settings.inOrder ||
      modelBudgets.size > 0 ||
      !reachesAll(waiting, committed, this.session.caps.cap);
    const heads = inOrder ? null : firstHeads(waiting, pace, limit);
    const due = await store.due(run.id, limit, parked, heads);
    const quota = await accounts.quota(accountId, this.session.claimant);
    this.debt.is(due.counts);
    // Nothing waits for the disk any more, so no save would ever tell that it is well again.
    if (due.counts.ready === 0) this.session.diskTrouble.over();
    await this.session.diskTrouble.look(this.buys(due.counts));
    const busy = (kind: StepKind) => [...this.busy.values()].filter((value) => value === kind).length;
    const now = clock.now();
    const silent = Math.max(quota.blockedUntil ?? 0, this.session.reach.silentUntil);
    return {
      now,
      ...due,
      planned: this.session.prices.allowed(due.planned),
      waiting,
      inOrder,
      pace,
      profile,
      busy: new Set(this.busy.keys()),
      quota: { ...quota, blockedUntil: silent > now ? silent : null },
      holdsBack: !this.session.mayBuy || this.session.settling.holdsBack,
      free: {
        submit: lanes - busy("submit"),
        poll: polls - busy("poll"),
        download: downloads - busy("download"),
      },
      stops: this.session.stops,
      committed,
      cap: this.session.caps.cap,
      modelBudgets,
      awaitsOverdue: this.overdueWait.keepsOpen(due.counts.overdue, this.hasOthers(due)),
      awaitsSettling: !this.session.stopped("unread") && this.session.settling.keepsOpen(quota, now),
    };
  }

  /** Whether anything but overdue tasks keeps the run open. */
  private hasOthers(due: Due): boolean {
    return due.counts.submitting > 0 || hasWork({ ...due, stops: this.session.stops });
  }

  private buys(counts: View["counts"]): boolean {
    return counts.planned > 0 && isOpen("submit", this.session.stops);
  }

  /** Turns what only the whole picture shows into stops. Returns true when there is a new one. */
  private addStops(view: View, decision: Decision): boolean {
    const { session } = this;
    const before = session.stops.length;
    if (session.settings.deadline !== null && view.now >= session.settings.deadline) {
      session.stop("time", "the time that --until or --max-duration allows is over");
    }
    stopForLongWait(session, view, decision);
    if (this.buys(view.counts) || view.awaitsSettling) session.lookAtCounters();
    if (this.isCapped(view, decision)) {
      const { kind, message } = session.caps.reached(view.committed);
      session.stop(kind, message);
    }
    return session.stops.length > before;
  }

  /**
   * Whether a cap ends submitting. A task that fails and an unknown that was not charged free their price, and what
   * waits for a place may still fit: so it does only when nothing is open and nothing waits.
   */
  private isCapped({ counts, busy, awaitsSettling }: View, { capped, steps, waiting }: Decision): boolean {
    const open = counts.submitting + counts.processing + busy.size + steps.length;
    return capped && open === 0 && !awaitsSettling && waiting === null;
  }

  /** Reads the key's counters when that can settle something and no paid request of ours is under way. */
  private async settleUnknowns(): Promise<void> {
    const { session } = this;
    const submitting = [...this.busy.values()].includes("submit");
    const isSilent = session.reach.silentUntil > session.ports.clock.now();
    const closed = !isOpen("poll", session.stops) || isSilent;
    if (!submitting && !closed) session.requests += await session.settling.step();
  }

  /** Starts the steps in order; false when another process took the place in the quota that one was to have. */
  private async beginAll(steps: readonly NextStep[]): Promise<boolean> {
    for (const step of steps) if (!(await this.begin(step))) return false;
    return true;
  }

  /** Starts a step if it gets what it needs: a submit a lane, a request a place in the quota. */
  private async begin(step: NextStep): Promise<boolean> {
    if (step.do === "download") {
      const { signal } = this.cutDownloads;
      this.start(this.downloads, step, 0, () => fetchOutputs(this.session, step.item, signal));
      return true;
    }
    const { accounts, accountId, fingerprint, lanes } = this.session.ports;
    const caller = { accountId, fingerprint };
    const lane = step.do === "submit" ? lanes.take() : null;
    if (step.do === "submit" && lane === null) return false;
    const { ticket } =
      lane === null
        ? await accounts.reserve(caller, "task")
        : await accounts.reserve(caller, "generate", this.debt.withOneMore);
    if (!ticket) {
      lane?.release();
      return false;
    }
    if (lane !== null) this.debt.grew();
    if (lane === null) this.start(this.requests, step, 1, () => pollTask(this.session, step.item, ticket));
    else {
      const sent = () => submit(this.session, step.item, ticket).finally(() => lane.release());
      this.start(this.requests, step, 0, sent);
    }
    return true;
  }

  private start(queue: PQueue, step: NextStep, priority: number, work: () => Promise<void>): void {
    this.busy.set(step.item, step.do);
    void queue
      .add(work, { priority })
      .catch((error: unknown) => {
        this.crash ??= error;
      })
      .finally(() => {
        this.busy.delete(step.item);
        this.bell.ring();
      });
  }

  /** Whether saved files are gone and have to be fetched again. */
  private async fetchMissing(): Promise<boolean> {
    const { saved, ports, settings } = this.session;
    return (await saved.fetchMissing(ports, settings.run)) > 0;
  }

  /** `turnAt` is when this turn began to look around: what was due by then it has seen. */
  private async nap(wakeAt: number | null, turnAt: number): Promise<void> {
    const { clock } = this.session.ports;
    if (this.busy.size === 0) await this.debt.tell();
    const { balanceLook, receiptsRetry, diskTrouble, settings, settling, reach } = this.session;
    // What has become due while the turn was deciding nobody has seen; what was due before stays past.
    const others = [
      balanceLook?.until ?? null,
      receiptsRetry?.until ?? null,
      settings.deadline,
      diskTrouble.wakeAt,
      settling.wakeAt,
      reach.silentUntil,
      this.overdueWait.until,
    ].filter((at) => at !== null && at > turnAt) as number[];
    const now = clock.now();
    const at = Math.max(now + 1, Math.min(now + napMsMax, ...(wakeAt === null ? [] : [wakeAt]), ...others));
    const isLong = at - now > requestsMs || clock.monotonic() - this.savedRequests.at >= requestsMs;
    if (this.busy.size === 0 && isLong) await this.saveRequests();
    await this.bell.until(clock, at);
  }

  /** Waits for what is under way: answers to the end, downloads for a moment when the run was interrupted. */
  private async settle(): Promise<void> {
    const { clock } = this.session.ports;
    const over = new AbortController();
    if (this.session.stopped("interrupted") || this.crash !== undefined) {
      void clock.sleep(downloadGraceMs, over.signal).then(() => this.cutDownloads.abort());
    }
    await Promise.all([this.requests.onIdle(), this.downloads.onIdle()]);
    over.abort("settled");
    await this.saveRequests();
    this.debt.is(await this.session.ports.store.counts(this.session.settings.run.id));
    await this.debt.tell();
  }

  private async saveRequests(): Promise<void> {
    const { requests, ports, settings } = this.session;
    if (requests !== this.savedRequests.number) await ports.store.setRun(settings.run.id, { requests });
    this.savedRequests = { number: requests, at: ports.clock.monotonic() };
  }
}
