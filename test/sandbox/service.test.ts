import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errorTable } from "../../src/api/errors.js";
import * as records from "../../src/api/records.js";
import { Caller } from "./caller.js";

const image = { model: "aurora-image", prompt: "A lighthouse at dawn" };

describe("a request", () => {
  let caller: Caller;
  beforeAll(async () => {
    caller = await Caller.start({ plan: "Enterprise", credits: 10 });
  });
  afterAll(() => caller.sandbox.close());

  it("without a key is refused before anything else", async () => {
    const answer = await caller.send("POST", "/api/v1/generate", { body: "no json" });
    expect([answer.status, answer.body.error.code]).toEqual([401, "MISSING_API_KEY"]);
  });

  it.each(["svc_short", "key_ABCDEFGHIJKLMNOPQRSTUVWXYZ012345", `svc_${"-".repeat(32)}`])(
    "with a key of the wrong form (%s) is refused for its form",
    async (key) => {
      const answer = await caller.send("GET", "/api/v1/me", { headers: { "x-api-key": key } });
      expect([answer.status, answer.body.error.code]).toEqual([401, "INVALID_API_KEY_FORMAT"]);
    },
  );

  it("with an unknown key is refused as such", async () => {
    const headers = { authorization: `Bearer svc_${"x".repeat(32)}` };
    const answer = await caller.send("GET", "/api/v1/models", { headers });
    expect([answer.status, answer.body.error.code]).toEqual([401, "INVALID_API_KEY"]);
  });

  it("may carry its key in X-API-Key", async () => {
    const answer = await caller.send("GET", "/api/v1/me", { headers: { "x-api-key": caller.sandbox.key } });
    expect(answer.status).toBe(200);
  });

  it("for a path or with a method that does not exist is refused in the same shape", async () => {
    expect((await caller.get("/api/v2/me")).body.error.code).toBe("NOT_FOUND");
    const wrong = await caller.send("DELETE", "/api/v1/me");
    expect([wrong.status, wrong.body.error.code, wrong.headers.get("allow")]).toEqual([
      405,
      "METHOD_NOT_ALLOWED",
      "GET",
    ]);
  });
});

describe("generate", () => {
  let caller: Caller;
  beforeAll(async () => {
    caller = await Caller.start({ plan: "Enterprise", credits: 10 });
  });
  afterAll(() => caller.sandbox.close());

  it.each([
    ["MISSING_MODEL", { prompt: "x" }],
    ["MISSING_MODEL", { model: "", params: { no: "such" } }],
    ["INVALID_MODEL", { model: "aurora-imag" }],
    ["INVALID_REQUEST", { model: "aurora-image" }],
    ["INVALID_REQUEST", { model: "aurora-image", prompt: "   " }],
    ["INVALID_REQUEST", { ...image, params: { aspect_ratio: "7:5" } }],
    ["INVALID_REQUEST", { ...image, params: { aspect: "1:1" } }],
    ["INVALID_REQUEST", { ...image, params: "1:1" }],
    ["INVALID_REQUEST", { model: "atelier-edit", prompt: "warmer" }],
    ["INVALID_REQUEST", { model: "atelier-upscale", image_url: "file:///etc/passwd" }],
    ["INVALID_REQUEST", { model: "atelier-upscale", image_url: "http://example.com/a.png" }],
    ["INVALID_REQUEST", { model: "atelier-upscale", image_url: "a.png" }],
    ["INVALID_REQUEST", ["an array"]],
  ])("answers %s to %j, and charges nothing", async (code, body) => {
    const answer = await caller.generate(body);
    const row = errorTable.find((entry) => entry.code === code);
    expect([answer.status, answer.body.error.code]).toEqual([row?.status, code]);
    expect((await caller.get("/api/v1/me")).body.credits.balance).toBe(10);
  });

  it("refuses a body that is not JSON, not declared as JSON, or too large", async () => {
    const post = (body: string, type: string) =>
      caller.send("POST", "/api/v1/generate", {
        body,
        headers: { "x-api-key": caller.sandbox.key, "content-type": type },
      });
    expect((await post("{", "application/json")).status).toBe(400);
    expect((await post("{}", "text/plain")).status).toBe(415);
    expect((await post(" ".repeat(1024 * 1024 + 1), "application/json")).status).toBe(413);
  });
});

