import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { generateOutcome, taskOutcome } from "../../src/client/answer.js";
import { credits, noCredits } from "../../src/core/money.js";

const answer = (status: number, body: unknown) => ({
  kind: "answer" as const,
  status,
  headers: {},
  body: typeof body === "string" ? body : JSON.stringify(body),
});

describe("the answer to a paid request", () => {
  test("a 2xx with a readable task id is accepted, whatever else is odd", () => {
    expect(generateOutcome(answer(201, { task_id: "t", credits_consumed: "four" }))).toEqual({
      kind: "accepted",
      status: 201,
      taskId: "t",
      externalTaskId: null,
      charged: null,
      remaining: null,
    });
    expect(
      generateOutcome(
        answer(200, { task_id: "t", external_task_id: "x", credits_consumed: 4.5, credits_remaining: 1 }),
      ),
    ).toMatchObject({ externalTaskId: "x", charged: credits(4.5), remaining: credits(1) });
    expect(
      generateOutcome(answer(200, { task_id: "t", credits_consumed: -1e300, credits_remaining: 1e10 })),
    ).toMatchObject({ kind: "accepted", taskId: "t", charged: null, remaining: null });
  });

  test("a complete 401, 402, 403 or 429 is a refusal, with or without a known code", () => {
    for (const status of [401, 402, 403, 429]) {
      expect(generateOutcome(answer(status, "<html>"))).toMatchObject({
        kind: "refused",
        status,
        code: null,
      });
    }
    expect(
      generateOutcome(answer(402, { error: { code: "INSUFFICIENT_CREDITS", message: "low" } })),
    ).toMatchObject({
      code: "INSUFFICIENT_CREDITS",
      message: "low",
    });
    expect(generateOutcome(answer(402, { error: "INSUFFICIENT_CREDITS" }))).toMatchObject({
      code: "INSUFFICIENT_CREDITS",
    });
    expect(generateOutcome(answer(402, { code: "INSUFFICIENT_CREDITS" }))).toMatchObject({
      code: "INSUFFICIENT_CREDITS",
    });
  });

  test("a 400 rejects the item itself", () => {
    expect(generateOutcome(answer(400, { error: { code: "INVALID_MODEL" } }))).toMatchObject({
      kind: "rejected",
    });
  });

  test("P2: a 2xx without a task id, a redirect, a 5xx, HTML and other codes are unknown", () => {
    const odd = [
      answer(200, ""),
      answer(200, "<html>"),
      answer(200, { task_id: "" }),
      answer(200, { task_id: 7.5 }),
      answer(200, { task_id: {} }),
      answer(200, { task_id: "x".repeat(1_025) }),
    ];
    const codes = [204, 302, 406, 408, 409, 424, 425, 452, 499, 500, 502, 503].map((status) =>
      answer(status, { error: { code: "X" } }),
    );
    for (const reply of [...odd, ...codes])
      expect(generateOutcome(reply)).toMatchObject({ kind: "unknown", status: reply.status });
    expect(generateOutcome({ kind: "no_answer", reason: "reset" })).toEqual({
      kind: "unknown",
      reason: "no answer: reset",
    });
  });

  test("P2: only a 2xx accepts anything, whatever else names a task", () => {
    const kinds = [199, 200, 299, 300, 302, 400, 402, 422, 429, 500].map((status) => [
      status,
      generateOutcome(answer(status, { task_id: "t" })).kind,
    ]);
    expect(kinds).toEqual([
      [199, "unknown"],
      [200, "accepted"],
      [299, "accepted"],
      [300, "unknown"],
      [302, "unknown"],
      [400, "rejected"],
      [402, "refused"],
      [422, "unknown"],
      [429, "refused"],
      [500, "unknown"],
    ]);
  });

  test("an id of up to 1,024 characters is kept; a longer one of the provider is left out", () => {
    const [longest, longer] = ["x".repeat(1_024), "x".repeat(1_025)];
    const body = { task_id: longest, external_task_id: longest };
    expect(generateOutcome(answer(200, body))).toMatchObject({ taskId: longest, externalTaskId: longest });
    const odd = { task_id: "t", external_task_id: longer };
    expect(generateOutcome(answer(200, odd))).toMatchObject({ taskId: "t", externalTaskId: null });
  });

  test("P6: why nobody knows whether it was charged is told, with what is known of the answer", () => {
    const unknown = (status: number, body: unknown) => generateOutcome(answer(status, body));
    const without = "answer 200 without a readable task_id";
    expect(unknown(200, "")).toEqual({ kind: "unknown", reason: `${without}: an empty answer`, status: 200 });
    expect(unknown(200, { task_id: "" })).toMatchObject({ reason: without });
    expect(unknown(200, { task_id: 7.5 })).toMatchObject({ reason: without });
    expect(unknown(200, { success: false, error: { message: "busy" } })).toMatchObject({
      reason: `${without}: busy`,
    });
    expect(unknown(200, { task_id: "x".repeat(1_025) })).toMatchObject({
      reason: `${without}: it has 1025 characters`,
    });
    expect(unknown(500, { error: { code: "GENERATION_ERROR" } })).toEqual({
      kind: "unknown",
      reason: "answer 500 GENERATION_ERROR",
      status: 500,
      code: "GENERATION_ERROR",
    });
    expect(unknown(502, "<html>")).toEqual({
      kind: "unknown",
      reason: 'answer 502 with text beginning "<html>"',
      status: 502,
    });
    expect(generateOutcome({ kind: "no_answer", reason: "reset", status: 200 })).toEqual({
      kind: "unknown",
      reason: "no answer: reset",
      status: 200,
    });
  });

  test.each([
    [{ detail: [{ loc: ["body", "prompt"], msg: "too long" }] }, null, "body.prompt: too long"],
    [{ detail: "Not found" }, null, "Not found"],
    [{ error: { code: "TOO_LONG", message: "cut it" } }, "TOO_LONG", "cut it"],
    [{ error: { code: "TOO_LONG" } }, "TOO_LONG", null],
    [{ errors: [{ message: "no" }, { message: "nor this" }] }, null, "no; nor this"],
    [[{ message: "a list" }], null, "a list"],
    ["<html><title>413</title>", null, 'a page titled "413"'],
    ["", null, null],
  ])("P2: a complete 422 with %j rejects the item, with the service's words", (body, code, message) => {
    expect(generateOutcome(answer(422, body))).toEqual({ kind: "rejected", status: 422, code, message });
  });

  test("a 401, 402 or 403 is stated if it has a documented code of its kind", () => {
    const stated = (status: number, code: string) => generateOutcome(answer(status, { error: { code } }));
    expect(stated(401, "INVALID_API_KEY")).toMatchObject({ isStated: true });
    expect(stated(402, "INSUFFICIENT_CREDITS")).toMatchObject({ isStated: true });
    expect(stated(403, "SUBSCRIPTION_REQUIRED")).toMatchObject({ isStated: true });
    for (const status of [401, 402, 403])
      expect(stated(status, "FORBIDDEN")).toMatchObject({ isStated: false });
    expect(stated(403, "INVALID_API_KEY")).toMatchObject({ isStated: false });
  });

  test.each([
    [`\ufeff${JSON.stringify({ task_id: "t", credits_consumed: 4 })}`, "t"],
    [{ success: true, data: { task_id: "t", credits_consumed: "4" } }, "t"],
    [{ code: 0, result: { task_id: "t", credits_consumed: 4 } }, "t"],
    [{ task_id: 7, credits_consumed: " 4.0 " }, "7"],
  ])("P2: the task id in %j is read", (body, taskId) => {
    expect(generateOutcome(answer(200, body))).toMatchObject({
      kind: "accepted",
      taskId,
      charged: credits(4),
    });
  });

  test("a refusal says what it stops", () => {
    const stops = [401, 402, 403, 429].map((status) => generateOutcome(answer(status, "")));
    expect(stops).toMatchObject([
      { stop: "key" },
      { stop: "credits" },
      { stop: "subscription" },
      { stop: "pause" },
    ]);
  });

  test("P2: only headers that never left are not sent", () => {
    expect(generateOutcome({ kind: "not_sent", reason: "refused" })).toEqual({
      kind: "not_sent",
      reason: "refused",
    });
  });

  test("whatever a service answers has exactly one meaning and throws nothing", () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), fc.oneof(fc.json(), fc.string()), (status, body) => {
        const { kind } = generateOutcome(answer(status, body));
        expect(["accepted", "refused", "rejected", "unknown"]).toContain(kind);
        if (kind === "accepted") expect(Math.floor(status / 100)).toBe(2);
        taskOutcome(answer(status, body));
      }),
    );
  });
});

