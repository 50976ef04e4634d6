import { type Plan, planLimits } from "../../../src/api/plans.js";
import { type ItemState, itemStates } from "../../../src/core/item.js";
import { lanesOf } from "../../../src/core/lanes.js";
import { noCredits } from "../../../src/core/money.js";
import { next, type Planned } from "../../../src/core/next.js";
import { Paces } from "../../../src/core/paces.js";
import { lookSpacing, overdueInterval, pollMsMin, pollWindowMs, type Task } from "../../../src/core/poll.js";
import type { PollProfile } from "../../../src/core/pressure.js";
import type { StepKind } from "../../../src/core/stop.js";
import { Agenda } from "./agenda.js";
import { BenchLedger } from "./ledger.js";
import { type Figures, figuresOf, type TimedService } from "./service.js";

export interface Setting {
  plan: Plan;
  profile: PollProfile | null;
  /** The run ends there (ms). */
  untilMs?: number;
}

const start = Date.UTC(2026, 0, 1);
/** Looks in flight at once, as the runner has them. */
const pollsMax = 32;

/** The runner's own decisions over the service: `core/next` at every turn, exactly as the loop asks it. */
export function ours(service: TimedService, setting: Setting): Figures {
  return new Run(service, setting).go();
}

class Run {
  private readonly agenda = new Agenda();
  private readonly ledger: BenchLedger;
  private readonly paces = new Paces();
  private readonly planned = new Map<string, Planned[]>();
  private readonly tasks = new Map<number, Task>();
  private readonly busy = new Map<number, StepKind>();
  private readonly counts = Object.fromEntries(itemStates.map((state) => [state, 0])) as Record<
    ItemState,
    number
  >;
  private now = start;
  private lastSeen = start;

  constructor(
    private readonly service: TimedService,
    private readonly setting: Setting,
  ) {
    this.ledger = new BenchLedger(planLimits[setting.plan]);
    for (const [index, { model, category }] of service.jobs.entries()) {
      this.paces.introduce(model, model, category);
      const list = this.planned.get(model) ?? [];
      this.planned.set(model, list);
      list.push({ id: index, price: noCredits, nextAt: 0, group: model, priority: 0, position: index });
      this.counts.planned++;
    }
  }

  go(): Figures {
    const until = start + (this.setting.untilMs ?? Number.POSITIVE_INFINITY);
    for (;;) {
      const wakeAt = this.turn();
      if (wakeAt === "done") break;
      const at = this.agenda.next(wakeAt);
      if (at === null || at > until) break;
      this.now = Math.max(this.now, at);
      this.agenda.run(this.now);
    }
    return figuresOf(this.service, this.lastSeen - start);
  }

  private turn(): number | null | "done" {
    const lanes = lanesOf(this.setting.plan);
    const isBusy = (kind: StepKind) => [...this.busy.values()].filter((value) => value === kind).length;
    const decision = next({
      now: this.now,
      planned: [...this.planned.values()].flatMap((list) => list.slice(0, lanes)),
      waiting: [...this.planned]
        .filter(([, list]) => list.length > 0)
        .map(([group, list]) => ({ group, items: list.length, credits: noCredits })),
      inOrder: false,
      tasks: [...this.tasks.values()],
      ready: [],
      expired: 0,
      parked: 0,
      counts: this.counts,
      busy: new Set(this.busy.keys()),
      quota: this.ledger.quota(this.now),
      pace: (group) => this.paces.of(group),
      profile: this.setting.profile,
      free: { submit: lanes - isBusy("submit"), poll: pollsMax - isBusy("poll"), download: 1 },
      stops: [],
      committed: noCredits,
      cap: null,
      awaitsOverdue: true,
      awaitsSettling: false,
    });
    for (const { do: kind, item } of decision.steps) {
      if (kind === "submit") this.submit(item);
      else this.look(item);
    }
    return decision.done ? "done" : decision.wakeAt;
  }

  private submit(index: number): void {
    const { arrivesAt, answeredAt } = this.service.request(this.now);
    this.ledger.send(answeredAt);
    const { model } = this.service.jobs[index] as { model: string };
    const list = this.planned.get(model) as Planned[];
    list.splice(
      list.findIndex(({ id }) => id === index),
      1,
    );
    this.counts.planned--;
    this.counts.submitting++;
    this.busy.set(index, "submit");
    this.service.create(index, arrivesAt);
    this.agenda.at(answeredAt, () => {
      this.busy.delete(index);
      this.counts.submitting--;
      this.counts.processing++;
      this.tasks.set(index, {
        id: index,
        group: model,
        kind: "processing",
        since: answeredAt,
        seenAt: null,
        nextAt: answeredAt + pollMsMin,
      });
    });
  }

  private look(index: number): void {
    const sentAt = this.now;
    const { arrivesAt, answeredAt } = this.service.request(this.now);
    this.ledger.send(answeredAt);
    this.busy.set(index, "poll");
    const isDone = this.service.isDone(index, arrivesAt);
    this.agenda.at(answeredAt, () => {
      this.busy.delete(index);
      if (isDone) this.finish(index, answeredAt);
      else this.again(this.tasks.get(index) as Task, sentAt, answeredAt);
    });
  }

  private finish(index: number, now: number): void {
    const task = this.tasks.get(index) as Task;
    const { acceptedAt, doneAt } = this.service.courses.get(index) as { acceptedAt: number; doneAt: number };
    const job = this.service.jobs[index] as { fails: boolean };
    this.counts[task.kind === "overdue" ? "overdue" : "processing"]--;
    this.counts[job.fails ? "failed" : "archived"]++;
    this.tasks.delete(index);
    this.service.seen(index, now);
    this.lastSeen = now;
    if (job.fails) this.paces.gone(task.group, index);
    else this.paces.finished(task.group, index, doneAt - acceptedAt);
  }

  private again(task: Task, sentAt: number, now: number): void {
    const ageMs = now - task.since;
    task.seenAt = now;
    if (task.kind === "processing" && ageMs >= pollWindowMs) {
      task.kind = "overdue";
      this.counts.processing--;
      this.counts.overdue++;
    }
    this.paces.unfinished(task.group, task.id, ageMs);
    const perDay = planLimits[this.setting.plan].perDay;
    task.nextAt =
      task.kind === "processing"
        ? Math.max(now, sentAt + lookSpacing(ageMs))
        : now + overdueInterval(ageMs, { tasks: this.counts.overdue, perDay });
  }
}