describe("credits", () => {
  it("are enough at the exact price and not one generation further", async () => {
    const caller = await Caller.start({ credits: 8 });
    expect((await caller.generate(image)).body.credits_remaining).toBe(4);
    expect((await caller.generate(image)).body.credits_remaining).toBe(0);
    const refused = await caller.generate(image);
    expect([refused.status, refused.body.error.code]).toEqual([402, "INSUFFICIENT_CREDITS"]);
    await caller.sandbox.close();
  });

  it.each([
    ["[[moderation]]", "The prompt was rejected by content moderation."],
    ["[[provider-error]]", "The provider could not complete the generation."],
  ])("come back when a task fails (%s), at the moment it fails, seen or not", async (mark, message) => {
    const caller = await Caller.start({ credits: 8, taskMs: { min: 1_000, max: 1_000 } });
    const created = await caller.generate({ ...image, prompt: `A fox ${mark}` });
    caller.clock.advance(999);
    expect((await caller.get("/api/v1/me")).body.credits).toEqual({ balance: 4, used_this_key: 4 });
    caller.clock.advance(1);
    const me = (await caller.get("/api/v1/me")).body;
    expect(me.credits).toEqual({ balance: 8, used_this_key: 0 });
    expect(me.api_key.requests_count).toBe(3);
    const task = records.task.parse((await caller.task(created.body.task_id)).body);
    expect(task).toMatchObject({ status: "failed", error: message, credits_consumed: 0, output_urls: null });
    expect((await caller.get("/api/v1/me")).body.credits.balance).toBe(8);
    await caller.sandbox.close();
  });
});

describe("a task", () => {
  it("is processing until its time has come, then completed for good", async () => {
    const caller = await Caller.start({ taskMs: { min: 2_000, max: 2_000 } });
    const created = records.creation.parse((await caller.generate(image)).body);
    expect(created).toMatchObject({ status: "processing", model: "aurora-image", credits_consumed: 4 });
    const before = records.task.parse((await caller.task(created.task_id)).body);
    expect(before).toMatchObject({
      status: "processing",
      output_urls: null,
      error: null,
      completed_at: null,
    });
    expect(before.input).toMatchObject({ prompt: image.prompt, aspect_ratio: "1:1" });
    caller.clock.advance(2_000);
    const after = records.task.parse((await caller.task(created.task_id)).body);
    expect(after).toMatchObject({ status: "completed", credits_consumed: 4, error: null });
    expect(after.completed_at).toBe("2026-11-20T12:00:02.000Z");
    caller.clock.advance(-60_000);
    expect((await caller.task(created.task_id)).body.status).toBe("completed");
    await caller.sandbox.close();
  });

  it("that does not exist is not found", async () => {
    const caller = await Caller.start();
    for (const id of ["00000000-0000-4000-8000-000000009999", "nonsense", "%ff"]) {
      const answer = await caller.task(id);
      expect([answer.status, answer.body.error.code]).toEqual([404, "TASK_NOT_FOUND"]);
    }
    await caller.sandbox.close();
  });
});

describe("the model list", () => {
  it("keeps categories and total right under filters, and refuses filters that mean nothing", async () => {
    const caller = await Caller.start();
    const all = records.modelList.parse((await caller.get("/api/v1/models")).body);
    expect(all.total).toBe(all.models.length);
    const images = records.modelList.parse((await caller.get("/api/v1/models?category=image")).body);
    expect(images.total).toBe(images.categories["image"]?.length);
    expect(images.models.length).toBeGreaterThanOrEqual(4);
    expect(images.categories).toMatchObject({ video: [], audio: [] });
    const bare = records.modelList.parse((await caller.get("/api/v1/models?include_parameters=false")).body);
    expect(bare.models.every((model) => model.parameters?.length === 0)).toBe(true);
    expect((await caller.get("/api/v1/models?category=images")).status).toBe(400);
    expect((await caller.get("/api/v1/models?include_parameters=no")).status).toBe(400);
    await caller.sandbox.close();
  });
});

describe("the plan's limit", () => {
  it("refuses the request after the last allowed one, and allows it when the first is a minute old", async () => {
    const caller = await Caller.start({ plan: "Starter" });
    for (let sent = 0; sent < 30; sent++) {
      expect((await caller.get("/api/v1/me")).status).toBe(200);
      caller.clock.advance(1_000);
    }
    const refused = await caller.get("/api/v1/me");
    expect([refused.status, refused.body.error.code]).toEqual([429, "RATE_LIMITED"]);
    expect(refused.headers.get("retry-after")).toBe("30");
    caller.clock.advance(29_999);
    expect((await caller.get("/api/v1/me")).status).toBe(429);
    caller.clock.advance(1);
    expect((await caller.get("/api/v1/me")).status).toBe(200);
    expect((await caller.get("/api/v1/me")).status).toBe(429);
    await caller.sandbox.close();
  });
});
