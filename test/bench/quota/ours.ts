import { planLimits } from "../../../src/api/plans.js";
import { type ItemState, itemStates } from "../../../src/core/item.js";
import { noCredits } from "../../../src/core/money.js";
import { type NextStep, next, type PlannedSubmit } from "../../../src/core/next/next.js";
import { DurationEstimates } from "../../../src/core/pace/pace.js";
import {
  type OpenTask,
  overdueInterval,
  pollMsMin,
  pollSpacing,
  pollWindowMs,
} from "../../../src/core/pace/poll.js";
import type { PollProfile } from "../../../src/core/pace/pressure.js";
import type { StepKind } from "../../../src/core/stop.js";
import type { Place } from "./ledger.js";
import type { Job } from "./mixes.js";
import type { Run, Scene } from "./scene.js";

/** Polls in flight at once, as the runner has them. */
const pollsMax = 32;
/** Sleep after another run was quicker, as the loop has it. */
const contendedMs = 1_000;

/** Notes the generations of earlier runs. */
export function learn(paces: DurationEstimates, history: readonly Job[]): void {
  for (const [index, { model, category, durationMs }] of history.entries()) {
    paces.register(model, model, category);
    paces.finished(model, -1 - index, durationMs);
  }
}

/** The runner's own decisions over the service: `core/next` at every turn, exactly as the loop asks it. */
export class OurRun implements Run {
  wakeAt: number | null;
  /** When the last result was seen. */
  lastSeen: number;
  private readonly paces = new DurationEstimates();
  private readonly planned = new Map<string, PlannedSubmit[]>();
  private readonly tasks = new Map<number, OpenTask>();
  private readonly busy = new Map<number, StepKind>();
  private readonly counts = Object.fromEntries(itemStates.map((state) => [state, 0])) as Record<
    ItemState,
    number
  >;

  constructor(
    private readonly scene: Scene,
    items: readonly number[],
    private readonly profile: PollProfile | null,
    /** Of earlier runs. */
    history: readonly Job[] = [],
  ) {
    learn(this.paces, history);
    this.wakeAt = scene.now;
    this.lastSeen = scene.now;
    for (const index of items) {
      const { model, category } = this.jobOf(index);
      this.paces.register(model, model, category);
      const list = this.planned.get(model) ?? [];
      this.planned.set(model, list);
      list.push({ id: index, price: noCredits, nextAt: 0, group: model, priority: 0, position: index });
      this.counts.planned++;
    }
  }

  async turn(): Promise<void> {
    const { now } = this.scene;
    const { done, steps, wakeAt } = next(await this.view());
    this.wakeAt = done ? null : wakeAt;
    for (const step of steps) {
      if (await this.begin(step)) continue;
      this.wakeAt = now + contendedMs;
      return;
    }
  }

  private async view() {
    const { now, ledger, lanesMost } = this.scene;
    const isBusy = (kind: StepKind) => [...this.busy.values()].filter((value) => value === kind).length;
    return {
      now,
      planned: [...this.planned.values()].flatMap((list) => list.slice(0, lanesMost)),
      waiting: [...this.planned]
        .filter(([, list]) => list.length > 0)
        .map(([group, list]) => ({ group, items: list.length, credits: noCredits })),
      inOrder: false,
      renewals: [],
      tasks: [...this.tasks.values()],
      ready: [],
      expired: 0,
      parked: 0,
      counts: this.counts,
      busy: new Set(this.busy.keys()),
      quota: await ledger.quota(),
      pace: (group: string) => this.paces.of(group),
      profile: this.profile,
      holdsBack: false,
      free: { submit: lanesMost - isBusy("submit"), poll: pollsMax - isBusy("poll"), download: 1 },
      stops: [],
      committed: noCredits,
      cap: null,
      awaitsOverdue: true,
      awaitsSettling: false,
    };
  }

