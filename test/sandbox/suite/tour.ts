import { errorFacts } from "../../../src/api/error-words.js";
import type { Model } from "../../../src/api/records.js";
import { type Answer, type Call, get, post, type Subject } from "./subject.js";

/**
 * Every request that the suite makes of a service that may be real: fewer than twenty, one generation with the
 * cheapest model. What the page says is then judged by the record alone.
 */
export interface Tour {
  requests: number;
  /** Requests that carried the valid key, before the first and before the last GET me. */
  keyed: { before: number; after: number };
  noKey: Answer;
  wrongForm: Answer;
  unknownKey: Answer;
  meFirst: Answer;
  models: Answer;
  modelsBare: Answer;
  modelsOfCategory: Answer;
  badCategory: Answer;
  missingModel: Answer;
  invalidModel: Answer;
  missingPrompt: Answer;
  cheapest: Model;
  params: Record<string, string>;
  meBefore: Answer;
  created: Answer;
  processing: Answer;
  final: Answer;
  finalAgain: Answer;
  downloaded: number | null;
  unknownTask: Answer;
  meAfter: Answer;
}

export const prompt = "A small red boat on a calm lake";
export const requestsMax = 19;
/** The pauses before each look at the task: a slow one is waited for, but not asked often. */
const looksMs = [30_000, 500_000];

export async function takeTour(subject: Subject): Promise<Tour> {
  const { key } = subject;
  let requests = 0;
  let keyed = 0;
  const send = (call: Call) => {
    requests++;
    if (Object.values(call.headers).some((value) => value.includes(key))) keyed++;
    return subject.send(call);
  };
  const me = "/api/v1/me";
  const noKey = await send({ method: "GET", path: me, headers: {} });
  const wrongForm = await send(get(me, "key_0123456789"));
  const unknownKey = await send(get(me, `svc_${"0".repeat(31)}x`));
  const meFirst = await send(get(me, key));
  const models = await send(get("/api/v1/models", key));
  const cheapest = cheapestOf(models);
  const modelsBare = await send(get("/api/v1/models?include_parameters=false", key));
  const modelsOfCategory = await send(get(`/api/v1/models?category=${cheapest.category}`, key));
  const badCategory = await send(get("/api/v1/models?category=smell", key));
  const missingModel = await send(post({ prompt }, key));
  const invalidModel = await send(post({ model: "no-such-model-anywhere", prompt }, key));
  const missingPrompt = await send(post({ model: cheapest.model_key }, key));
  const before = keyed;
  // Also shows that the key may come in the other header.
  const meBefore = await send({ method: "GET", path: me, headers: { "x-api-key": key } });
  const params = firstParams(cheapest);
  const created = await send(post({ model: cheapest.model_key, prompt, params }, key));
  const taskPath = `/api/v1/task/${created.body?.task_id}`;
  const processing = await send(get(taskPath, key));
  const final = await waitedFor(subject, () => send(get(taskPath, key)));
  const url = final.body?.output_urls?.[0];
  const downloaded = subject.download && typeof url === "string" ? await subject.download(url) : null;
  const finalAgain = await send(get(taskPath, key));
  const unknownTask = await send(get("/api/v1/task/00000000-0000-4000-8000-ffffffffffff", key));
  const after = keyed;
  const meAfter = await send({ method: "GET", path: me, headers: { "x-api-key": key } });
  return {
    requests,
    keyed: { before, after },
    noKey,
    wrongForm,
    unknownKey,
    meFirst,
    models,
    modelsBare,
    modelsOfCategory,
    badCategory,
    missingModel,
    invalidModel,
    missingPrompt,
    cheapest,
    params,
    meBefore,
    created,
    processing,
    final,
    finalAgain,
    downloaded,
    unknownTask,
    meAfter,
  };
}

/** The error code of an answer, in whatever shape it comes. */
export function codeOf(answer: Answer): string | null {
  return errorFacts(answer.body).code;
}

function cheapestOf(answer: Answer): Model {
  const texts = ((answer.body?.models ?? []) as Model[]).filter((model) => model.input_type === "text");
  const [cheapest] = texts.sort((left, right) => left.credits_cost - right.credits_cost);
  if (!cheapest) throw new Error(`no model takes text alone: ${JSON.stringify(answer.body)}`);
  return cheapest;
}

/** One parameter set to another value than its default, so that the task shows whether it arrived. */
function firstParams(model: Model): Record<string, string> {
  for (const { key, options, default: given } of model.parameters ?? []) {
    const other = options?.find((option) => option.value !== given);
    if (other) return { [key]: other.value };
  }
  return {};
}

async function waitedFor(subject: Subject, look: () => Promise<Answer>): Promise<Answer> {
  let answer: Answer | undefined;
  for (const ms of looksMs) {
    await subject.wait(ms);
    answer = await look();
    if (answer.body?.status !== "processing") return answer;
  }
  throw new Error(`the task is not finished: ${JSON.stringify(answer?.body)}`);
}
