import { setMaxListeners } from "node:events";
import PQueue from "p-queue";
import type { WakeSignal } from "../clock.js";
import { modelOfGroup } from "../core/identity.js";
import type { Credits } from "../core/money.js";
import { type Decision, type Due, hasWork, type NextStep, next, type View } from "../core/next/next.js";
import { LanesInUse } from "../core/pace/lanes.js";
import { DurationEstimates } from "../core/pace/pace.js";
import type { Quota } from "../core/quota/quota.js";
import type { Reason } from "../core/reason.js";
import { isOpen, type StepKind, type Stop } from "../core/stop.js";
import { recover } from "./conclude.js";
import { Fetching } from "./fetch.js";
import type { Answer, Gate, Terms } from "./gate/gate.js";
import { recall } from "./learn.js";
import { Polling } from "./poll.js";
import type { Session } from "./ports.js";
import { Repeats } from "./repeat.js";
import { submit } from "./submit.js";
import { Turns } from "./turns.js";
import { claimantOf, coversAll, Debt, firstHeads, OverdueWait, WaitingList } from "./waiting.js";

/** Where a run stands at one turn of its loop. */
export interface Progress {
  counts: View["counts"];
  quota: Quota;
  /** Why nothing is bought or sent now; null if something may be. */
  reason: Reason | null;
  stops: readonly Stop[];
  /** Credits that the run has spent or may have spent, and the most that its caps allow now. */
  spent: Credits;
  cap: Credits | null;
  /**
   * How long the run is expected to take: as it was planned, or as a run knows by now whose providers do so many jobs at once; null
   * for a resumed run.
   */
  forecastMs: number | null;
}

/** How a run is watched and steered while it is in progress. */
export interface Control {
  /** No new requests: answers in flight are awaited, downloads get a moment. */
  interrupt: AbortSignal;
  onProgress(progress: Progress): void;
  /** Carries out the orders that have come in. Only items in `busy` are being worked on at this instant. */
  attend?(busy: ReadonlySet<number>): Promise<void>;
}

/** Milliseconds that downloads are given to finish after an interruption. */
const downloadGraceMs = 5_000;
/** The longest sleep (ms): other processes change what the account may do. */
const sleepMsMax = 900_000;
/**
 * The number of requests is saved before a sleep that is longer than this (ms), and otherwise no more often than this,
 * because each save costs a sync.
 */
const requestsMs = 60_000;
/** Sleep after another process took the slot in the quota (ms). */
const contendedMs = 1_000;
/**
 * After a turn the loop rests for this many times as long as the turn took to decide, but never longer than
 * `restMsMax`. Whatever ends during the rest shares the next turn.
 */
const restTimes = 9;
const restMsMax = 50;

/** What a turn has read. */
interface Loaded extends Due {
  /** The items that were being worked on at that time: they may have changed since. */
  busyThen: readonly number[];
  waiting: View["waiting"];
  inOrder: boolean;
  quota: Quota;
  awaitsOverdue: boolean;
}

/**
 * Carries out a run until nothing is left to do or something stops it. Each step saves its intent before it acts, and
 * the outcome after, so the loop may end at any point.
 */
export async function runLoop(session: Session, control: Control): Promise<void> {
  const { clock, service } = session.ports;
  const paces = new DurationEstimates(service.announced().providers);
  const turns = new Turns(clock, () => service.announced().providers);
  const { id, options } = session.settings.run;
  await recover(session.ports, id);
  // The loop exists before the first judgement, so that requests it may repeat get no verdict.
  const loop = new Loop(session, control, { paces, turns });
  await session.gate.settling.judge();
  await session.gate.verdicts.resubmitHeld();
  await session.ports.store.publishAgain(id);
  await session.ports.store.canaries(id, options.canary === true);
  await recall(session, paces, turns);
  await session.chains.begin();
  await loop.go();
}

class Loop {
  private readonly gate: Gate;
  private readonly paces: DurationEstimates;
  private readonly turns: Turns;
  private readonly busy = new Map<number, StepKind>();
  private readonly requests: PQueue;
  private readonly downloads: PQueue;
  private readonly cutDownloads = new AbortController();
  private readonly bell: WakeSignal;
  private readonly waiting: WaitingList;
  private readonly polling: Polling;
  private readonly fetching: Fetching;
  private readonly overdueWait: OverdueWait;
  private readonly debt: Debt;
  private readonly lanesInUse: LanesInUse;
  private readonly repeats: Repeats;
  private crash: unknown;
  /** All tasks at the service, as of this turn. */
  private open: Due["tasks"] = [];
  /** In its first turn a run only collects what is paid for. Then it settles unanswered requests. It buys last. */
  private isFirstTurn = true;
  /** An unanswered request may yet get its answer by being repeated. */
  private awaitsRepeats = false;
  private savedRequests: { number: number; at: number };

