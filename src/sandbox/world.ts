import type { Random } from "../clock.js";
import { errorAnswer, Refusal, refuse, succeed, type WorldRequest, type WorldResponse } from "./answers.js";
import { authenticate, type Caller, requireSubscription } from "./authenticate.js";
import { createTask, type GenerateSettings } from "./generate.js";
import { admit } from "./limiter.js";
import { listModels } from "./list-models.js";
import { creationView, isFinal, meView, taskView } from "./present.js";
import { route } from "./route.js";
import { checkSignature, parseFilePath, signedPath } from "./signing.js";
import type { Change, TaskRecord, WorldState } from "./state.js";

export interface WorldSettings extends GenerateSettings {
  /** Signs output URLs. */
  secret: string;
  /** How long a signed URL is good. */
  urlMs: number;
  /** What the paths of output URLs are put behind, without a slash at the end. */
  origin: () => string;
}

export interface Applied {
  response: WorldResponse;
  changes: Change[];
}

/**
 * The service without its sockets: a request and an instant in, an answer and the changes of the state out. Nothing
 * here touches a clock, a file or the network, so it runs in a simulation as it does behind HTTP. Whoever calls
 * `apply` commits the changes before the answer leaves and before the next call.
 */
export class World {
  constructor(
    private readonly settings: WorldSettings,
    private readonly state: WorldState,
    private readonly random: Random,
  ) {}

  /** Answers one API request. Never throws for anything a request can contain. */
  apply(now: number, request: WorldRequest): Applied {
    const changes: Change[] = [];
    try {
      return { response: this.answer(now, request, changes), changes };
    } catch (error) {
      if (error instanceof Refusal) return { response: errorAnswer(error), changes };
      throw error;
    }
  }

  /** The task and output that a signed URL names, or the answer that refuses it. Needs no key. */
  file(now: number, path: string, query: Readonly<Record<string, string>>): FileLookup {
    const verdict = checkSignature(this.settings.secret, path, query, now);
    if (verdict === "expired")
      return refusedFile(403, "URL_EXPIRED", "This URL has expired: GET the task for a new one.");
    if (verdict === "wrong") return refusedFile(403, "URL_INVALID", "The signature of this URL is wrong.");
    const name = parseFilePath(path);
    const task = name ? this.state.task(name.taskId) : undefined;
    const extension = name ? task?.outputs[name.number - 1] : undefined;
    if (!name || !task || extension !== name.extension || task.outcome !== "completed") {
      return refusedFile(404, "FILE_NOT_FOUND", "There is no such file.");
    }
    return { task, number: name.number };
  }

  /** What becomes of a task whose inputs were judged at `now`: `error` says what was wrong with them, or null. */
  decide(now: number, task: TaskRecord, error: string | null): Change {
    const outcome = error === null ? "completed" : "failed";
    return { kind: "outcome decided", taskId: task.id, outcome, error, dueAt: Math.max(task.dueAt, now) };
  }

  private answer(now: number, request: WorldRequest, changes: Change[]): WorldResponse {
    const { endpoint, taskId } = route(request);
    const stored = authenticate(this.state, request);
    changes.push({ kind: "request counted", keyId: stored.key.id });
    const caller = this.withRefunds(now, stored, changes);
    if (endpoint !== "me") requireSubscription(caller.account, now);
    admit(this.state, caller.account, now);
    changes.push({
      kind: "request admitted",
      accountId: caller.account.id,
      n: caller.account.admitted + 1,
      at: now,
    });
    switch (endpoint) {
      case "generate":
        return this.generate(now, caller, request, changes);
      case "task":
        return this.task(now, caller, taskId, changes);
      case "models":
        return succeed(listModels([...this.settings.models.values()], request.query));
      case "me":
        return succeed(meView(caller));
    }
  }

  /**
   * The caller as of now: this request counted, and the credits given back of every failed task whose end has come,
   * whether or not anybody looked at it.
   */
  private withRefunds(now: number, { key, account }: Caller, changes: Change[]): Caller {
    let { balanceMicro } = account;
    let { usedMicro } = key;
    for (const task of this.state.refundsDue(account.id, now)) {
      const { id: taskId, accountId, keyId, costMicro: micro } = task;
      changes.push({ kind: "task refunded", taskId, accountId, keyId, micro });
      balanceMicro += micro;
      if (keyId === key.id) usedMicro -= micro;
    }
    return {
      key: { ...key, usedMicro, requestsCount: key.requestsCount + 1 },
      account: { ...account, balanceMicro },
    };
  }

  private generate(now: number, caller: Caller, request: WorldRequest, changes: Change[]): WorldResponse {
    const task = createTask(this.settings, this.random, caller, request, now);
    const { accountId, keyId, costMicro: micro } = task;
    changes.push({ kind: "task created", task }, { kind: "task charged", accountId, keyId, micro });
    return succeed(creationView(task, caller.account.balanceMicro - micro));
  }

  private task(now: number, caller: Caller, taskId: string, changes: Change[]): WorldResponse {
    const task = this.state.task(taskId);
    if (task?.accountId !== caller.account.id) throw refuse("TASK_NOT_FOUND", "There is no such task.");
    if (isFinal(task, now) && !task.seenFinal) changes.push({ kind: "final state seen", taskId });
    return succeed(taskView(task, now, () => this.outputUrls(now, task)));
  }

  private outputUrls(now: number, task: TaskRecord): string[] {
    const { secret, urlMs, origin } = this.settings;
    return task.outputs.map((extension, index) => {
      const name = { taskId: task.id, number: index + 1, extension };
      return origin() + signedPath(secret, name, now + urlMs);
    });
  }
}

export type FileLookup = { task: TaskRecord; number: number } | { refused: WorldResponse };

function refusedFile(status: number, code: string, message: string): FileLookup {
  return { refused: errorAnswer(new Refusal(status, code, message)) };
}
