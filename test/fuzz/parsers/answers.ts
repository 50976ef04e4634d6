import { isIP, type LookupFunction } from "node:net";
import { expect } from "vitest";
import { refusingStatuses } from "../../../src/api/errors.js";
import { contentOf, readMe as meIn, readModels as modelsIn } from "../../../src/api/reading.js";
import { me as meRecord, model } from "../../../src/api/records.js";
import { parseJson } from "../../../src/api/values.js";
import { AddressRefused, addressRule } from "../../../src/archive/download/address.js";
import { Checksums } from "../../../src/archive/download/checksum.js";
import { strongTag } from "../../../src/archive/download/partial.js";
import { answerText, generateOutcome, servedAt, taskOutcome } from "../../../src/client/answer.js";
import { retryAfterMs } from "../../../src/core/again.js";
import { EarlyExit } from "../../../src/core/exit.js";
import type { Reply } from "../../../src/core/ports/send.js";
import { silentLog } from "../../../src/library/service.js";
import { conclusionOf } from "../../../src/run/conclude.js";
import { answerLine, conclusionIn, lineIn } from "../../../src/run/receipts/receipt-lines.js";
import { usableModels } from "../../../src/workspace/account.js";
import { checkedAddress } from "../../../src/workspace/connection.js";
import { me, models, planOf } from "../../plan/account.js";
import type { Outcome, Parser } from "../cases.js";

/** What a service answers: bodies of every endpoint, headers, and addresses. */

const now = Date.UTC(2026, 10, 20);
const json =
  (...documents: unknown[]) =>
  () =>
    documents.map((each) => Buffer.from(JSON.stringify(each)));
const bodyWords = [
  ...'{ } [ ] , : " null true 0 4.5 -1 1e999 NaN Infinity'.split(" "),
  ..."task_id status completed failed processing output_urls credits_consumed error code message"
    .split(" ")
    .map((word) => `"${word}":`),
  '"x"',
  "<html>",
  "\n",
];
const statuses = [200, 201, 204, 302, 400, 401, 402, 403, 404, 409, 422, 429, 500, 502, 503];

type Answer = Extract<Reply, { kind: "answer" }>;

function answers(body: string): Answer[] {
  const headers = { date: "Fri, 20 Nov 2026 00:00:00 GMT", "content-type": "application/json" };
  return statuses.map((status) => ({ kind: "answer", status, headers, body }));
}

/** One line without control characters, and not long. */
function isForPeople(text: string): void {
  expect(text).not.toMatch(/\p{Cc}/u);
  expect(text.length).toBeLessThan(1_000);
}

/** P1, P2: what an answer to a paid request means, and that the receipts keep it. */
function readGenerate(bytes: Buffer): Outcome {
  const body = bytes.toString("utf8");
  const named = contentOf(parseJson(body), ["task_id"])?.["task_id"];
  const told = Number.isSafeInteger(named) && (named as number) >= 0 ? String(named) : named;
  const isReadable = typeof told === "string" && told !== "" && told.length <= 1_024;
  for (const reply of answers(body)) {
    const outcome = generateOutcome(reply);
    const isRefused = [400, 401, 402, 403, 404, 429, ...refusingStatuses].includes(reply.status);
    const kind = isRefused ? outcome.kind : "unknown";
    if (reply.status < 300 && isReadable) expect(outcome).toMatchObject({ kind: "accepted", taskId: told });
    else expect(outcome.kind).toBe(kind);
    if (kind !== "unknown") expect(["refused", "rejected"]).toContain(outcome.kind);
    isForPeople(answerText(reply));
    const conclusion = conclusionOf(outcome, now);
    const line = answerLine(
      { jobName: "j" } as never,
      { key: "k" } as never,
      { number: 1 } as never,
      conclusion,
    );
    const kept = lineIn(JSON.stringify({ at: new Date(now).toISOString(), ...line }));
    expect(kept?.type === "answer" && conclusionIn(kept)).toEqual(conclusion);
  }
  return isReadable ? "taken" : "refused";
}