  constructor(
    private readonly session: Session,
    private readonly control: Control,
    { paces, turns }: { paces: DurationEstimates; turns: Turns },
  ) {
    this.paces = paces;
    this.turns = turns;
    const { ports, settings, gate } = session;
    const { run, lanes, polls } = settings;
    // Every download in progress listens to it.
    setMaxListeners(0, this.cutDownloads.signal);
    this.gate = gate;
    this.bell = ports.bell;
    this.savedRequests = { number: gate.requests, at: Number.NEGATIVE_INFINITY };
    this.waiting = new WaitingList(ports, run.id);
    this.repeats = new Repeats(
      session,
      () => this.debt,
      (answer) => this.lanesInUse.answered(answer),
    );
    gate.verdicts.withholdWhile((item, attempt) => this.repeats.mayRepeatLater(item, attempt));
    this.polling = new Polling(session, paces, turns);
    this.fetching = new Fetching(session);
    this.debt = new Debt(ports, claimantOf(session));
    this.overdueWait = new OverdueWait(ports.service.time, run.options.overdueWaitMs);
    this.lanesInUse = new LanesInUse(lanes, settings.savesLanes);
    this.requests = new PQueue({ concurrency: lanes + polls });
    // Workers elsewhere have limits of their own.
    this.downloads = new PQueue({
      concurrency: ports.offered ? Number.POSITIVE_INFINITY : run.options.downloads,
    });
  }

  /** The loop: load what is due, ask the gate and `next`, start the steps, sleep until a time or until a step ends. */
  async go(): Promise<void> {
    const { gate, bell } = this;
    const onInterrupt = () => bell.ring();
    this.control.interrupt.addEventListener("abort", onInterrupt);
    this.awaitsRepeats = gate.verdicts.awaitsRepeats;
    try {
      while (this.crash === undefined) {
        const turnAt = await this.beginTurn();
        const elapsedMs = this.stopwatch();
        const terms = await gate.terms(this.beginning());
        const loaded = await this.load(terms);
        const answer = await gate.mayBuy(loaded.counts);
        const view = this.view(terms, loaded, answer);
        const decision = next(view);
        const decidedMs = elapsedMs();
        this.control.onProgress(this.progress(view, decision));
        if (await gate.reconsider(view, decision)) continue;
        if (decision.done && (await this.fetching.fetchMissing()) > 0) continue;
        if (decision.done && (await this.session.chains.begin()) > 0) continue;
        if (decision.done || gate.stopped("interrupted")) break;
        const began = await this.beginAll(decision.steps, view.counts);
        if (!this.isFirstTurn) await this.sleep(began ? decision.wakeAt : view.now + contendedMs, turnAt);
        this.isFirstTurn = false;
        await this.rest(restTimes * decidedMs - elapsedMs());
      }
    } catch (error) {
      this.crash ??= error;
    } finally {
      this.control.interrupt.removeEventListener("abort", onInterrupt);
      await this.end();
    }
    if (this.crash !== undefined) throw this.crash;
  }

  /** Carries out orders and makes the requests that the gate waits for. Returns when the turn began (UTC ms). */
  private async beginTurn(): Promise<number> {
    const { gate, control, busy } = this;
    if (control.interrupt.aborted) gate.stop("interrupted", "interrupted");
    this.bell.listen();
    const turnAt = this.session.ports.clock.now();
    await control.attend?.(new Set(busy.keys()));
    await gate.readBalance();
    if (!this.isFirstTurn) {
      this.awaitsRepeats = await this.repeatUnknowns();
      if (!this.awaitsRepeats) await gate.settleUnknowns(this.count("submit") > 0);
    }
    return turnAt;
  }

  /** Sends unanswered requests again, if the service gives them the same task. Returns whether an answer may still come so. */
  private async repeatUnknowns(): Promise<boolean> {
    const { gate, repeats } = this;
    if (gate.settling.unsettled === 0 && !gate.verdicts.awaitsRepeats) return false;
    const isSilent = gate.reach.silentUntil > this.session.ports.clock.now();
    if (isSilent || !isOpen("poll", gate.stops)) return false;
    const { isWaiting, isNews } = await repeats.step();
    // Settling has waited for requests that may not be repeated after all, such as when their price is known to have risen.
    if ((isNews || gate.verdicts.awaitsRepeats) && !isWaiting) await gate.settling.judge();
    return isWaiting;
  }

