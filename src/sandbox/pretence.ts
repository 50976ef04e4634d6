import { hash } from "node:crypto";
import type { Random } from "../clock.js";
import type { WorldFault } from "../service/answers/answers.js";
import { outputExtension } from "../service/models/familiar-params.js";
import type { TakenTask, WantedTask, Workshop } from "../service/world/generate.js";
import type { SandboxModel } from "./catalogue/model.js";

/** The latest valid date. */
const never = 8.64e15;

/** Tasks that need nobody to do them: how long each takes, and how it ends, is known when it is taken. */
export class Pretence implements Workshop {
  /** `taskMs` overrides every model's own duration. */
  constructor(
    private readonly models: ReadonlyMap<string, Pick<SandboxModel, "taskMs">>,
    private readonly random: Random,
    private readonly taskMs?: { min: number; max: number },
  ) {}

  take({ id, model, prompt, params, fetches, outputs, request, now }: WantedTask): TakenTask {
    const { min, max } = this.taskMs ?? this.models.get(model.key)?.taskMs ?? { min: 0, max: 0 };
    const taken: TakenTask = {
      externalId: `sandbox-${hash("sha256", id).slice(0, 16)}`,
      dueAt: now + Math.round(min + this.random.next() * (max - min)),
      ...outcomeOf(prompt, fetches),
      outputs: Array.from({ length: outputs }, () => outputExtension(model, params)),
      goneAt: null,
    };
    return { ...taken, ...fated(taken, request.fault, now) };
  }
}

/** What a fault of the script makes of a new task. */
function fated(task: TakenTask, fault: WorldFault | undefined, now: number): Partial<TakenTask> {
  switch (fault?.kind) {
    case "task-fails":
      return { outcome: "failed", error: fault.error };
    case "task-never-finishes":
      // Its inputs must not decide it either: if they failed, the credits would be given back.
      return { dueAt: never, outcome: task.outcome ?? "completed" };
    case "task-vanishes":
      return { goneAt: now + fault.afterMs };
    default:
      return {};
  }
}

/** Marked prompts fail in the marked way; a task with inputs to fetch is decided when they have arrived. */
function outcomeOf(prompt: string, fetches: boolean): Pick<TakenTask, "outcome" | "error"> {
  if (prompt.includes("[[moderation]]")) {
    return { outcome: "failed", error: "The prompt was rejected by content moderation." };
  }
  if (prompt.includes("[[provider-error]]")) {
    return { outcome: "failed", error: "The provider could not complete the generation." };
  }
  return { outcome: fetches ? null : "completed", error: null };
}
