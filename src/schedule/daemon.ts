import type { Clock } from "../clock.js";
import type { Log } from "../core/log.js";
import { type Credits, showCredits } from "../core/money.js";
import type { Night, NightChange, Schedule, Schedules } from "../store/schedules.js";
import { dueBetween, nextDue } from "./due.js";
import { type NightCommand, nightCommand, nightEnd } from "./night.js";
import { localText } from "./zone.js";

/**
 * The daemon: it claims each night in the database before it starts a process for it, so that no night is made twice,
 * whatever is killed when. It keeps nothing in memory that matters: what it did not see to its end goes on when it is
 * back. It asks the clock again at least every half minute, because a laptop that sleeps takes its timers along.
 */
export interface DaemonPorts {
  schedules: Schedules;
  clock: Clock;
  log: Log;
  /** Starts the process of a night. Never throws. */
  launch(command: NightCommand, schedule: Schedule): NightProcess;
  /** Tells people of what no run can tell them. */
  notify(schedule: Schedule, notice: DaemonNotice): void;
}

export interface NightProcess {
  /** Asks it to end in good order. */
  stop(): void;
  ended: Promise<NightEnd>;
}

/** What came of the process of a night. */
export interface NightEnd {
  /** Null when a signal ended it, or when it could not be started. */
  exit: number | null;
  /** In one line. */
  note: string;
  run: number | null;
  credits: Credits | null;
  archived: number | null;
  failed: number | null;
  held: number | null;
  /** When it can go on by itself (UTC ms). */
  resumeAt: number | null;
}

export interface DaemonNotice {
  event: "missed" | "skipped" | "lost";
  dueAt: number;
  message: string;
}

/** The longest sleep without a look at the clock (ms). */
const napMsMax = 30_000;
/** A night that is seen later than this was missed (ms). */
const lateMs = 5 * 60_000;
/** How many missed nights of one absence are written down. */
const missedMax = 1_000;
/** Until a night whose process was lost goes on (ms), and how often it does. */
const lostMs = 60_000;
const lossesMax = 2;
const interruptedExit = 130;
const crashExit = 1;

export class Daemon {
  private readonly processes = new Map<string, NightProcess>();
  private readonly ending = new Set<Promise<void>>();
  private wake = new AbortController();
  private crash: unknown;
  private stopping = false;
  /** When the loop last went round, on the clock that never goes back. */
  turnedAt: number;

  constructor(private readonly ports: DaemonPorts) {
    this.turnedAt = ports.clock.monotonic();
  }

  /** Schedules whose night is at work. */
  get running(): string[] {
    return [...this.processes.keys()];
  }

  /** Goes on until the signal; then processes are asked to end and waited for. */
  async go(stop: AbortSignal): Promise<void> {
    const { schedules, clock } = this.ports;
    stop.addEventListener("abort", () => this.wake.abort(), { once: true });
    for (const night of await schedules.nightsIn("running")) {
      await this.change(night, { state: "waiting", resumeAt: clock.now(), note: "the daemon was away" });
    }
    try {
      while (!stop.aborted && this.crash === undefined) {
        this.wake = new AbortController();
        const all = await schedules.all();
        for (const schedule of all) await this.lookAt(schedule);
        await this.goOn(all);
        this.turnedAt = clock.monotonic();
        if (!stop.aborted) await clock.sleep(await this.napMs(all), this.wake.signal);
      }
    } finally {
      this.stopping = true;
      for (const work of this.processes.values()) work.stop();
      while (this.ending.size > 0) await Promise.all(this.ending);
    }
    if (this.crash !== undefined) throw this.crash;
  }

  private async napMs(all: readonly Schedule[]): Promise<number> {
    const now = this.ports.clock.now();
    const waiting = await this.ports.schedules.nightsIn("waiting");
    const times = [
      ...all.map((schedule) => nextDue(schedule, now)),
      ...waiting.filter(({ schedule }) => !this.processes.has(schedule)).map(({ resumeAt }) => resumeAt),
    ];
    return Math.max(1, Math.min(napMsMax, ...times.flatMap((at) => (at === null ? [] : [at - now]))));
  }

  /** Deals with every night of a schedule that came due since the last look. */
  private async lookAt(schedule: Schedule): Promise<void> {
    const { schedules, clock } = this.ports;
    const now = clock.now();
    const [newest, ...older] = dueBetween(schedule, schedule.seenUntil, now, missedMax);
    if (newest === undefined) return;
    const reason = this.reasonToMiss(schedule, newest, now);
    const missed = reason === null ? older : [newest, ...older];
    const why = reason ?? "nobody was there; the night after it is made in its place";
    await this.miss(schedule, missed.toReversed(), why);
    if (reason === null) await this.begin(schedule, newest);
    await schedules.seen(schedule.name, now);
  }

  /** Why a night is not made any more; null when it is. */
  private reasonToMiss(schedule: Schedule, dueAt: number, now: number): string | null {
    if (now - dueAt <= lateMs) return null;
    if (schedule.missed === "skip") return "nobody was there";
    const end = nightEnd(schedule, dueAt);
    if (end === null || now < end) return null;
    return `nobody was there until its end, ${localText(end, schedule.zone)}`;
  }

