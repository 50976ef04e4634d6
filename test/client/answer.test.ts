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
      answer(200, { task_id: 7 }),
      answer(200, { task_id: "x".repeat(1_025) }),
    ];
    const codes = [204, 302, 404, 409, 413, 500, 502, 503].map((status) =>
      answer(status, { error: { code: "X" } }),
    );
    for (const reply of [...odd, ...codes])
      expect(generateOutcome(reply)).toMatchObject({ kind: "unknown", status: reply.status });
    expect(generateOutcome({ kind: "no_answer", reason: "reset" })).toEqual({
      kind: "unknown",
      reason: "no answer: reset",
    });
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
      odd: [],
    });
  });

  test.each([0, -1, 1e300, {}, [], "soon"])("times and amounts of %j are named and passed over", (value) => {
    const odd = { created_at: value, completed_at: value, credits_consumed: value === 0 ? "0" : value };
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
    for (const odd of [undefined, null, 1e10, "4"]) {
      const task = { ...record, credits_consumed: odd };
      expect(taskOutcome(answer(200, task))).toMatchObject({ kind: "completed", charged: null });
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

  test("an unknown status counts as processing", () => {
    expect(taskOutcome(answer(200, { ...record, status: "queued" }))).toMatchObject({ kind: "processing" });
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

  test("P2: 404, 5xx, HTML, an empty answer and a completed task without addresses leave the task alive", () => {
    const unclear = [
      answer(404, {}),
      answer(500, {}),
      answer(200, "<html>"),
      answer(200, ""),
      answer(200, { ...record, output_urls: [] }),
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
