import { expect } from "vitest";
import type { Model } from "../../../src/api/records.js";
import * as page from "./page-records.js";
import type { Answer } from "./subject.js";
import { codeOf, prompt, requestsMax, type Tour } from "./tour.js";

/** A sentence of the page, and what must be true of a tour if the service keeps it. */
export type Sentence = readonly [says: string, holds: (tour: Tour) => void];

const refused = (answer: Answer, status: number, code: string) =>
  expect([answer.status, codeOf(answer)]).toEqual([status, code]);

const authentication: Sentence[] = [
  [
    "Every request requires an API key: without one, 401 MISSING_API_KEY",
    (t) => refused(t.noKey, 401, "MISSING_API_KEY"),
  ],
  [
    "A key without the prefix svc_ is answered 401 INVALID_API_KEY_FORMAT",
    (t) => refused(t.wrongForm, 401, "INVALID_API_KEY_FORMAT"),
  ],
  [
    "A key that does not exist is answered 401 INVALID_API_KEY",
    (t) => refused(t.unknownKey, 401, "INVALID_API_KEY"),
  ],
  ["The key is sent as Authorization: Bearer", (t) => expect(t.meFirst.status).toBe(200)],
  ["The key may be sent as X-API-Key", (t) => expect(t.meBefore.status).toBe(200)],
];

const account: Sentence[] = [
  [
    "GET me answers 200 with user, credits, subscription and api_key, each field of its type",
    (t) => void page.me.parse(t.meFirst.body),
  ],
  [
    "Each key has a usage record: requests_count grows with its requests, by no more than were made",
    (t) => {
      const counts = [t.meBefore, t.meAfter].map((me) => me.body.api_key.requests_count);
      const made = t.keyed.after - t.keyed.before;
      expect(counts[1] - counts[0]).toBeGreaterThan(0);
      expect(counts[1] - counts[0]).toBeLessThanOrEqual(made);
    },
  ],
];

const models: Sentence[] = [
  [
    "GET models answers 200 with models, categories and total, each field of its type",
    (t) => void page.modelList.parse(t.models.body),
  ],
  ["total is the number of models", (t) => expect(t.models.body.total).toBe(t.models.body.models.length)],
  [
    "categories maps image, video and audio each to the keys of its models",
    (t) => {
      for (const [category, keys] of Object.entries(t.models.body.categories)) {
        const own = (t.models.body.models as Model[]).filter((model) => model.category === category);
        expect(keys).toEqual(own.map((model) => model.model_key));
      }
    },
  ],
  [
    "A model_key is unique",
    (t) => {
      const keys = (t.models.body.models as Model[]).map((model) => model.model_key);
      expect(new Set(keys).size).toBe(keys.length);
    },
  ],
  [
    "The default of a select parameter is one of its options",
    (t) => {
      const all = (t.models.body.models as Model[]).flatMap((model) => model.parameters ?? []);
      for (const { options, default: given } of all) {
        expect(options?.map((option) => option.value)).toContain(given);
      }
    },
  ],
  [
    "include_parameters=false leaves the parameters out, omitted or empty, and nothing else",
    (t) => {
      expect(t.modelsBare.status).toBe(200);
      const bare = (model: Model) => ({ ...model, parameters: undefined });
      for (const model of t.modelsBare.body.models as Model[]) expect(model.parameters ?? []).toEqual([]);
      expect(t.modelsBare.body.models.map(bare)).toEqual(t.models.body.models.map(bare));
    },
  ],
  [
    "category filters the models",
    (t) => {
      const own = (t.models.body.models as Model[]).filter((model) => model.category === t.cheapest.category);
      expect(t.modelsOfCategory.body.models).toEqual(own);
      expect(t.modelsOfCategory.body.total).toBe(own.length);
    },
  ],
];

const generation: Sentence[] = [
  [
    "A generate without a model is answered 400 MISSING_MODEL",
    (t) => refused(t.missingModel, 400, "MISSING_MODEL"),
  ],
  [
    "A model that does not exist is answered 400 INVALID_MODEL",
    (t) => refused(t.invalidModel, 400, "INVALID_MODEL"),
  ],
  [
    "The prompt is required when the model's input_type is text",
    (t) => expect(t.missingPrompt.status).toBe(400),
  ],
  [
    "Only generations cost credits: what was refused did not",
    (t) => expect(t.meBefore.body.credits).toEqual(t.meFirst.body.credits),
  ],
  [
    "generate answers 200 with the task creation result, its status processing",
    (t) => {
      expect(t.created.status).toBe(200);
      const { model, category } = page.creation.parse(t.created.body);
      expect([model, category]).toEqual([t.cheapest.model_key, t.cheapest.category]);
    },
  ],
  [
    "credits_remaining is the balance after the generation",
    (t) => {
      const { credits_consumed: consumed, credits_remaining: remaining } = t.created.body;
      expect(remaining).toBeCloseTo(t.meBefore.body.credits.balance - consumed, 6);
    },
  ],
];

const tasks: Sentence[] = [
  [
    "GET task answers 200 while the task is processing: output_urls, error and completed_at are null",
    (t) => {
      expect(t.processing.status).toBe(200);
      if (t.processing.body.status === "processing") page.processingTask.parse(t.processing.body);
      else page.completedTask.parse(t.processing.body);
    },
  ],
  [
    "The task is the one that was created",
    (t) => expect(t.processing.body.task_id).toBe(t.created.body.task_id),
  ],
  [
    "Prompt and params appear as keys of the task's input",
    (t) => expect(t.processing.body.input).toMatchObject({ prompt, ...t.params }),
  ],
  [
    "A completed task has output_urls, no error, completed_at, and holds its cost",
    (t) => {
      const { credits_consumed: consumed, created_at, completed_at } = page.completedTask.parse(t.final.body);
      expect(consumed).toBe(t.created.body.credits_consumed);
      expect(Date.parse(completed_at)).toBeGreaterThanOrEqual(Date.parse(created_at));
    },
  ],
  ["An output is fetched by its signed URL alone", (t) => expect([200, null]).toContain(t.downloaded)],
  [
    "No transition leaves completed",
    (t) => expect({ ...t.finalAgain.body, output_urls: 0 }).toEqual({ ...t.final.body, output_urls: 0 }),
  ],
  [
    "A task that does not exist is answered 404 TASK_NOT_FOUND",
    (t) => refused(t.unknownTask, 404, "TASK_NOT_FOUND"),
  ],
  [
    "Credits are deducted when the generation is accepted, from the balance and into used_this_key",
    (t) => {
      const [before, after] = [t.meBefore.body.credits, t.meAfter.body.credits];
      const consumed = t.created.body.credits_consumed;
      expect(after.balance).toBeCloseTo(before.balance - consumed, 6);
      expect(after.used_this_key).toBeCloseTo(before.used_this_key + consumed, 6);
    },
  ],
];

const modesty: Sentence[] = [
  ["(The suite stays under twenty requests.)", (t) => expect(t.requests).toBeLessThanOrEqual(requestsMax)],
];

export const tourSentences: readonly Sentence[] = [
  ...authentication,
  ...account,
  ...models,
  ...generation,
  ...tasks,
  ...modesty,
];