/** A finished task has addresses and a price that can be calculated with; an odd answer leaves it alive. */
function readTask(bytes: Buffer): Outcome {
  const body = bytes.toString("utf8");
  const kinds = answers(body).map((reply) => {
    const outcome = taskOutcome(reply);
    if (reply.status !== 200) expect(["refused", "unclear"]).toContain(outcome.kind);
    if (outcome.kind === "unclear") expect(outcome.reason).toMatch(/./);
    if (outcome.kind === "completed" || outcome.kind === "failed") {
      expect(
        outcome.charged === null || (Number.isSafeInteger(outcome.charged) && outcome.charged >= 0),
      ).toBe(true);
      expect(
        outcome.completedAt === null ||
          !Number.isNaN(Date.parse(outcome.completedAt)) ||
          outcome.kind !== "completed",
      ).toBe(true);
    }
    if (outcome.kind === "completed") {
      expect(outcome.urls.length > 0).toBe(outcome.unusable === undefined);
      expect(outcome.urls.filter((url) => typeof url !== "string")).toEqual([]);
    }
    if (outcome.kind === "processing")
      expect(outcome.ageMs === null || Number.isFinite(outcome.ageMs)).toBe(true);
    return outcome.kind;
  });
  return kinds[0] === "unclear" ? "refused" : "taken";
}

const sheet = "id,model,prompt,params.aspect_ratio\na,paint,x,16:9\nb,animate,,\n";

/** Whatever the account says, the plan has amounts that can be shown, or says what is wrong. */
async function readMe(bytes: Buffer): Promise<Outcome> {
  const read = meIn(parseJson(bytes.toString("utf8")));
  if (read === null) return "refused";
  const { money, requests, blockers } = await planOf(sheet, { me: read.record });
  expect(money.balance === null || Number.isSafeInteger(money.balance)).toBe(true);
  expect(Number.isFinite(requests.forecast.ms)).toBe(true);
  for (const { message } of blockers) expect(message).not.toMatch(/undefined|NaN|\[object/);
  return meRecord.safeParse(read.record).success ? "taken" : "refused";
}

/** Whatever the models are, a row of a usable one is planned with a price, or has a problem. */
async function readModels(bytes: Buffer): Promise<Outcome> {
  const read = modelsIn(parseJson(bytes.toString("utf8")));
  if (read === null) return "refused";
  const { items, problems, money } = await planOf(sheet, usableModels(read.record, silentLog));
  expect(items.length + problems.length).toBeGreaterThan(0);
  for (const { price } of items) expect(Number.isSafeInteger(price) && price >= 0).toBe(true);
  expect(Number.isSafeInteger(money.needed)).toBe(true);
  return read.record.models.every((each) => model.safeParse(each).success) ? "taken" : "refused";
}

function headersIn(bytes: Buffer): Record<string, string> {
  const lines = bytes.toString("latin1").split("\n");
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...rest] = line.split(":");
      return [name.trim().toLowerCase(), rest.join(":").trim()];
    }),
  );
}

/** P11, P14: a wait is no time or a whole number of ms up to a year; a tag is used only if it is a strong one. */
function readHeaders(bytes: Buffer): Outcome {
  const headers = headersIn(bytes);
  const wait = retryAfterMs(headers, now);
  expect(wait === null || (Number.isInteger(wait) && wait >= 0 && wait <= 365 * 24 * 3_600_000)).toBe(true);
  const served = servedAt({ kind: "answer", status: 200, headers, body: "" });
  expect(served === null || Number.isFinite(served)).toBe(true);
  const tag = strongTag(headers["etag"]);
  expect(tag === null || /^"[^"]*"$/.test(tag)).toBe(true);
  new Checksums(headers).update(bytes);
  isForPeople(answerText({ kind: "answer", status: 302, headers, body: "" }));
  isForPeople(answerText({ kind: "answer", status: 500, headers, body: "<html>" }));
  return wait === null ? "refused" : "taken";
}

/** P22: no literal address that leads into this machine or its network is fetched. */
const inside =
  /^(0\.|10\.|127\.|169\.254\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|22[4-9]\.|2[3-5]\d\.|::1?$|(::ffff:|64:ff9b::)(a[\da-f]{2}|7f[\da-f]{2}|a9fe|c0a8):|f[cd]|fe[89ab])/i;

async function readUrl(bytes: Buffer): Promise<Outcome> {
  const text = bytes.toString("utf8");
  if (!URL.canParse(text)) return "refused";
  const url = new URL(text);
  try {
    await addressRule("https://service.example", publicName).check(url);
  } catch (error) {
    expect(error).toBeInstanceOf(AddressRefused);
    isForPeople((error as Error).message);
    return "refused";
  }
  expect([url.protocol, url.username, url.password]).toEqual(["https:", "", ""]);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0) expect(host).not.toMatch(inside);
  return "taken";
}