describe("the answer to a poll", () => {
  const record = {
    task_id: "t",
    status: "completed",
    output_urls: ["https://a/1"],
    error: null,
    credits_consumed: 4,
    created_at: "2026-01-01T00:00:00Z",
    completed_at: "2026-01-01T00:00:09Z",
  };

  test("a completed task brings its addresses, its price and its times", () => {
    expect(taskOutcome(answer(200, record))).toEqual({
      kind: "completed",
      urls: ["https://a/1"],
      charged: credits(4),
      createdAt: "2026-01-01T00:00:00Z",
      completedAt: "2026-01-01T00:00:09Z",
      endedMs: null,
      odd: [],
    });
  });

  test("a task that has ended did so long ago by the service's own clock", () => {
    const headers = { date: "Thu, 01 Jan 2026 00:00:12 GMT" };
    for (const status of ["completed", "failed"])
      expect(taskOutcome({ ...answer(200, { ...record, status }), headers })).toMatchObject({
        endedMs: 3_000,
      });
  });

  test.each([0, -1, 1e300, {}, [], "soon"])("times and amounts of %j are named and passed over", (value) => {
    const odd = { created_at: value, completed_at: value, credits_consumed: value === 0 ? "no" : value };
    expect(taskOutcome(answer(200, { ...record, ...odd }))).toMatchObject({
      kind: "completed",
      urls: ["https://a/1"],
      createdAt: "",
      completedAt: null,
      charged: null,
      odd: ["created_at", "completed_at", "credits_consumed"],
    });
  });

  test("an odd price, or none, is not told, and keeps no output from being fetched", () => {
    for (const odd of [undefined, null, 1e10, "four", "NaN", "", " ", "0x10"]) {
      const task = { ...record, credits_consumed: odd };
      const named = odd == null ? [] : ["credits_consumed"];
      expect(taskOutcome(answer(200, task))).toMatchObject({ kind: "completed", charged: null, odd: named });
      expect(taskOutcome(answer(200, { ...task, status: "failed" }))).toMatchObject({ charged: noCredits });
    }
  });

  test("a failed task brings its reason and what it cost", () => {
    const failed = {
      ...record,
      status: "failed",
      output_urls: null,
      error: "moderation",
      credits_consumed: 0,
    };
    expect(taskOutcome(answer(200, failed))).toMatchObject({
      kind: "failed",
      message: "moderation",
      charged: 0,
    });
  });

  test("a failed task without a reason, a time or a price has failed all the same, and costs nothing", () => {
    expect(taskOutcome(answer(200, { status: "failed" }))).toEqual({
      kind: "failed",
      message: "no reason was given",
      charged: noCredits,
      completedAt: null,
      endedMs: null,
    });
    const told = { ...record, status: "failed", credits_consumed: 1 };
    expect(taskOutcome(answer(200, told))).toMatchObject({
      charged: credits(1),
      completedAt: record.completed_at,
    });
  });

  test("a completed task needs no times", () => {
    const { created_at: _, completed_at: __, ...timeless } = record;
    const none = { createdAt: "", completedAt: null, odd: [] };
    expect(taskOutcome(answer(200, timeless))).toMatchObject({ kind: "completed", ...none });
    expect(taskOutcome(answer(200, { ...timeless, created_at: null, completed_at: null }))).toMatchObject(
      none,
    );
  });

  test("a refusal says what it stops", () => {
    const told = { error: { code: "INVALID_API_KEY", message: "unknown" } };
    expect(taskOutcome(answer(401, told))).toEqual({
      kind: "refused",
      stop: "key",
      isStated: true,
      answer: "401 INVALID_API_KEY: unknown",
      code: "INVALID_API_KEY",
      message: "unknown",
    });
    expect(taskOutcome(answer(403, ""))).toMatchObject({
      kind: "refused",
      stop: "subscription",
      isStated: false,
    });
    expect(taskOutcome(answer(429, ""))).toMatchObject({ kind: "refused", stop: "pause" });
  });

  test("P2: an answer with another status than 200 finishes no task", () => {
    for (const status of [201, 204, 302, 404, 500])
      expect(taskOutcome(answer(status, record))).toMatchObject({ kind: "unclear", reached: true });
  });

  test("what is unclear is told", () => {
    const reason = (status: number, body: unknown) => taskOutcome(answer(status, body));
    expect(reason(200, { status: 7 })).toMatchObject({ reason: "an answer that is not a task record" });
    expect(reason(200, "")).toMatchObject({ reason: "an empty answer" });
    expect(reason(500, { code: "INTERNAL" })).toMatchObject({
      reason: "answer 500 INTERNAL",
      missing: false,
      statedMissing: false,
    });
    expect(taskOutcome({ kind: "not_sent", reason: "refused" })).toEqual({
      kind: "unclear",
      reason: "refused",
      missing: false,
      statedMissing: false,
      reached: false,
    });
  });

  test("an unknown status counts as processing, unless the record says when the task ended", () => {
    const open = { ...record, output_urls: null, completed_at: null };
    for (const status of ["queued", "canceled", "expired", "error", ""])
      expect(taskOutcome(answer(200, { ...open, status }))).toMatchObject({ kind: "processing" });
    const processing = { ...record, status: "processing" };
    expect(taskOutcome(answer(200, processing))).toMatchObject({ kind: "processing" });
    for (const status of ["succeeded", "Completed", " COMPLETED ", null])
      expect(taskOutcome(answer(200, { ...record, status }))).toMatchObject({
        kind: "completed",
        urls: ["https://a/1"],
      });
    const ended = { ...record, status: "canceled", output_urls: null, error: { message: "by an operator" } };
    expect(taskOutcome(answer(200, ended))).toMatchObject({
      kind: "completed",
      urls: [],
      charged: credits(4),
      unusable:
        'the task ended with status "canceled" without a usable output address (output_urls: null; error: by an operator)',
    });
  });

  test.each([
    [[], []],
    [null, []],
    [undefined, []],
    [{}, []],
    [[null, "", 7, "/relative", "ftp://a/1", ["https://a/1"]], []],
    ["https://a/1", ["https://a/1"]],
    [[null, "https://a/2", ""], ["https://a/2"]],
    [[{ url: "https://a/1" }, { url: null }], ["https://a/1"]],
    [[" https://a/1 "], ["https://a/1"]],
    ['["https://a/1"]', ["https://a/1"]],
  ])("of output_urls %j the usable addresses are %j", (output_urls, urls) => {
    const outcome = taskOutcome(answer(200, { ...record, output_urls }));
    expect(outcome).toMatchObject({ kind: "completed", urls });
    expect("unusable" in outcome).toBe(urls.length === 0);
  });

  test.each([
    [
      { code: "content_policy_violation", message: "It names a person" },
      "content_policy_violation: It names a person",
    ],
    [
      [{ loc: ["body", "prompt"], msg: "prompt too long", type: "value_error" }],
      "body.prompt: prompt too long",
    ],
    ['{"error":{"code":"Forbidden","message":"blocked by policy"}}', "Forbidden: blocked by policy"],
    [["first", { detail: "second" }], "first; second"],
    [{ errors: [{ title: "no" }] }, "no"],
    [{ odd: 1 }, '{"odd":1}'],
    [{ code: "X" }, "X"],
    [{}, "no reason was given"],
    [[], "no reason was given"],
    ["", "no reason was given"],
    [7, "no reason was given"],
  ])("the reason in an error %j is %j", (error, message) => {
    const failed = { ...record, status: "failed", output_urls: null, error };
    expect(taskOutcome(answer(200, failed))).toMatchObject({ kind: "failed", message });
  });

  test("a task that is processing is as old as the service's own clock says", () => {
    const at = (date: string | undefined, created: string | null) => {
      const reply = answer(200, { ...record, status: "processing", created_at: created });
      return taskOutcome({ ...reply, headers: date === undefined ? {} : { date } });
    };
    const date = "Thu, 01 Jan 2026 00:00:12 GMT";
    expect(at(date, record.created_at)).toEqual({ kind: "processing", ageMs: 12_000 });
    expect(at(undefined, record.created_at)).toEqual({ kind: "processing", ageMs: null });
    expect(at(date, null)).toEqual({ kind: "processing", ageMs: null });
    expect(at("soon", "never")).toEqual({ kind: "processing", ageMs: null });
  });

  test.each([
    [
      "waits in the service's queue",
      { queue: { position: 3, ahead_ms: 90_000 } },
      { ageMs: 0, queued: { aheadMs: 90_000 } },
    ],
    [
      "waits, nobody knows how long",
      { queue: { position: 0, ahead_ms: "long" } },
      { ageMs: 0, queued: { aheadMs: null } },
    ],
    ["was begun later than it was made", { started_at: "2026-01-01T00:00:10.000Z" }, { ageMs: 2_000 }],
    ["has something to be known", { note: "lost" }, { ageMs: 12_000, note: "lost" }],
    ["has odd fields", { queue: "full", started_at: 7, note: null }, { ageMs: 12_000 }],
  ])("a task that is processing and %s", (_, more, told) => {
    const reply = answer(200, { ...record, status: "processing", ...more });
    const headers = { date: "Thu, 01 Jan 2026 00:00:12 GMT" };
    expect(taskOutcome({ ...reply, headers })).toEqual({ kind: "processing", ...told });
  });

  test("P2: 404, 5xx, HTML and an empty answer leave the task alive", () => {
    const unclear = [
      answer(404, {}),
      answer(500, {}),
      answer(200, "<html>"),
      answer(200, ""),
      answer(200, []),
      answer(200, { ...record, status: 7, completed_at: null }),
    ];
    for (const reply of unclear) expect(taskOutcome(reply)).toMatchObject({ kind: "unclear", reached: true });
    expect(taskOutcome(answer(404, {}))).toMatchObject({
      missing: true,
      statedMissing: false,
      reason: "answer 404",
    });
    const told = answer(404, { error: { code: "TASK_NOT_FOUND", message: "No such task." } });
    expect(taskOutcome(told)).toMatchObject({
      missing: true,
      statedMissing: true,
      reason: "the service does not know the task any more (answer 404 TASK_NOT_FOUND)",
    });
    expect(taskOutcome({ kind: "no_answer", reason: "reset" })).toMatchObject({
      kind: "unclear",
      reached: false,
    });
  });
});
