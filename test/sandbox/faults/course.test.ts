import { describe, expect, it } from "vitest";
import { courseOf } from "../../../src/sandbox/faults/course.js";
import { fault, type RequestFault } from "../../../src/sandbox/faults/fault.js";
import { InProcess, picture } from "../in-process.js";

const course = (settings: unknown) => courseOf(fault.parse(settings) as RequestFault);
const reply = { status: 200, headers: {}, body: '{"task_id":"1","status":"processing"}' };

describe("on its way", () => {
  it("a request without a fault arrives, and its answer comes whole", () => {
    const smooth = courseOf(null);
    expect(smooth).toMatchObject({ arrivesMs: 0, repliesMs: 0, cut: false, bytesPerSecond: null });
    expect(smooth.spoil(reply)).toEqual(reply);
  });

  it.each([
    ["lost-request", null, null],
    ["lost-reply", 0, null],
    [{ kind: "late-arrival", delayMs: 9_000 }, 9_000, null],
    [{ kind: "slow-answer", delayMs: 9_000 }, 0, 9_000],
  ])("%j arrives after %s ms and is answered after %s", (settings, arrivesMs, repliesMs) => {
    expect(course(settings)).toMatchObject({ arrivesMs, repliesMs });
  });

  it.each([500, 502, 503])(
    "%i is answered in HTML by something that may or may not have passed it on",
    (status) => {
      const before = course({ kind: "http-error", status });
      expect(before.arrivesMs).toBeNull();
      expect(before.instead).toMatchObject({ status, headers: { "Content-Type": "text/html" } });
      expect(before.instead?.body).toContain(`<h1>${status} `);
      expect(course({ kind: "http-error", status, seen: true }).arrivesMs).toBe(0);
      expect(course({ kind: "http-error", status, body: "empty" }).instead?.body).toBe("");
    },
  );

  it.each(["truncated-json", "malformed-json"])("%s can be read by no parser", (kind) => {
    for (const body of [reply.body, "{}", '"x"', "null", "0"]) {
      expect(() => JSON.parse(course(kind).spoil({ ...reply, body }).body)).toThrow();
    }
  });
});

describe("inside the service", () => {
  const world = () => new InProcess();

  it("a spurious 429 refuses a request that is within the limits", () => {
    const answer = world().send("GET", "/api/v1/me", {}, { kind: "spurious-429" });
    expect([answer.status, answer.headers["Retry-After"]]).toEqual([429, "5"]);
  });

  it("an internal error answers 500 in the documented form", () => {
    const answer = world().send("GET", "/api/v1/task/x", {}, { kind: "internal-error" });
    expect([answer.status, answer.body.error.code]).toEqual([500, "INTERNAL_ERROR"]);
  });

  it("a generation error comes only to requests that are in order", () => {
    const fault = { kind: "generation-error" } as const;
    expect(world().generate({ model: "x" }, fault).body.error.code).toBe("INVALID_MODEL");
    expect(world().generate(picture, fault).body.error.code).toBe("GENERATION_ERROR");
  });

  it("a task fails with the scripted error, and its credits come back", () => {
    const inside = world();
    const { task_id: id } = inside.generate(picture, { kind: "task-fails", error: "Out of paint." }).body;
    inside.clock.advance(1_000);
    expect(inside.task(id).body).toMatchObject({
      status: "failed",
      error: "Out of paint.",
      credits_consumed: 0,
    });
    expect(inside.me().credits.balance).toBe(100);
  });

  it("a task that never finishes is processing for years, and stays charged", () => {
    const inside = world();
    const marked = { ...picture, prompt: "A fox [[moderation]]" };
    const ids = [picture, marked].map(
      (body) => inside.generate(body, { kind: "task-never-finishes" }).body.task_id,
    );
    inside.clock.advance(10 * 365 * 86_400_000);
    expect(ids.map((id) => inside.task(id).body.status)).toEqual(["processing", "processing"]);
    expect(inside.me().credits.balance).toBe(92);
  });

  it("a task vanishes after its time, with its files, and stays charged", () => {
    const inside = world();
    const { task_id: id } = inside.generate(picture, { kind: "task-vanishes", afterMs: 5_000 }).body;
    inside.clock.advance(4_999);
    const { output_urls: urls } = inside.task(id).body;
    inside.clock.advance(1);
    expect(inside.task(id).body.error.code).toBe("TASK_NOT_FOUND");
    const { pathname, searchParams } = new URL(urls[0]);
    const found = inside.world.file(inside.clock.now(), pathname, Object.fromEntries(searchParams));
    expect(found).toMatchObject({ refused: { status: 404 } });
    expect(inside.me().credits.balance).toBe(96);
  });
});
