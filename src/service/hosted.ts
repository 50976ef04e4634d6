import type { Clock, Random } from "../clock.js";
import type { WorldRequest, WorldResponse } from "./answers/answers.js";
import { GroupCommit } from "./state/group-commit.js";
import type { SqliteState } from "./state/sqlite-state.js";
import type { Change, TaskRecord } from "./state/state.js";
import type { AuthenticatedCaller } from "./world/authenticate.js";
import { World, type WorldSettings } from "./world/world.js";

/** Who makes the outputs of tasks, each as a file in memory or on disk. */
export interface OutputMaker<File> {
  /** A task has been taken: what else is to be on record with it, in the same transaction. */
  record?(task: TaskRecord): void;
  /** A task has been taken and is on record; its outcome is still open. */
  begin(task: TaskRecord): void;
  /** One output of a completed task, numbered from 1, or the answer that says why it is not there. */
  output(task: TaskRecord, number: number): Promise<File | WorldResponse>;
}

export interface HostedParts<File> {
  clock: Clock;
  random: Random;
  state: SqliteState;
  world: WorldSettings;
  maker: OutputMaker<File>;
  /** Gets the service's own failures, such as a full disk; callers only see an internal error. */
  onError?: ((error: Error) => void) | undefined;
}

function takenTasks(changes: readonly Change[]): TaskRecord[] {
  return changes.flatMap((change) => (change.kind === "task created" ? [change.task] : []));
}

/** The service without its socket: the world on its state, and whoever makes the outputs. */
export class HostedService<File> {
  private readonly world: World;
  private readonly commits = new GroupCommit((work) => this.parts.state.transact(work));

  constructor(private readonly parts: HostedParts<File>) {
    this.world = new World(parts.world, parts.state, parts.random);
  }

  /** Answers an API request; its changes are committed when it resolves. */
  async api(request: WorldRequest): Promise<WorldResponse> {
    const { state, maker, onError } = this.parts;
    const work = () => {
      const applied = this.world.apply(this.now(), request);
      state.commit(applied.changes);
      for (const task of takenTasks(applied.changes)) maker.record?.(task);
      return applied;
    };
    const applied = await this.commits.run(work).catch((error: Error) => error);
    if (applied instanceof Error) {
      onError?.(applied);
      return this.world.failed(request);
    }
    for (const task of takenTasks(applied.changes)) if (task.outcome === null) maker.begin(task);
    return applied.response;
  }

  /** The file of a signed URL, or the answer that refuses it. */
  async file(path: string, query: Record<string, string>): Promise<File | WorldResponse> {
    const found = this.lookUp(path, query);
    return "refused" in found ? found.refused : this.parts.maker.output(found.task, found.number);
  }

  /** The task and output that a signed URL names, or the answer that refuses it. */
  lookUp(path: string, query: Record<string, string>) {
    return this.world.file(this.now(), path, query);
  }

  expired(): WorldResponse {
    return this.world.expired();
  }

  /** Credits the refunds of an account that are due, for readers of its balance that send no request. */
  settle(accountId: string): void {
    const { state } = this.parts;
    state.transact(() => state.commit(this.world.refundsDue(this.now(), accountId)));
  }

  /** Decides a task: `error` says why it has failed, or is null. Rejects if that cannot be written. */
  decide(task: TaskRecord, error: string | null): Promise<void> {
    const change = this.world.decide(this.now(), task, error);
    return this.commits.run(() => this.parts.state.commit([change]));
  }

  /** Commits changes that no request has caused, together with what else happens at the moment. */
  run<Result>(work: () => Result): Promise<Result> {
    return this.commits.run(work);
  }

  /** Commits what still waits. */
  close(): void {
    this.commits.close();
  }

  /** Answers a request that is not one of the page's, for whoever sends it. */
  async extra(
    request: WorldRequest,
    answer: (caller: AuthenticatedCaller) => WorldResponse | Promise<WorldResponse>,
  ): Promise<WorldResponse> {
    const entered = await this.commits.run(() => {
      const found = this.world.enter(this.now(), request);
      this.parts.state.commit(found.changes);
      return found;
    });
    return "refused" in entered ? entered.refused : answer(entered.caller);
  }

  /** A change that decides a task, for a transaction of the caller's. */
  decision(task: Pick<TaskRecord, "id" | "dueAt">, error: string | null, outputs?: string[]): Change {
    return this.world.decide(this.now(), task, error, outputs);
  }

  private now(): number {
    return this.parts.clock.now();
  }
}