  private async load({ parked, committed, cap, modelBudgets }: Terms): Promise<Loaded> {
    const { ports, settings } = this.session;
    const { run, lanes, polls } = settings;
    const busyThen = [...this.busy.keys()];
    const limit = this.busy.size + lanes + polls + this.downloadsMax;
    const waiting = await this.waiting.groups(parked);
    const inOrder = settings.inOrder || modelBudgets.size > 0 || !coversAll(waiting, committed, cap);
    const heads = inOrder ? null : firstHeads(waiting, (group) => this.paces.of(group), limit);
    const due = await ports.store.due(run.id, limit, parked, heads, this.beginning());
    const quota = await ports.accounts.quota(ports.accountId, claimantOf(this.session));
    this.lanesInUse.see(due.counts.planned);
    const { stops } = this.gate;
    const { renewals } = this.session.chains;
    const hasOthers = due.counts.submitting > 0 || hasWork({ ...due, renewals, stops });
    const awaitsOverdue = this.overdueWait.keepsOpen(due.counts.overdue, hasOthers);
    this.open = due.tasks;
    const tasks = this.turns.worthPolling(due.tasks);
    return { ...due, tasks, busyThen, waiting, inOrder, quota, awaitsOverdue };
  }

  /** The turn's whole picture. It changes nothing. */
  private view({ committed, cap, modelBudgets }: Terms, loaded: Loaded, { yes }: Answer): View {
    const { gate, busy, session } = this;
    const { polls, run } = session.settings;
    const now = session.ports.clock.now();
    const silent = Math.max(loaded.quota.blockedUntil ?? 0, gate.reach.silentUntil);
    const quota = { ...loaded.quota, blockedUntil: silent > now ? silent : null };
    return {
      ...loaded,
      now,
      planned: gate.prices.allowed(loaded.planned),
      pace: (group) => this.paces.of(group),
      profile: run.options.poll ?? null,
      renewals: session.chains.renewals,
      busy: new Set([...loaded.busyThen, ...busy.keys()]),
      quota,
      holdsBack: !yes,
      free: {
        submit: this.lanesInUse.count - this.count("submit"),
        poll: polls - this.count("poll"),
        download: Math.max(0, this.downloadsMax - this.count("download")),
      },
      stops: gate.stops,
      committed,
      cap,
      modelBudgets,
      awaitsSettling: !gate.stopped("unread") && (this.awaitsRepeats || gate.settling.keepsOpen(quota, now)),
    };
  }

  private progress(view: View, decision: Decision): Progress {
    const { counts, quota, committed, cap } = view;
    const { gate } = this;
    return {
      counts,
      quota,
      reason: gate.reason(view, decision),
      stops: gate.stops,
      spent: committed,
      cap,
      forecastMs: this.forecastMs(view),
    };
  }

  /** The plan may have known nothing of how long its models take; the run learns it. */
  private forecastMs({ now, waiting, counts }: View): number | null {
    const { startedAt, options } = this.session.settings.run;
    const { forecast } = options;
    if (forecast?.binds !== "provider") return forecast?.ms ?? null;
    const open = new Map<string, number>();
    for (const { group, kind } of this.open)
      if (kind === "processing") open.set(group, (open.get(group) ?? 0) + 1);
    // Not all are read if there are many.
    const read = [...open.values()].reduce((sum, items) => sum + items, 0);
    const work = [
      ...waiting,
      ...[...open].map(([group, items]) => ({ group, items: (items * counts.processing) / read })),
    ].map(({ group, items }) => ({ model: modelOfGroup(group), items, pace: this.paces.of(group) }));
    return now - startedAt + this.turns.leftMs(work, this.open);
  }

  /** The items whose submits are in progress. */
  private beginning(): number[] {
    return [...this.busy].filter(([, kind]) => kind === "submit").map(([item]) => item);
  }

  /**
   * Twice as many downloads as run at once, so that a worker that finishes one need not wait for a turn. The number of
   * workers changes.
   */
  private get downloadsMax(): number {
    const { ports, settings } = this.session;
    return 2 * (ports.offered?.() ?? settings.run.options.downloads);
  }