  /** Starts a step if it gets what it needs; false when another run has taken it. */
  private async begin({ do: kind, item }: NextStep): Promise<boolean> {
    const { scene } = this;
    if (kind === "submit" && !scene.takeLane()) return false;
    const { arrivesAt, answeredAt } = scene.service.travel(scene.now);
    const place = await scene.ledger.reserve(kind === "submit" ? "generate" : "task", answeredAt);
    if (place === null) {
      if (kind === "submit") scene.releaseLane();
      return false;
    }
    scene.service.requests++;
    this.busy.set(item, kind);
    if (kind === "submit") this.submit(item, place, arrivesAt, answeredAt);
    else this.look(item, place, arrivesAt, answeredAt);
    return true;
  }

  /** A request arrives, and is let in or not; its answer comes and wakes the run. */
  private travel<Result>(
    at: { arrivesAt: number; answeredAt: number },
    place: Place,
    onArrival: () => Result,
    onAnswer: (result: Result | null) => void,
  ): void {
    const { scene } = this;
    scene.at(at.arrivesAt, () => {
      const refusedMs = scene.door?.refuses(scene.now) ?? null;
      if (refusedMs !== null) scene.service.refused++;
      const result = refusedMs === null ? onArrival() : null;
      scene.at(at.answeredAt, () => {
        place.answered(refusedMs);
        onAnswer(result);
        this.wakeAt = scene.now;
      });
    });
  }

  private submit(index: number, place: Place, arrivesAt: number, answeredAt: number): void {
    const { scene } = this;
    const { model } = this.jobOf(index);
    const list = this.planned.get(model) as PlannedSubmit[];
    const place0 = list.findIndex(({ id }) => id === index);
    const [item] = list.splice(place0, 1) as [PlannedSubmit];
    this.counts.planned--;
    this.counts.submitting++;
    const arrive = () => {
      scene.service.create(index, arrivesAt);
      return true;
    };
    this.travel({ arrivesAt, answeredAt }, place, arrive, (accepted) => {
      scene.releaseLane();
      this.busy.delete(index);
      this.counts.submitting--;
      if (accepted === null) {
        list.unshift(item);
        this.counts.planned++;
        return;
      }
      this.counts.processing++;
      const nextAt = answeredAt + pollMsMin;
      const task = { kind: "processing", since: answeredAt, seenAt: null, nextAt } as const;
      this.tasks.set(index, { id: index, group: model, ...task });
    });
  }

  private look(index: number, place: Place, arrivesAt: number, answeredAt: number): void {
    const sentAt = this.scene.now;
    const arrive = () => this.scene.service.isDone(index, arrivesAt);
    this.travel({ arrivesAt, answeredAt }, place, arrive, (isDone) => {
      this.busy.delete(index);
      if (isDone) this.finish(index, answeredAt);
      else if (isDone === false) this.again(this.tasks.get(index) as OpenTask, sentAt, answeredAt);
    });
  }

  private finish(index: number, now: number): void {
    const { service } = this.scene;
    const task = this.tasks.get(index) as OpenTask;
    const { acceptedAt, doneAt } = service.courses.get(index) as { acceptedAt: number; doneAt: number };
    this.counts[task.kind === "overdue" ? "overdue" : "processing"]--;
    const { fails } = this.jobOf(index);
    this.counts[fails ? "failed" : "archived"]++;
    this.tasks.delete(index);
    service.seen(index, now);
    this.lastSeen = now;
    if (fails) this.paces.forget(task.group, index);
    else this.paces.finished(task.group, index, doneAt - acceptedAt);
  }

  private again(task: OpenTask, sentAt: number, now: number): void {
    const ageMs = now - task.since;
    task.seenAt = now;
    if (task.kind === "processing" && ageMs >= pollWindowMs) {
      task.kind = "overdue";
      this.counts.processing--;
      this.counts.overdue++;
    }
    this.paces.unfinished(task.group, task.id, ageMs);
    const { perDay } = planLimits[this.scene.plan];
    task.nextAt =
      task.kind === "processing"
        ? Math.max(now, sentAt + pollSpacing(ageMs))
        : now + overdueInterval(ageMs, { tasks: this.counts.overdue, perDay });
  }

  private jobOf(index: number) {
    return this.scene.service.jobs[index] as { model: string; category: string; fails: boolean };
  }
}
