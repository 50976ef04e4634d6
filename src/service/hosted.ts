import type { Clock, Random } from "../clock.js";
import type { WorldRequest, WorldResponse } from "./answers/answers.js";
import type { FileAnswer } from "./answers/reply.js";
import { GroupCommit } from "./state/group-commit.js";
import type { SqliteState } from "./state/sqlite-state.js";
import type { TaskRecord } from "./state/state.js";
import { World, type WorldSettings } from "./world/world.js";

/** Who makes the outputs of tasks. */
export interface OutputMaker {
  /** A task has been taken and is on record; its outcome is still open. */
  begin(task: TaskRecord): void;
  /** One output of a completed task, numbered from 1, or the answer that says why it is not there. */
  output(task: TaskRecord, number: number): Promise<FileAnswer | WorldResponse>;
}

export interface HostedParts {
  clock: Clock;
  random: Random;
  state: SqliteState;
  world: WorldSettings;
  maker: OutputMaker;
  /** Gets the service's own failures, such as a full disk; callers only see an internal error. */
  onError?: ((error: Error) => void) | undefined;
}

/** The service without its socket: the world on its state, and whoever makes the outputs. */
export class HostedService {
  private readonly world: World;
  private readonly commits = new GroupCommit((work) => this.parts.state.transact(work));

  constructor(private readonly parts: HostedParts) {
    this.world = new World(parts.world, parts.state, parts.random);
  }

  /** Answers an API request; its changes are committed when it resolves. */
  async api(request: WorldRequest): Promise<WorldResponse> {
    const { state, maker, onError } = this.parts;
    const work = () => {
      const applied = this.world.apply(this.now(), request);
      state.commit(applied.changes);
      return applied;
    };
    const applied = await this.commits.run(work).catch((error: Error) => error);
    if (applied instanceof Error) {
      onError?.(applied);
      return this.world.failed(request);
    }
    for (const change of applied.changes) {
      if (change.kind === "task created" && change.task.outcome === null) maker.begin(change.task);
    }
    return applied.response;
  }

  /** The file of a signed URL, or the answer that refuses it. */
  async file(path: string, query: Record<string, string>): Promise<FileAnswer | WorldResponse> {
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

  private now(): number {
    return this.parts.clock.now();
  }
}
