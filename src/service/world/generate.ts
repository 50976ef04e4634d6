import { type InputField, inputFields, mediaFields, requiredFor } from "../../api/inputs.js";
import type { Random } from "../../clock.js";
import { refuse, type WorldRequest } from "../answers/answers.js";
import { jsonObject } from "../answers/request-body.js";
import { creditsWith, type SelectParameter, type ServiceModel, select } from "../models/model.js";
import { fromMicro, type TaskRecord, toMicro } from "../state/state.js";
import type { Switches } from "../state/switches.js";
import type { AuthenticatedCaller } from "./authenticate.js";

/** Who does the tasks. */
export interface Workshop {
  /**
   * What a task is when it is taken; its request is valid and can be paid. Throws a refusal if it cannot be taken now.
   */
  take(wanted: WantedTask): TakenTask;
}

export interface WantedTask {
  id: string;
  model: ServiceModel;
  /** "" if there is none. */
  prompt: string;
  /** Complete. */
  params: Readonly<Record<string, string>>;
  /** Whether it has media to be fetched. */
  fetches: boolean;
  /** How many files are asked for. */
  outputs: number;
  request: WorldRequest;
  now: number;
}

/** What only who does the task knows of it. */
export type TakenTask = Pick<TaskRecord, "externalId" | "dueAt" | "outcome" | "error" | "outputs" | "goneAt">;

export interface GenerateSettings {
  models: ReadonlyMap<string, ServiceModel>;
  workshop: Workshop;
  /** What is wrong with the value of a media field, to be read after the field's name; null when nothing is. */
  inputProblem: (value: string) => string | null;
  switches: Switches;
}

/**
 * The task for a generate request. Throws the first problem in this order: the body, the model, its inputs, its params,
 * the credits.
 */
export function createTask(
  settings: GenerateSettings,
  random: Random,
  caller: AuthenticatedCaller,
  request: WorldRequest,
  now: number,
): TaskRecord {
  const body = jsonObject(request);
  const model = namedModel(settings, body);
  const inputs = givenInputs(settings, model, body);
  const params = completeParams(settings, model, body["params"]);
  const outputs = outputsAskedFor(settings.switches, params);
  const costMicro = priceMicro(settings.switches, model, params, outputs);
  if (caller.account.balanceMicro < costMicro) {
    const balance = fromMicro(caller.account.balanceMicro);
    throw refuse(
      "INSUFFICIENT_CREDITS",
      `${model.key} costs ${fromMicro(costMicro)} credits and the balance is ${balance}.`,
    );
  }
  const id = newTaskId(random, now);
  const taken = settings.workshop.take({
    id,
    model,
    prompt: inputs.prompt ?? "",
    params,
    fetches: mediaFields.some((field) => inputs[field] !== undefined),
    outputs,
    request,
    now,
  });
  return {
    id,
    accountId: caller.account.id,
    keyId: caller.key.id,
    model: model.key,
    category: model.category,
    // Fields of the body win over params of the same name: the page puts both into one object.
    input: { ...inputs, ...params, ...inputs },
    costMicro,
    createdAt: now,
    seenFinal: false,
    refunded: false,
    ...taken,
  };
}

function namedModel(settings: GenerateSettings, body: Record<string, unknown>): ServiceModel {
  const name = body["model"];
  if (name === undefined || name === null || name === "") {
    throw refuse("MISSING_MODEL", "The request names no model.");
  }
  const model = typeof name === "string" ? settings.models.get(name) : undefined;
  if (!model) throw refuse("INVALID_MODEL", `There is no model ${JSON.stringify(name)}.`);
  return model;
}

function givenInputs(settings: GenerateSettings, model: ServiceModel, body: Record<string, unknown>) {
  const inputs: Partial<Record<InputField, string>> = {};
  for (const field of inputFields) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string") throw refuse("INVALID_REQUEST", `${field} must be a string.`);
    if (value.trim() === "") continue;
    const problem = field === "prompt" ? null : settings.inputProblem(value);
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
function completeParams(
  { switches }: GenerateSettings,
  model: ServiceModel,
  given: unknown,
): Record<string, string> {
  const preset = model.parameters.filter((parameter) => parameter.default !== "");
  const params = Object.fromEntries(preset.map((parameter) => [parameter.key, parameter.default]));
  if (given === undefined || given === null) return params;
  if (typeof given !== "object" || Array.isArray(given)) {
    throw refuse("INVALID_REQUEST", "params must be an object of strings.");
  }
  for (const [key, value] of Object.entries(given)) {
    const parameter = model.parameters.find((candidate) => candidate.key === key);
    const allowed = parameter && allowedValue(parameter, value);
    if (allowed !== undefined) params[key] = allowed;
    else if (switches.badParams === "refused") throw badParam(model, parameter, key, value);
  }
  return params;
}

function allowedValue({ options }: SelectParameter, value: unknown): string | undefined {
  if (options.length > 0) return options.find((option) => option.value === value)?.value;
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
}

function badParam(model: ServiceModel, parameter: SelectParameter | undefined, key: string, value: unknown) {
  if (parameter?.options.some((option) => option.value === String(value))) {
    const quoted = JSON.stringify(String(value));
    return refuse(
      "INVALID_REQUEST",
      `${key} is the ${typeof value} ${value}, but must be a string: ${quoted}.`,
    );
  }
  if (parameter?.options.length === 0)
    return refuse("INVALID_REQUEST", `${key} is ${JSON.stringify(value)}, but must be a string.`);
  if (parameter) {
    const values = parameter.options.map((candidate) => candidate.value).join(", ");
    return refuse("INVALID_REQUEST", `${key} is ${JSON.stringify(value)}, but may be one of ${values}.`);
  }
  const known = model.parameters.map((candidate) => candidate.key).join(", ") || "none";
  return refuse("INVALID_REQUEST", `${model.key} has no parameter ${JSON.stringify(key)}; it has ${known}.`);
}

/** What one generation is charged, in millionths of a credit: the listed cost, unless the switches say otherwise. */
function priceMicro(
  { price }: Switches,
  model: ServiceModel,
  params: Readonly<Record<string, string>>,
  outputs: number,
): number {
  const listed = Object.hasOwn(price.models, model.key) ? price.models[model.key] : undefined;
  const credits = listed ?? creditsWith(model, params) * price.factor;
  return toMicro(credits) * (price.perOutput ? outputs : 1);
}

/**
 * The id of a new task: a version 7 UUID (RFC 9562), which begins with the instant. Ids that grow with time go to the
 * end of the index of tasks; purely random ones would each dirty a page of their own.
 */
function newTaskId(random: Random, now: number): string {
  const time = Math.max(0, now).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.uuid().slice(15)}`;
}

/** The models as they are listed: each with the parameter for the number of outputs, if there is to be one. */
export function withOutputs<Model extends ServiceModel>(
  models: readonly Model[],
  { outputs }: Switches,
): Model[] {
  const { parameter: key, number } = outputs;
  if (key === null) return [...models];
  const parameter = select(key, "Outputs", ["1", "2", "3", "4"], String(number));
  return models.map((model) =>
    model.parameters.some((existing) => existing.key === key)
      ? model
      : { ...model, parameters: [...model.parameters, parameter] },
  );
}

/** How many files these (complete) params ask for. */
function outputsAskedFor({ outputs }: Switches, params: Readonly<Record<string, string>>): number {
  const asked = Number(outputs.parameter === null ? Number.NaN : params[outputs.parameter]);
  return Number.isInteger(asked) && asked >= 1 && asked <= 4 ? asked : outputs.number;
}
