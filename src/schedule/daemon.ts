import type { Clock } from "../clock.js";
import { exitCode } from "../core/exit.js";
import type { Log } from "../core/ports/send.js";
import { DatabaseTrouble, refusedByDisk, wayOut } from "../store/open.js";
import {
  byHand,
  type Schedule,
  type ScheduledRun,
  type ScheduledRunChange,
  type Schedules,
} from "../store/schedules.js";
import { dueBetween, localText, nextStart } from "./due.js";
import { dueKey } from "./due-runs.js";
import {
  againAt,
  endNote,
  endText,
  isLost,
  isStuck,
  type ScheduledCommand,
  type ScheduledRunEnd,
  scheduledCommand,
  scheduledEnd,
} from "./scheduled-run.js";

/**
 * The daemon starts a process for each scheduled run. It claims the run in the database first, so no crash makes a run
 * start twice. Its memory holds nothing that matters: the next daemon continues the runs it left unfinished. It reads
 * the clock at least every half minute, because timers stop while a laptop sleeps.
 */
export interface DaemonPorts {
  schedules: Schedules;
  clock: Clock;
  log: Log;
  /**
   * Claims due times over all machines that share the database of a schedule's workspace. Returns those that another
   * daemon has claimed before, with its name. Rejects with DatabaseTrouble.
   */
  claimForAll(schedule: Schedule, dueAt: readonly number[]): Promise<ReadonlyMap<number, string>>;
  /** Starts the process of a scheduled run. Never throws. */
  launch(command: ScheduledCommand, schedule: Schedule): ScheduledProcess;
  /** What to type after a run that did not end well. */
  whatToDo(schedule: Schedule, end: ScheduledRunEnd): string | Promise<string>;
  /** Sends a notification about something that no run can report itself. */
  notify(schedule: Schedule, event: DaemonEvent): void;
}

export interface ScheduledProcess {
  /** Asks the process to end after the requests in flight. */
  stop(): void;
  ended: Promise<ScheduledRunEnd>;
}

export interface DaemonEvent {
  event: "missed" | "skipped" | "lost" | "trouble";
  dueAt: number;
  message: string;
}

/** The longest sleep (ms). */
const napMsMax = 30_000;
/** A due time that is seen later than this was missed (ms). */
const lateMs = 5 * 60_000;
/** Time until a refused write is tried again (ms). */
const refusedMs = 10_000;
/** How many missed runs are recorded after one absence. */
const missedMax = 1_000;

export class Daemon {
  private readonly processes = new Map<string, ScheduledProcess>();
  private readonly ending = new Set<Promise<void>>();
  private wake = new AbortController();
  private crash: unknown;
  private readonly over = new AbortController();
  private readonly writing: Writing;
  /** Runs that an earlier daemon left running are recorded as waiting. */
  private hasTakenOver = false;
  /** When the loop last finished a turn (monotonic ms). */
  turnedAt: number;

  constructor(private readonly ports: DaemonPorts) {
    this.turnedAt = ports.clock.monotonic();
    this.writing = new Writing(ports.log, ports.notify);
  }

  /** Names of the schedules with a run in progress. */
  get running(): string[] {
    return [...this.processes.keys()];
  }

  /** What cannot be recorded, in one line; null while everything can be recorded. */
  get trouble(): string | null {
    return this.writing.trouble;
  }

  /** Runs until the signal, then asks the processes to end and waits for them. */
  async go(stop: AbortSignal): Promise<void> {
    const { schedules, clock } = this.ports;
    stop.addEventListener("abort", () => this.wake.abort(), { once: true });
    try {
      while (!stop.aborted && this.crash === undefined) {
        this.wake = new AbortController();
        const all = await schedules.all();
        await this.takeOver(all);
        for (const schedule of all) await this.handleDue(schedule);
        await this.goOn(all);
        this.turnedAt = clock.monotonic();
        if (!stop.aborted) await clock.sleep(await this.napMs(all), this.wake.signal);
      }
    } finally {
      this.over.abort();
      for (const work of this.processes.values()) work.stop();
      while (this.ending.size > 0) await Promise.all(this.ending);
    }
    if (this.crash !== undefined) throw this.crash;
  }