  private async miss(schedule: Schedule, times: readonly number[], why: string): Promise<void> {
    const { schedules, clock, log, notify } = this.ports;
    const missed: number[] = [];
    for (const dueAt of times) {
      const change = { state: "missed", endedAt: clock.now(), note: why } as const;
      if (await schedules.claim(schedule.name, dueAt, change)) missed.push(dueAt);
    }
    const [first] = missed;
    const last = missed.at(-1);
    if (first === undefined || last === undefined) return;
    const { name, zone } = schedule;
    const nights =
      missed.length === 1
        ? `the night of ${localText(first, zone)}`
        : `${missed.length} nights, ${localText(first, zone)} to ${localText(last, zone)},`;
    const message = `${name}: ${nights} ${missed.length === 1 ? "was" : "were"} missed: ${why}`;
    log.warn({ schedule: name, missed: missed.length }, message);
    notify(schedule, { event: "missed", dueAt: last, message });
  }

  private async begin(schedule: Schedule, dueAt: number): Promise<void> {
    const { schedules, clock, log, notify } = this.ports;
    const { name, zone } = schedule;
    if (this.processes.has(name)) {
      const note = "the night before it was still at work";
      if (!(await schedules.claim(name, dueAt, { state: "skipped", endedAt: clock.now(), note }))) return;
      const message = `${name}: the night of ${localText(dueAt, zone)} is skipped: ${note}`;
      log.warn({ schedule: name }, message);
      notify(schedule, { event: "skipped", dueAt, message });
      return;
    }
    const startedAt = clock.now();
    if (!(await schedules.claim(name, dueAt, { state: "running", startedAt }))) return;
    const late = startedAt - dueAt > lateMs ? ", caught up" : "";
    log.info({ schedule: name }, `${name}: the night of ${localText(dueAt, zone)} begins${late}`);
    this.start(schedule, { schedule: name, dueAt, run: null, losses: 0 });
  }

  /** Nights that wait and whose time has come; one of a schedule at a time. */
  private async goOn(all: readonly Schedule[]): Promise<void> {
    const { schedules, clock, log } = this.ports;
    for (const night of await schedules.nightsIn("waiting")) {
      const schedule = all.find(({ name }) => name === night.schedule);
      if (!schedule) {
        await this.change(night, {
          state: "ended",
          resumeAt: null,
          note: "its schedule was removed; `bulkgen resume` goes on",
        });
      } else if ((night.resumeAt ?? 0) <= clock.now() && !this.processes.has(night.schedule)) {
        await this.change(night, { state: "running", resumeAt: null });
        const due = localText(night.dueAt, schedule.zone);
        log.info({ schedule: schedule.name }, `${schedule.name}: the night of ${due} goes on`);
        this.start(schedule, night);
      }
    }
  }

  private start(schedule: Schedule, night: Pick<Night, "schedule" | "dueAt" | "run" | "losses">): void {
    const work = this.ports.launch(nightCommand(schedule, night), schedule);
    this.processes.set(schedule.name, work);
    const ending = work.ended
      .then((end) => this.finish(schedule, night, end))
      .catch((error: unknown) => {
        this.crash ??= error;
      })
      .finally(() => {
        this.processes.delete(schedule.name);
        this.ending.delete(ending);
        this.wake.abort();
      });
    this.ending.add(ending);
  }

  private async finish(
    schedule: Schedule,
    night: Pick<Night, "schedule" | "dueAt" | "run" | "losses">,
    end: NightEnd,
  ): Promise<void> {
    const { clock, log, notify } = this.ports;
    const { resumeAt, ...came } = end;
    const known = { ...came, run: end.run ?? night.run };
    const lost = end.exit === null || end.exit === crashExit;
    const losses = night.losses + (lost ? 1 : 0);
    const again = this.againAt(end, losses);
    await this.change(night, {
      ...known,
      losses,
      ...(again === null
        ? { state: "ended", endedAt: clock.now(), resumeAt: null }
        : { state: "waiting", resumeAt: again }),
    });
    const { name, zone } = schedule;
    const due = localText(night.dueAt, zone);
    const next = again === null ? "" : `; goes on at ${localText(again, zone)}`;
    const message = `${name}: the night of ${due}: ${endText(end)}${next}`;
    log[lost ? "error" : "info"]({ schedule: name, exit: end.exit, run: known.run }, message);
    // A process that ends by itself has told its end; one that was killed could not.
    if (end.exit === null) notify(schedule, { event: "lost", dueAt: night.dueAt, message });
  }

  /** When a night goes on by itself (UTC ms); null when it is over. */
  private againAt({ exit, resumeAt }: NightEnd, losses: number): number | null {
    const now = this.ports.clock.now();
    if (exit === interruptedExit) return this.stopping ? now : null;
    if (exit === null || exit === crashExit) return losses < lossesMax ? now + lostMs : null;
    return resumeAt === null ? null : Math.max(resumeAt, now + lostMs);
  }

  private change(night: Pick<Night, "schedule" | "dueAt">, change: NightChange): Promise<void> {
    return this.ports.schedules.change(night.schedule, night.dueAt, change);
  }
}

function endText({ exit, note, credits }: NightEnd): string {
  const spent = credits === null ? "" : `, ${showCredits(credits)} credits`;
  return `${note}${spent}${exit === null ? "" : ` (exit ${exit})`}`;
}
