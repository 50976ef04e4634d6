import type { AnnouncedProvider } from "../api/announced.js";
import type { Clock } from "../clock.js";
import { modelOfGroup } from "../core/identity.js";
import { type ModelWork, workMs } from "../core/pace/forecast.js";
import type { OpenTask } from "../core/pace/poll.js";

/**
 * Whose turn it is at the providers that the service announces. A provider does its jobs in their order, so many at once: the
 * oldest open tasks are being done, and a poll of any other would find it waiting. When one ends, the next begins. What is not
 * so, because others have jobs there too or because this process was not there, the next poll of a task tells.
 */
export class Turns {
  /** By item: when its task began, or is expected to, by the monotonic clock (ms). */
  private readonly began = new Map<number, number>();
  /** When places became free that no task has taken yet, by a model of their provider. */
  private readonly freed = new Map<string, number[]>();
  /** By price group. */
  private readonly models = new Map<string, string>();

  constructor(
    private readonly clock: Clock,
    private readonly announced: () => readonly AnnouncedProvider[],
  ) {}

  /** Whether a task of this price group has to wait for its turn. */
  has(group: string): boolean {
    return this.providerOf(group) !== undefined;
  }

  /** The tasks that may be worth a poll, each from when it began. */
  worthPolling(tasks: readonly OpenTask[]): OpenTask[] {
    if (this.announced().length === 0) return [...tasks];
    const others: OpenTask[] = [];
    const lines = new Map<AnnouncedProvider, OpenTask[]>();
    for (const task of tasks) {
      const provider = task.kind === "processing" ? this.providerOf(task.group) : undefined;
      if (provider === undefined) others.push(task);
      else {
        const line = lines.get(provider);
        if (line === undefined) lines.set(provider, [task]);
        else line.push(task);
      }
    }
    return [...others, ...[...lines].flatMap(([provider, line]) => this.firstOf(provider, line))];
  }

  private firstOf(provider: AnnouncedProvider, line: readonly OpenTask[]): OpenTask[] {
    const rank = ({ id }: OpenTask) => (this.began.has(id) ? 0 : 1);
    const now = this.clock.now();
    const elapsed = this.clock.monotonic();
    return line
      .toSorted((a, b) => rank(a) - rank(b) || a.since - b.since || a.id - b.id)
      .slice(0, provider.atOnce)
      .map((task) => {
        const accepted = elapsed - Math.max(0, now - task.since);
        const began =
          this.began.get(task.id) ?? Math.max(accepted, this.freedAt(provider).shift() ?? accepted);
        this.began.set(task.id, began);
        const since = Math.round(now - elapsed + began);
        const seenAt = task.seenAt !== null && task.seenAt > since ? task.seenAt : null;
        return { ...task, since, seenAt, turn: { isLast: line.length <= provider.atOnce } };
      });
  }

  /** A task was found to be worked on, for so long. */
  found(item: number, ageMs: number): void {
    this.began.set(item, this.clock.monotonic() - ageMs);
  }

  /** A task was found waiting; its turn comes in so long. */
  waits(item: number, ms: number): void {
    this.began.set(item, this.clock.monotonic() + ms);
  }

  /** A task has ended, so long ago: the next has its place. */
  ended(item: number, group: string, agoMs: number): void {
    this.began.delete(item);
    const provider = this.providerOf(group);
    if (provider === undefined) return;
    const places = this.freedAt(provider);
    places.push(this.clock.monotonic() - agoMs);
    places.sort((a, b) => a - b);
    places.splice(0, places.length - provider.atOnce);
  }

  /** How long the providers still need for all of this (ms), of which `tasks` are open; 0 if it is nothing of theirs. */
  leftMs(work: readonly ModelWork[], tasks: readonly OpenTask[]): number {
    const now = this.clock.monotonic();
    const left = this.announced().map((provider) => {
      const own = tasks.filter(({ group }) => provider.usualMs.has(this.modelOf(group)));
      const soonest = Math.min(...own.map(({ id }) => this.began.get(id) ?? now));
      const aheadMs = own.length === 0 ? 0 : Math.max(0, soonest - now);
      return workMs(provider, work, aheadMs);
    });
    return Math.max(0, ...left);
  }

  private freedAt(provider: AnnouncedProvider): number[] {
    const [model = ""] = provider.usualMs.keys();
    const places = this.freed.get(model) ?? [];
    this.freed.set(model, places);
    return places;
  }

  private providerOf(group: string): AnnouncedProvider | undefined {
    const providers = this.announced();
    if (providers.length === 0) return undefined;
    return providers.find(({ usualMs }) => usualMs.has(this.modelOf(group)));
  }

  private modelOf(group: string): string {
    const known = this.models.get(group);
    if (known !== undefined) return known;
    const model = modelOfGroup(group);
    this.models.set(group, model);
    return model;
  }
}