  private async napMs(all: readonly Schedule[]): Promise<number> {
    if (this.trouble !== null) return refusedMs;
    const now = this.ports.clock.now();
    const waiting = await this.ports.schedules.scheduledRunsIn("waiting");
    const times = [
      ...all.map((schedule) => nextStart(schedule, now)),
      ...waiting.filter(({ schedule }) => !this.processes.has(schedule)).map(({ resumeAt }) => resumeAt),
    ];
    return Math.max(1, Math.min(napMsMax, ...times.flatMap((at) => (at === null ? [] : [at - now]))));
  }

  /** Runs that an earlier daemon left unfinished will continue; not those that a person has started. */
  private async takeOver(all: readonly Schedule[]): Promise<void> {
    const { schedules, clock } = this.ports;
    if (this.hasTakenOver) return;
    let complete = true;
    for (const scheduledRun of await schedules.scheduledRunsIn("running")) {
      // Its process may be alive; and if it is not, the person who started it decides whether it continues.
      if (scheduledRun.note === byHand) continue;
      const change = { state: "waiting", resumeAt: clock.now(), note: "the daemon was not running" } as const;
      const schedule = all.find(({ name }) => name === scheduledRun.schedule) ?? {
        name: scheduledRun.schedule,
      };
      const written = await this.writing.write(schedule, scheduledRun.dueAt, () =>
        this.change(scheduledRun, change),
      );
      complete &&= written;
    }
    this.hasTakenOver = complete;
  }

  /** Handles the due times of a schedule since the last turn. */
  private async handleDue(schedule: Schedule): Promise<void> {
    const { schedules, clock } = this.ports;
    const { name, seenUntil, pausedAt } = schedule;
    // What comes due meanwhile is neither started nor missed.
    if (pausedAt !== null) return;
    const now = clock.now();
    // The clock was ahead and was set back. Due times come again; the claim of each keeps it from starting twice.
    if (seenUntil > now) await this.writing.write(schedule, seenUntil, () => schedules.seen(name, now));
    const [newest, ...older] = dueBetween(schedule, seenUntil, now, missedMax);
    if (newest === undefined) return;
    await this.writing.write(schedule, newest, () => this.dealWith(schedule, [newest, ...older], now));
  }

  private async dealWith(schedule: Schedule, due: readonly number[], now: number): Promise<void> {
    const { schedules } = this.ports;
    const [newest, ...older] = due;
    if (newest === undefined) return;
    // Before the claim here: if this daemon is killed between the two, it still has the due time.
    const others = await this.ports.claimForAll(schedule, due);
    const isOurs = (dueAt: number) => !others.has(dueAt);
    await this.leave(schedule, others);
    const reason = this.reasonToMiss(schedule, newest, now);
    const missed = (reason === null ? older : due).filter(isOurs);
    const why = reason ?? "the daemon was not running; a later run takes its place";
    await this.miss(schedule, missed.toReversed(), why);
    if (reason === null && isOurs(newest)) await this.begin(schedule, newest);
    await schedules.seen(schedule.name, now);
  }

  /** Why a due time is not caught up; null when it is. */
  private reasonToMiss(schedule: Schedule, dueAt: number, now: number): string | null {
    if (now - dueAt <= lateMs) return null;
    if (schedule.missed === "skip") return "the daemon was not running";
    const end = scheduledEnd(schedule, dueAt);
    if (end === null || now < end) return null;
    return `the daemon was not running before its end at ${localText(end, schedule.zone)}`;
  }

