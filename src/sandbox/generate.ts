import { createHash } from "node:crypto";
import { type InputField, inputFields, mediaFields, requiredFor } from "../api/inputs.js";
import type { Random } from "../clock.js";
import { refuse, type WorldRequest } from "./answers.js";
import type { Caller } from "./authenticate.js";
import { outputExtension, type SandboxModel } from "./catalogue.js";
import { fromMicro, toMicro } from "./credits.js";
import { inputProblem } from "./input-address.js";
import { jsonObject } from "./request-body.js";
import type { TaskRecord } from "./state.js";

export interface GenerateSettings {
  models: ReadonlyMap<string, SandboxModel>;
  /** Overrides every model's own duration. */
  taskMs: { min: number; max: number } | undefined;
  /** Whether media fields may name local files. */
  localInputs: boolean;
}

/**
 * The task that a generate request asks for. Throws what is wrong in this order: the body, the model, its inputs,
 * its params, the credits.
 */
export function createTask(
  settings: GenerateSettings,
  random: Random,
  caller: Caller,
  request: WorldRequest,
  now: number,
): TaskRecord {
  const body = jsonObject(request);
  const model = namedModel(settings, body);
  const inputs = givenInputs(settings, model, body);
  const params = completeParams(model, body["params"]);
  const costMicro = toMicro(model.credits);
  if (caller.account.balanceMicro < costMicro) {
    const balance = fromMicro(caller.account.balanceMicro);
    throw refuse(
      "INSUFFICIENT_CREDITS",
      `${model.key} costs ${model.credits} credits and the balance is ${balance}.`,
    );
  }
  const { min, max } = settings.taskMs ?? model.taskMs;
  const fetched = mediaFields.some((field) => inputs[field] !== undefined);
  const id = random.uuid();
  return {
    id,
    externalId: `sandbox-${createHash("sha256").update(id).digest("hex").slice(0, 16)}`,
    accountId: caller.account.id,
    keyId: caller.key.id,
    model: model.key,
    category: model.category,
    // Fields of the body win over params of the same name: the page puts both into one object.
    input: { ...inputs, ...params, ...inputs },
    costMicro,
    createdAt: now,
    dueAt: now + Math.round(min + random.next() * (max - min)),
    ...outcomeOf(inputs.prompt ?? "", fetched),
    seenFinal: false,
    refunded: false,
    outputs: [outputExtension(model, params)],
  };
}

function namedModel(settings: GenerateSettings, body: Record<string, unknown>): SandboxModel {
  const name = body["model"];
  if (name === undefined || name === null || name === "") {
    throw refuse("MISSING_MODEL", "The request names no model.");
  }
  const model = typeof name === "string" ? settings.models.get(name) : undefined;
  if (!model) throw refuse("INVALID_MODEL", `There is no model ${JSON.stringify(name)}.`);
  return model;
}

function givenInputs(settings: GenerateSettings, model: SandboxModel, body: Record<string, unknown>) {
  const inputs: Partial<Record<InputField, string>> = {};
  for (const field of inputFields) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string") throw refuse("INVALID_REQUEST", `${field} is to be a string.`);
    if (value.trim() === "") continue;
    const problem = field === "prompt" ? null : inputProblem(value, settings.localInputs);
    if (problem) throw refuse("INVALID_REQUEST", `${field} ${problem}`);
    inputs[field] = value;
  }
  const missing = requiredFor(model.inputType).filter((field) => inputs[field] === undefined);
  if (missing.length === 0) return inputs;
  throw refuse(
    "INVALID_REQUEST",
    `${model.key} takes ${model.inputType} and needs ${missing.join(" and ")}.`,
  );
}

/** The params that will be used: the given ones, checked against the model's lists, and the defaults of the others. */
function completeParams(model: SandboxModel, given: unknown): Record<string, string> {
  const params = Object.fromEntries(model.parameters.map((parameter) => [parameter.key, parameter.default]));
  if (given === undefined || given === null) return params;
  if (typeof given !== "object" || Array.isArray(given)) {
    throw refuse("INVALID_REQUEST", "params is to be an object of strings.");
  }
  for (const [key, value] of Object.entries(given)) {
    const parameter = model.parameters.find((candidate) => candidate.key === key);
    if (!parameter) {
      const known = model.parameters.map((candidate) => candidate.key).join(", ");
      throw refuse(
        "INVALID_REQUEST",
        `${model.key} has no parameter ${JSON.stringify(key)}; it has ${known}.`,
      );
    }
    const option = parameter.options.find((candidate) => candidate.value === value);
    if (!option) {
      const values = parameter.options.map((candidate) => candidate.value).join(", ");
      throw refuse("INVALID_REQUEST", `${key} is ${JSON.stringify(value)}, but may be one of ${values}.`);
    }
    params[key] = option.value;
  }
  return params;
}

/** Marked prompts fail in the marked way; a task with inputs to fetch is decided when they have arrived. */
function outcomeOf(prompt: string, fetched: boolean): Pick<TaskRecord, "outcome" | "error"> {
  if (prompt.includes("[[moderation]]")) {
    return { outcome: "failed", error: "The prompt was rejected by content moderation." };
  }
  if (prompt.includes("[[provider-error]]")) {
    return { outcome: "failed", error: "The provider could not complete the generation." };
  }
  return { outcome: fetched ? null : "completed", error: null };
}