/** Whatever the name of the service, it is public. */
const publicName: LookupFunction = (_host, _options, callback) =>
  callback(null, [{ address: "93.184.216.34", family: 4 }]);

function readBaseUrl(bytes: Buffer): Outcome {
  let read: ReturnType<typeof checkedAddress>;
  try {
    read = checkedAddress(bytes.toString("utf8"));
  } catch (error) {
    expect(error).toBeInstanceOf(EarlyExit);
    return "refused";
  }
  const { origin, baseUrl } = read;
  expect(baseUrl).not.toMatch(/[?#]|\/$/);
  expect(
    new URL(baseUrl).protocol === "https:" ||
      /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$)/.test(baseUrl),
  ).toBe(true);
  // It is stable: what was kept of it is the same address.
  expect(checkedAddress(baseUrl)).toEqual({ origin, baseUrl });
  return "taken";
}

const urls = [
  "https://cdn.example/a.png?sig=1",
  "https://127.0.0.1/x",
  "https://[::ffff:10.0.0.1]/",
  "http://2130706433/",
  "https://user:pw@service.example/api/v1",
].map(Buffer.from as (text: string) => Buffer);
const urlWords = [
  ..."http https :// : / // . @ # ? % [ ] :: ffff: 10 127 0 1 0x7f 017 255 169.254.169.254 64:ff9b:: fe80 fd00 localhost service.example api v1 \\".split(
    " ",
  ),
  " ",
  "\t",
  "\u3002",
  "①",
];

export const answerParsers: Readonly<Record<string, Parser>> = {
  generate: {
    samples: json(
      {
        task_id: "t",
        external_task_id: "e",
        status: "processing",
        model: "m",
        category: "image",
        credits_consumed: 4.5,
        credits_remaining: 95.5,
      },
      { error: { code: "INSUFFICIENT_CREDITS", message: "no" } },
      { code: "X", message: "m" },
      { error: "Y" },
    ),
    words: bodyWords,
    isJson: true,
    read: readGenerate,
  },
  task: {
    samples: json(
      {
        task_id: "t",
        model: "m",
        category: "image",
        status: "completed",
        input: { prompt: "p" },
        output_urls: ["https://a.example/1"],
        error: null,
        credits_consumed: 4,
        created_at: "2026-11-20T00:00:00Z",
        completed_at: "2026-11-20T00:00:09Z",
      },
      {
        task_id: "t",
        model: "m",
        category: "image",
        status: "failed",
        input: {},
        output_urls: null,
        error: "moderation",
        credits_consumed: 0,
        created_at: "2026-11-20T00:00:00Z",
        completed_at: "2026-11-20T00:00:09Z",
      },
    ),
    words: bodyWords,
    isJson: true,
    read: readTask,
  },
  me: {
    samples: json(me(), { ...me(), subscription: null }),
    words: bodyWords,
    isJson: true,
    cases: 600,
    read: readMe,
  },
  models: {
    samples: json({ models, categories: { image: ["paint"] }, total: models.length }),
    words: bodyWords,
    isJson: true,
    cases: 600,
    read: readModels,
  },
  headers: {
    samples: () =>
      [
        "retry-after: 30\ndate: Fri, 20 Nov 2026 00:00:00 GMT",
        'retry-after: Fri, 20 Nov 2026 00:01:00 GMT\netag: "abc"',
        "content-md5: XrY7u+Ae7tCTyyK7j1rNww==\ndigest: sha-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "location: https://x.example/login?next=1\ncontent-type: text/html",
        "repr-digest: sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:\nx-goog-hash: crc32c=AAAAAA==,md5=1B2M2Y8AsgTpgAmY7PhCfg==",
      ].map((text) => Buffer.from(text)),
    words: [
      ...'retry-after: date: etag: digest: content-md5: location: W/ " = : , ; GMT Fri, Nov 2026 00:00:00 -1 1e9 99999999999999 0.5 NaN x-amz-checksum-crc32: sha-256= md5='.split(
        " ",
      ),
      " ",
      "\n",
    ],
    read: readHeaders,
  },
  urls: { samples: () => urls, words: urlWords, read: readUrl },
  "base-url": { samples: () => urls, words: urlWords, read: readBaseUrl },
};