  /** Records due times that another daemon has claimed. That daemon notifies, not this one. */
  private async leave(schedule: Schedule, others: ReadonlyMap<number, string>): Promise<void> {
    const { schedules, clock, log } = this.ports;
    const { name, zone } = schedule;
    for (const [dueAt, daemon] of others) {
      const note = `the daemon on ${daemon} has it`;
      if (await schedules.claim(name, dueAt, { state: "skipped", endedAt: clock.now(), note }))
        log.info(
          { schedule: name },
          `${name}: the scheduled run of ${localText(dueAt, zone)} is skipped: ${note}`,
        );
    }
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
    const what =
      missed.length === 1
        ? `the scheduled run of ${localText(first, zone)}`
        : `${missed.length} scheduled runs, ${localText(first, zone)} to ${localText(last, zone)},`;
    const message = `${name}: ${what} ${missed.length === 1 ? "was" : "were"} missed: ${why}`;
    log.warn({ schedule: name, missed: missed.length }, message);
    notify(schedule, { event: "missed", dueAt: last, message });
  }

  private async begin(schedule: Schedule, dueAt: number): Promise<void> {
    const { schedules, clock, log, notify } = this.ports;
    const { name, zone } = schedule;
    if (this.processes.has(name)) {
      const note = "the previous run was still in progress";
      if (!(await schedules.claim(name, dueAt, { state: "skipped", endedAt: clock.now(), note }))) return;
      const message = `${name}: the scheduled run of ${localText(dueAt, zone)} is skipped: ${note}`;
      log.warn({ schedule: name }, message);
      notify(schedule, { event: "skipped", dueAt, message });
      return;
    }
    const startedAt = clock.now();
    if (!(await schedules.claim(name, dueAt, { state: "running", startedAt }))) return;
    const late = startedAt - dueAt > lateMs ? ", caught up" : "";
    log.info({ schedule: name }, `${name}: the scheduled run of ${localText(dueAt, zone)} starts${late}`);
    this.start(schedule, { schedule: name, dueAt, run: null, losses: 0, note: null });
  }

  /** Continues waiting runs whose time has come, one for each schedule. */
  private async goOn(all: readonly Schedule[]): Promise<void> {
    const { schedules, clock, log } = this.ports;
    for (const scheduledRun of await schedules.scheduledRunsIn("waiting")) {
      const schedule = all.find(({ name }) => name === scheduledRun.schedule);
      if (!schedule) {
        const note = endNote("removed", "");
        const gone = () => this.change(scheduledRun, { state: "ended", resumeAt: null, note });
        await this.writing.write({ name: scheduledRun.schedule }, scheduledRun.dueAt, gone);
      } else if ((scheduledRun.resumeAt ?? 0) <= clock.now() && !this.processes.has(scheduledRun.schedule)) {
        let isOpen = false;
        const goesOn = async () => {
          isOpen = await this.change(scheduledRun, { state: "running", resumeAt: null });
        };
        if (!(await this.writing.write(schedule, scheduledRun.dueAt, goesOn)) || !isOpen) continue;
        const due = localText(scheduledRun.dueAt, schedule.zone);
        log.info({ schedule: schedule.name }, `${schedule.name}: the scheduled run of ${due} continues`);
        this.start(schedule, scheduledRun);
      }
    }
  }

