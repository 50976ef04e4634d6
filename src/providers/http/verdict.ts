import { JobLater, JobRefused, type Json } from "../provider.js";
import { fromProvider, type ProviderAnswer, retryAfterMs } from "../send.js";
import { type CostPlace, type ErrorPlaces, msOf, type Rule, type Where } from "./description.js";
import { find, findText } from "./query.js";

/** An answer with its JSON; undefined if it has none. */
export interface AnswerWithJson extends ProviderAnswer {
  json: Json | undefined;
}

export function withJson(answer: ProviderAnswer): AnswerWithJson {
  return { ...answer, json: isMedia(answer) ? undefined : jsonOf(answer.body) };
}

function jsonOf(body: Buffer): Json | undefined {
  try {
    const json = JSON.parse(new TextDecoder().decode(body)) as Json;
    return typeof json === "object" && json !== null ? json : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the answer is the result itself. */
export function isMedia({ headers, body }: ProviderAnswer): boolean {
  return (
    /^\s*((image|audio|video)\/|application\/octet-stream)/i.test(headers["content-type"] ?? "") &&
    body.length > 0
  );
}

export function isGood({ status }: ProviderAnswer): boolean {
  return status >= 200 && status < 300;
}

export function textAt(answer: AnswerWithJson, where: Where | undefined): string | null {
  if (where === undefined) return null;
  return typeof where === "string"
    ? findText(answer.json, where)
    : answer.headers[where.header.toLowerCase()] || null;
}

export function costOf(
  answer: AnswerWithJson,
  place: CostPlace | undefined,
): { amount: number; unit: string } | null {
  if (place === undefined) return null;
  const { amount: where, unit } = typeof place === "string" ? { amount: place, unit: "credits" } : place;
  const amount = Number(textAt(answer, where) ?? Number.NaN);
  return Number.isFinite(amount) && amount >= 0 ? { amount, unit } : null;
}

/**
 * What a complete answer to a submit means where the description does not say. What a server says of its own trouble (5xx) may
 * come after the job was accepted, and so may a redirection to a result (303) and a conflict with itself (409).
 */
export const usualRules: readonly Rule[] = [
  { status: 429, is: "later" },
  { status: [401, 402, 403, 404, 405, 410], is: "final", billed: false },
  { status: [301, 307, 308], is: "final", billed: false },
  { status: [411, 413, 414, 415, 431], is: "input", billed: false },
  { status: [400, 422], is: "parameter", billed: false },
];

const usualPlaces = {
  code: "not_null(error.code, error.type, code, detail.code, error_type, detail.status, detail[0].type)",
  message:
    "not_null(error.message, error, message, detail.message, detail[0].msg && detail[].msg, detail, errors[0].message, errors[0], title)",
};

/** The rule that fits an answer, and the words for it. */
export interface Ruling {
  rule: Rule;
  message: string;
  /** How long the answer asks to wait (ms); null if it does not say. */
  delayMs: number | null;
}

export interface Judge {
  /** As the models file names the provider. */
  provider: string;
  places: ErrorPlaces | undefined;
  now: number;
  key: string | null;
}

export function verdict(answer: AnswerWithJson, rules: readonly Rule[], judge: Judge): Ruling | null {
  const { code, delay } = placesOf(judge);
  const said = textOf(find(answer.json, code));
  const rule = rules.find(
    (one) =>
      fitsStatus(one.status, answer.status) &&
      (one.code === undefined || (said !== null && new RegExp(one.code).test(said))),
  );
  if (rule === undefined) return null;
  const delayMs = delay === undefined ? null : seconds(findText(answer.json, delay));
  return {
    rule,
    message: words(answer, judge),
    delayMs: delayMs ?? retryAfterMs(answer.headers, judge.now),
  };
}

function fitsStatus(wanted: Rule["status"], status: number): boolean {
  // What does not name a status is about errors.
  if (wanted === undefined) return status >= 400;
  return [wanted]
    .flat()
    .some((one) => (typeof one === "number" ? one === status : one[0] === String(status)[0]));
}

/** Text as in `17s` or `17.5`, as milliseconds. */
function seconds(text: string | null): number | null {
  const number = /^(\d+(?:\.\d+)?)s?$/.exec(text?.trim() ?? "")?.[1];
  return number === undefined ? null : Math.ceil(Number(number) * 1000);
}

/** The provider's own words; where it has none, its status. */
export function words(answer: AnswerWithJson, judge: Judge): string {
  const found = textOf(find(answer.json, placesOf(judge).message));
  return found === null ? `${judge.provider} answered ${answer.status}` : fromProvider(found, judge.key);
}

function placesOf({ places }: Judge): { code: string; message: string; delay?: string | undefined } {
  const own = typeof places === "string" ? { message: places } : places;
  return {
    code: own?.code ?? usualPlaces.code,
    message: own?.message ?? usualPlaces.message,
    delay: own?.delay,
  };
}

function textOf(found: Json): string | null {
  if (typeof found === "string") return found.trim() === "" ? null : found;
  if (Array.isArray(found)) return found.map(textOf).filter(Boolean).join(" ") || null;
  return typeof found === "number" ? String(found) : null;
}

const laterMs = 60_000;
/** A provider that asks to be asked again at once is not. */
const laterMsMin = 1000;

/** Throws what a verdict on a submit means. */
export function throwVerdict({ rule, message, delayMs }: Ruling): void {
  const { is, billed, after, scope } = rule;
  if (is === "unknown") return;
  if (is === "later") {
    const askedMs = delayMs ?? (after === undefined ? laterMs : msOf(after));
    throw new JobLater(message, Math.max(askedMs, laterMsMin), scope ?? "provider");
  }
  throw new JobRefused(
    is === "final" ? "provider" : is,
    message,
    is === "final" ? (billed ?? false) : (billed ?? null),
  );
}

/** What is odd about an answer, for people. */
export function oddity(answer: AnswerWithJson, expected: string): string {
  const { status, body, json } = answer;
  const text = body.subarray(0, 200).toString("latin1").trimStart();
  const what =
    body.length === 0
      ? "nothing"
      : json !== undefined
        ? `JSON without ${expected}`
        : text.startsWith("<")
          ? "a web page"
          : /^[{[]/.test(text)
            ? "JSON that is not complete"
            : "text that is no JSON";
  return `answered ${status} with ${what}`;
}
