import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Model } from "../../../src/api/records.js";
import * as page from "./page-records.js";
import { type Answer, get, type Hands, post, type Subject } from "./subject.js";
import { codeOf } from "./tour.js";

const picture = { model: "aurora-image", prompt: "A lighthouse at dawn" };

/** The sentences of the page that can only be shown of a service whose accounts and clock are ours. */
export function inOurHands(open: () => Promise<Subject>): void {
  let subject: Subject;
  let hands: Hands;
  beforeAll(async () => {
    subject = await open();
    if (!subject.hands) throw new Error("this service is not in our hands");
    hands = subject.hands;
  });
  afterAll(() => subject.close());

  const ask = (path: string, key = subject.key) => subject.send(get(path, key));
  const generate = (body: unknown, key = subject.key) => subject.send(post(body, key));
  const me = async (key = subject.key) => (await ask("/api/v1/me", key)).body;
  const told = (answer: Answer) => [answer.status, codeOf(answer)];
  const setAccount = (assignments: string) =>
    hands.state.db.prepare(`update accounts set ${assignments} where id = ?`).run(hands.accountId);

  describe("keys", () => {
    it("A revoked key is rejected as one that does not exist", async () => {
      expect(told(await ask("/api/v1/me", hands.revokedKey))).toEqual([401, "INVALID_API_KEY"]);
    });

    it("Each key has its own usage record; the balance is the user's", async () => {
      const before = await me(hands.secondKey);
      await generate(picture);
      const after = await me(hands.secondKey);
      expect(after.credits).toEqual({ balance: before.credits.balance - 4, used_this_key: 0 });
      expect(after.api_key.requests_count).toBe(before.api_key.requests_count + 1);
      expect(after.user).toEqual((await me()).user);
    });

    it("When both headers carry a key, Authorization counts", async () => {
      const headers = { authorization: `Bearer ${hands.revokedKey}`, "x-api-key": subject.key };
      expect((await subject.send({ method: "GET", path: "/api/v1/me", headers })).status).toBe(401);
    });

    it("What is wrong is reported in one order: path, method, key, form, unknown, subscription, request", async () => {
      const bad = (path: string, method: string, headers: Record<string, string>) =>
        subject.send({ method, path, headers, ...(method === "POST" ? { body: "{" } : {}) });
      const generatePath = "/api/v1/generate";
      setAccount("subscription_status = null");
      const answers = [
        await bad("/api/v1/nothing", "DELETE", {}),
        await bad(generatePath, "DELETE", {}),
        await bad(generatePath, "POST", {}),
        await bad(generatePath, "POST", { "x-api-key": "key" }),
        await bad(generatePath, "POST", { "x-api-key": hands.revokedKey }),
        await bad(generatePath, "POST", { "x-api-key": subject.key }),
      ];
      setAccount("subscription_status = 'active'");
      answers.push(await bad(generatePath, "POST", { "x-api-key": subject.key }));
      expect(answers.map((answer) => answer.status)).toEqual([404, 405, 401, 401, 401, 403, 415]);
      expect(new Set(answers.map(codeOf)).size).toBe(7);
    });
  });

  describe("subscriptions", () => {
    it("Without an active subscription generate, task and models answer 403 SUBSCRIPTION_REQUIRED", async () => {
      setAccount("subscription_status = null");
      for (const answer of [
        await generate(picture),
        await ask("/api/v1/task/x"),
        await ask("/api/v1/models"),
      ]) {
        expect(told(answer)).toEqual([403, "SUBSCRIPTION_REQUIRED"]);
      }
      setAccount("subscription_status = 'active'");
    });

    it("When the user has no subscription, it is null in GET me", async () => {
      setAccount("subscription_status = null");
      expect((await me()).subscription).toBeNull();
      setAccount("subscription_status = 'active'");
    });

    it.each(["active", "canceled", "past_due"])("A subscription may be %s", async (status) => {
      setAccount(
        `subscription_status = '${status}', cancel_at_period_end = ${Number(status === "canceled")}`,
      );
      const { subscription } = await me();
      page.subscription.parse(subscription);
      expect([subscription.status, subscription.cancel_at_period_end]).toEqual([
        status,
        status === "canceled",
      ]);
      setAccount("subscription_status = 'active', cancel_at_period_end = 0");
    });

    it.each(["month", "year"])("It is billed by the %s", async (interval) => {
      setAccount(`billing_interval = '${interval}'`);
      expect((await me()).subscription.billing_interval).toBe(interval);
    });
  });

  describe("credits", () => {
    it("A balance below the cost is answered 402 INSUFFICIENT_CREDITS, one of exactly the cost is enough", async () => {
      setAccount("balance_micro = 3999999");
      expect(told(await generate(picture))).toEqual([402, "INSUFFICIENT_CREDITS"]);
      setAccount("balance_micro = 4000000");
      expect((await generate(picture)).body.credits_remaining).toBe(0);
      setAccount("balance_micro = 100000000");
    });

    it("Balance and used_this_key add up after each request, whatever became of it", async () => {
      const total = async () => {
        const { balance, used_this_key } = (await me()).credits;
        return balance + used_this_key;
      };
      const start = await total();
      for (const prompt of ["one", "", ...hands.failing]) {
        await generate({ ...picture, prompt });
        expect(await total()).toBeCloseTo(start, 6);
        await subject.wait(400);
        expect(await total()).toBeCloseTo(start, 6);
      }
    });
  });

  describe("tasks", () => {
    it("A failed task is answered 200: failed, an error, no URLs, 0 credits; its cost comes back", async () => {
      // Lets everything end that was begun before.
      await subject.wait(60_000);
      const before = (await me()).credits;
      const { task_id: id } = (await generate({ ...picture, prompt: hands.failing[0] })).body;
      await subject.wait(1_000);
      const answer = await ask(`/api/v1/task/${id}`);
      expect(answer.status).toBe(200);
      page.failedTask.parse(answer.body);
      expect((await me()).credits).toEqual(before);
      await subject.wait(60_000);
      expect((await ask(`/api/v1/task/${id}`)).body).toEqual(answer.body);
    });

    it("A task of another user, a malformed id and an unknown one are answered alike: 404 TASK_NOT_FOUND", async () => {
      const { task_id: theirs } = (await generate(picture, hands.strangersKey)).body;
      const ids = [theirs, "no-uuid", "%ff", "../me", "00000000-0000-4000-8000-ffffffffffff"];
      const answers = [];
      for (const id of ids) answers.push(await ask(`/api/v1/task/${encodeURIComponent(id)}`));
      for (const answer of answers) {
        expect(told(answer)).toEqual([404, "TASK_NOT_FOUND"]);
        expect(answer.body).toEqual(answers[0]?.body);
      }
    });

    it("Each model takes the inputs that its input_type names, and needs each of them", async () => {
      const needed: Record<string, string[]> = {
        text: ["prompt"],
        image: ["image_url"],
        video: ["video_url"],
        "text+image": ["prompt", "image_url"],
      };
      setAccount("balance_micro = 1000000000");
      const { models } = (await ask("/api/v1/models")).body;
      for (const { model_key: model, input_type: type } of models as Model[]) {
        const whole: Record<string, string> = { model, prompt: "A hare", ...hands.inputs };
        for (const field of needed[type] ?? []) {
          const { [field]: _, ...lacking } = whole;
          expect((await generate(lacking)).status).toBe(400);
        }
        expect((await generate(whole)).status).toBe(200);
      }
    });
  });

  describe("limits", () => {
    // One after the other; each begins with an empty window of a minute.
    it.each([
      ["Starter", 30],
      ["Pro", 60],
    ])("%s allows %i requests a minute", async (plan, limit) => {
      setAccount(`plan = '${plan}'`);
      await subject.wait(60_000);
      for (let sent = 0; sent < limit; sent++) expect((await ask("/api/v1/me")).status).toBe(200);
      expect(told(await ask("/api/v1/me"))).toEqual([429, "RATE_LIMITED"]);
      setAccount("plan = 'Enterprise'");
    });

    it("Enterprise is unlimited", async () => {
      for (let sent = 0; sent < 100; sent++) expect((await ask("/api/v1/me")).status).toBe(200);
    });
  });
}