  private start(
    schedule: Schedule,
    scheduledRun: Pick<ScheduledRun, "schedule" | "dueAt" | "run" | "losses" | "note">,
  ): void {
    const work = this.ports.launch(scheduledCommand(schedule, scheduledRun), schedule);
    this.processes.set(schedule.name, work);
    const ending = work.ended
      .then((end) => this.finish(schedule, scheduledRun, end))
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
    scheduledRun: Pick<ScheduledRun, "schedule" | "dueAt" | "run" | "losses" | "note">,
    end: ScheduledRunEnd,
  ): Promise<void> {
    const { clock, log, notify } = this.ports;
    const { resumeAt, ...came } = end;
    const known = { ...came, run: end.run ?? scheduledRun.run };
    const losses = scheduledRun.losses + (isLost(end) ? 1 : 0);
    const isStopping = this.over.signal.aborted;
    const again = againAt(end, { losses, now: clock.now(), isStopping, before: scheduledRun });
    const ended: ScheduledRunChange =
      again === null
        ? { state: "ended", endedAt: clock.now(), resumeAt: null }
        : { state: "waiting", resumeAt: again };
    // Somebody may have changed or removed the schedule meanwhile, which ended the run.
    let isOpen = true;
    const write = async () => {
      isOpen = await this.change(scheduledRun, { ...known, losses, ...ended });
    };
    while (!(await this.writing.write(schedule, scheduledRun.dueAt, write))) {
      // The record still says that it is running, so the next daemon takes it over.
      if (this.over.signal.aborted) return;
      await clock.sleep(refusedMs, this.over.signal);
    }
    const { name, zone } = schedule;
    const due = localText(scheduledRun.dueAt, zone);
    const stuck = isStuck(end, scheduledRun);
    const how = stuck ? "tried again" : "continues";
    const then = isOpen ? `${how} at ${localText(again ?? 0, zone)}` : endNote("changed", "");
    const next = again === null ? "" : `; ${then}`;
    const what = stuck ? `run ${known.run} cannot be continued: ${endText(end)}` : endText(end);
    const message = `${name}: the scheduled run of ${due}: ${what}${next}`;
    const facts = { schedule: name, exit: end.exit, run: known.run };
    // With the line for cron, only warnings and errors reach anybody.
    if (isLost(end) || stuck) log.error(facts, message);
    else if (end.exit === exitCode("done") || again !== null) log.info(facts, message);
    else log.warn(facts, `${message}; ${await this.ports.whatToDo(schedule, { ...end, run: known.run })}`);
    // A reason is reported once, however often the run is tried again for it.
    if (stuck && scheduledRun.note !== end.note)
      notify(schedule, { event: "trouble", dueAt: scheduledRun.dueAt, message });
    // A process that exits normally sends its own notification; a killed one cannot.
    if (end.exit === null) notify(schedule, { event: "lost", dueAt: scheduledRun.dueAt, message });
  }

  private change(
    scheduledRun: Pick<ScheduledRun, "schedule" | "dueAt">,
    change: ScheduledRunChange,
  ): Promise<boolean> {
    return this.ports.schedules.change(scheduledRun.schedule, scheduledRun.dueAt, change);
  }
}

/**
 * The daemon's writes. A full or read-only disk, or a database that is away, does not end the daemon: a run starts only
 * after it was recorded, each failing run is reported once, and the write is tried again until it succeeds.
 */
class Writing {
  /** Runs that could not be recorded, with the message about each. */
  private readonly refused = new Map<string, string>();

  constructor(
    private readonly log: Log,
    private readonly notify: (schedule: Schedule, event: DaemonEvent) => void,
  ) {}

  /** The first message; null while all writes succeed. */
  get trouble(): string | null {
    const [message = null] = this.refused.values();
    return message;
  }

  /** False when the disk or the database refused the write. Rethrows other errors. */
  async write(
    schedule: Pick<Schedule, "name"> | Schedule,
    dueAt: number,
    work: () => Promise<unknown>,
  ): Promise<boolean> {
    const key = dueKey(schedule.name, dueAt);
    try {
      await work();
    } catch (error) {
      if (!refusedByDisk(error) && !(error instanceof DatabaseTrouble)) throw error;
      if (!this.refused.has(key)) this.tell(schedule, dueAt, key, error);
      return false;
    }
    if (this.refused.delete(key) && this.refused.size === 0)
      this.log.info({}, "scheduled runs can be recorded again");
    return true;
  }

  private tell(schedule: Pick<Schedule, "name"> | Schedule, dueAt: number, key: string, error: Error): void {
    const due = "zone" in schedule ? localText(dueAt, schedule.zone) : new Date(dueAt).toISOString();
    const todo = wayOut(error);
    const message = `${schedule.name}: could not record the scheduled run of ${due} (${error.message}); retrying until it is recorded${todo === null ? "" : `. To continue: ${todo}`}`;
    this.refused.set(key, message);
    this.log.error({ schedule: schedule.name }, message);
    // A removed schedule has no targets for notifications.
    if ("zone" in schedule) this.notify(schedule, { event: "trouble", dueAt, message });
  }
}