  private count(kind: StepKind): number {
    return [...this.busy.values()].filter((value) => value === kind).length;
  }

  /**
   * Starts the steps, whose reservations share a commit; false if another process took the slot in the quota that a
   * step needed.
   */
  private async beginAll(steps: readonly NextStep[], counts: View["counts"]): Promise<boolean> {
    this.debt.is(counts);
    const begun = await Promise.allSettled(steps.map((step) => this.begin(step)));
    // No step may start after the loop has ended with an error, so wait until all have started or failed.
    const failed = begun.find((step) => step.status === "rejected");
    if (failed) throw failed.reason;
    return begun.every((step) => step.status === "fulfilled" && step.value);
  }

  /** Starts a step if it gets what it needs: a lane for a submit, a slot in the quota for a request. */
  private async begin(step: NextStep): Promise<boolean> {
    if (step.do === "download") {
      this.start(this.downloads, step, 0, () => this.download(step.item));
      return true;
    }
    const { accounts, accountId, fingerprint, lanes } = this.session.ports;
    const caller = { accountId, fingerprint };
    if (step.do === "poll") {
      const { ticket } = await accounts.reserve(caller, "task");
      if (!ticket) return false;
      const { chains } = this.session;
      const poll = () =>
        chains.renews(step.item) ? chains.renew(step.item, ticket) : this.polling.poll(step.item, ticket);
      this.start(this.requests, step, 1, poll);
      return true;
    }
    const lane = lanes.take();
    if (lane === null) return false;
    const { ticket } = await accounts.reserve(caller, "generate", this.debt.grow());
    if (!ticket) {
      this.debt.shrink();
      lane.release();
      return false;
    }
    const send = () =>
      submit(this.session, step.item, ticket)
        .then((answer) => {
          if (answer !== null) this.lanesInUse.answered(answer);
        })
        .finally(() => lane.release());
    this.start(this.requests, step, 0, send);
    return true;
  }

  /** It may have waited for its turn for long: after a stop it does not begin any more. */
  private async download(item: number): Promise<void> {
    if (isOpen("download", this.gate.stops)) await this.fetching.fetch(item, this.cutDownloads.signal);
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

  /** `turnAt` is when this turn started: the turn has handled everything that was due by then. */
  private async sleep(wakeAt: number | null, turnAt: number): Promise<void> {
    const { clock } = this.session.ports;
    if (this.busy.size === 0) await this.debt.report();
    // A time that passed while the turn was deciding has not been handled, so it ends the sleep at once.
    const now = clock.now();
    const { leftMs } = this.overdueWait;
    const repeatAt = this.repeats.wakeAt;
    const times = [
      ...this.gate.wakeTimes,
      ...(leftMs === null ? [] : [now + leftMs]),
      ...(repeatAt === null ? [] : [repeatAt]),
    ];
    const others = times.filter((at) => at > turnAt);
    const at = Math.max(now + 1, Math.min(now + sleepMsMax, ...(wakeAt === null ? [] : [wakeAt]), ...others));
    const isLong = at - now > requestsMs || clock.monotonic() - this.savedRequests.at >= requestsMs;
    if (this.busy.size === 0 && isLong) await this.saveRequests();
    await this.bell.until(clock, at);
  }

  private stopwatch(): () => number {
    const { clock } = this.session.ports;
    const began = clock.monotonic();
    return () => clock.monotonic() - began;
  }

  private async rest(ms: number): Promise<void> {
    if (ms > 0) await this.session.ports.clock.sleep(Math.min(restMsMax, ms));
  }

  /** Waits for everything in flight: for all answers, and for downloads only a moment if the run was interrupted. */
  private async end(): Promise<void> {
    const { clock, store } = this.session.ports;
    const over = new AbortController();
    if (this.gate.stopped("interrupted") || this.crash !== undefined) {
      // Only downloads that have not begun.
      this.downloads.clear();
      void clock.sleep(downloadGraceMs, over.signal).then(() => this.cutDownloads.abort());
    }
    await Promise.all([this.requests.onIdle(), this.downloads.onIdle()]);
    over.abort("ended");
    await this.saveRequests();
    this.debt.is(await store.counts(this.session.settings.run.id));
    await this.debt.report();
  }

  private async saveRequests(): Promise<void> {
    const { ports, settings } = this.session;
    const { requests } = this.gate;
    if (requests !== this.savedRequests.number) await ports.store.setRun(settings.run.id, { requests });
    this.savedRequests = { number: requests, at: ports.clock.monotonic() };
  }
}
