import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { asRecord } from "../../../src/api/values.js";
import type { SwitchSettings } from "../../../src/service/state/switches.js";
import type { Answer } from "./subject.js";
import type { Tour } from "./tour.js";

/**
 * What a service does where its page is silent, read off a tour: as sentences for people, and as switches that a
 * sandbox can play. Switches that a tour cannot show keep their defaults.
 */
export interface Profile {
  notes: string[];
  switches: SwitchSettings;
}

export function profileOf(tour: Tour): Profile {
  const parametersLeftOut = tour.modelsBare.body.models[0]?.parameters === undefined ? "absent" : "empty";
  const badFilter = tour.badCategory.status === 200 ? "ignored" : "refused";
  const signing = sameUrls(tour) ? "once" : "each-look";
  const requestIds = tour.meFirst.headers["x-request-id"] !== undefined;
  const rateLimitHeaders = tour.meFirst.headers["ratelimit-remaining"] !== undefined;
  const errorShape = shapeOf(tour.missingModel);
  const number = tour.final.body.output_urls?.length ?? 1;
  const { counted, note } = countOf(tour);
  const { credits_cost: listed, model_key: key } = tour.cheapest;
  const charged = tour.created.body.credits_consumed;
  return {
    switches: {
      parametersLeftOut,
      badFilter,
      signing,
      requestIds,
      rateLimitHeaders,
      errorShape,
      ...(counted ? { requestsCount: counted } : {}),
      ...(charged === listed ? {} : { price: { models: { [key]: charged } } }),
      outputs: { number: Math.min(4, Math.max(1, number)) },
    },
    notes: [
      `parameters left out: ${parametersLeftOut}`,
      `category=smell: ${badFilter} (${tour.badCategory.status})`,
      `a generate without its prompt: ${tour.missingPrompt.status} ${JSON.stringify(tour.missingPrompt.body)}`,
      `an error: ${JSON.stringify(tour.missingModel.body)}`,
      `URLs: ${signing === "once" ? "the same at each look" : "signed anew at each look"}`,
      `${key} is listed at ${listed} and charged ${charged}`,
      `outputs of one generation: ${number}`,
      note,
      `headers: ${Object.keys(tour.meFirst.headers).sort().join(", ")}`,
    ],
  };
}

/** Saves the switches where a sandbox can read them. */
export function saveProfile(profile: Profile, file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(profile.switches, null, 2)}\n`);
}

function sameUrls({ final, finalAgain }: Tour): boolean {
  return JSON.stringify(final.body.output_urls) === JSON.stringify(finalAgain.body.output_urls);
}

function shapeOf({ body }: Answer): NonNullable<SwitchSettings["errorShape"]> {
  const { code, error } = asRecord(body);
  if (typeof error === "string") return "string";
  return typeof code === "string" ? "flat" : "nested";
}

/**
 * Between the first two GET me lie models without fault and generates that were refused for their content; how much
 * the count grew tells which were counted.
 */
function countOf(tour: Tour): { counted: SwitchSettings["requestsCount"]; note: string } {
  const grown = tour.meBefore.body.api_key.requests_count - tour.meFirst.body.api_key.requests_count;
  const statuses = [tour.models, tour.modelsBare, tour.modelsOfCategory, tour.badCategory];
  const posts = [tour.missingModel, tour.invalidModel, tour.missingPrompt].length;
  const good = statuses.filter((answer) => answer.status === 200).length;
  // The second GET me counts itself, as the first did.
  const expected = { all: statuses.length + posts + 1, succeeded: good + 1, generates: posts };
  const counted = (Object.keys(expected) as (keyof typeof expected)[]).find(
    (rule) => expected[rule] === grown,
  );
  const note = `requests_count grew by ${grown} over ${expected.all} requests: ${counted ?? "no rule known"}`;
  return { counted, note };
}
