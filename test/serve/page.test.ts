import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { servedPageAnswers } from "../../src/api/served-page.js";
import { servedPageApp } from "../../src/serve/page/app.js";
import { servePage } from "../../src/serve/page/serve-page.js";
import { systemRandom } from "../../src/system.js";
import type { OpenAiUpstream } from "../upstreams/openai.js";
import { afterwards, openAi, Place } from "./place.js";

const token = "0123456789abcdef";
const host = "127.0.0.1:4000";

// biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
type Body = any;

/** The page of a place, asked without a port, as a browser does that was let in. */
class Page {
  private cookie = "";
  private formToken = "";
  readonly app;

  constructor(place: Place) {
    const { service, clock, url } = place;
    this.app = new Hono().route("/dashboard", servedPageApp({ service, clock, url, token }));
  }

  static async of(place: Place): Promise<Page> {
    const page = new Page(place);
    const answer = await page.ask(`?token=${token}`);
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/dashboard"]);
    page.cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
    page.formToken = (await page.get("standing")).formToken;
    return page;
  }

  ask(path: string, init: RequestInit = {}, headers: Record<string, string> = {}): Promise<Response> {
    const given = { host, ...(this.cookie === "" ? {} : { cookie: this.cookie }), ...headers };
    return Promise.resolve(this.app.request(`http://${host}/dashboard${path}`, { ...init, headers: given }));
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const own = { origin: `http://${host}`, "x-form-token": this.formToken, ...headers };
    return this.ask(`/api/${path}`, { method: "POST", body: JSON.stringify(body) }, own);
  }

  get(path: "standing" | "spend" | "check"): Promise<Body> {
    return this.read(`GET api/${path}`, this.ask(`/api/${path}`));
  }

  createKey(newKey: object): Promise<Body> {
    return this.read("POST api/keys", this.post("keys", { ...limitless, ...newKey }));
  }

  revoke(id: string): Promise<Body> {
    return this.read("POST api/keys/ID/revoke", this.post(`keys/${id}/revoke`, {}));
  }

  resolve(id: string, word: object): Promise<Body> {
    return this.read("POST api/jobs/ID/resolve", this.post(`jobs/${id}/resolve`, word));
  }

  private async read(what: keyof typeof servedPageAnswers, asked: Promise<Response>): Promise<Body> {
    const answer = await asked;
    const text = await answer.text();
    if (!answer.ok) return [answer.status, JSON.parse(text).error.message];
    return servedPageAnswers[what].parse(JSON.parse(text));
  }
}

const limitless = { name: "anna", plan: "Pro", credits: null, perMonth: null, perDay: null };

async function open(): Promise<{ place: Place; upstream: OpenAiUpstream; page: Page }> {
  const upstream = await openAi();
  const place = await new Place(`
credit: { value: 0.01, currency: EUR }
providers:
  vendor: { kind: openai, base_url: "${upstream.url}/v1", key_env: KEY, concurrency: 1 }
  other: { kind: openai, base_url: "${upstream.url}/v1", key_env: MISSING_KEY }
models:
  - key: hero
    provider: vendor
    category: image
    credits: { base: 4, by: { quality: { high: 16 } } }
    params: { quality: [medium, high] }
    request: { model: gpt-image-2, quality: "{{ quality }}" }
  - { key: voice, name: A voice, provider: other, category: audio, credits: 1, request: { model: tts } }
  - { key: slow, provider: { kind: command }, category: image, credits: 1, command: [sh, -c, exec sleep 600, --, "{{ prompt }}"] }
`).open();
  return { place, upstream, page: await Page.of(place) };
}

/** A job whose answer was lost. */
async function unknownJob(place: Place, upstream: OpenAiUpstream): Promise<string> {
  upstream.next("submit", { after: "drop" });
  const id = await place.generate({ model: "hero", prompt: "a kite" });
  await place.until(() => place.stage(id) === "unknown");
  return id;
}

describe("what the page is told", () => {
  test("models with their prices and jobs, the newest jobs, keys and what a credit is worth", async () => {
    const { place, upstream, page } = await open();
    expect(await page.get("standing")).toMatchObject({
      url: place.url,
      credit: { value: 0.01, currency: "EUR" },
      newest: [],
      unknown: [],
      stages: { queued: 0, submitting: 0, accepted: 0, made: 0, unknown: 0, decided: 0 },
    });
    const made = await place.generate({ model: "hero", prompt: "a boat", params: { quality: "high" } });
    await place.finished(made);
    const failed = await place.generate({ model: "hero", prompt: "forbidden things" });
    await place.until(() => place.stage(failed) === "decided");
    const lost = await unknownJob(place, upstream);
    const { models, newest, unknown, stages, failed: failedJobs, keys } = await page.get("standing");
    expect(models).toEqual([
      {
        key: "hero",
        name: "hero",
        category: "image",
        provider: "vendor",
        kind: "openai",
        credits: 4,
        prices: [{ param: "quality", option: "high", credits: 16 }],
        waiting: 0,
        working: 0,
      },
      expect.objectContaining({ key: "voice", name: "A voice", category: "audio", provider: "other" }),
      expect.objectContaining({ key: "slow", prices: [] }),
    ]);
    expect(stages).toMatchObject({ unknown: 1, decided: 2, queued: 0 });
    expect(failedJobs).toBe(1);
    expect(newest.map((job: Body) => [job.id, job.stage, job.outcome, job.credits])).toEqual([
      [lost, "unknown", null, 4],
      [failed, "decided", "failed", 0],
      [made, "decided", "completed", 16],
    ]);
    expect(newest[1].error).toContain("safety system");
    expect(unknown).toEqual([newest[0]]);
    expect(unknown[0]).toMatchObject({ prompt: "a kite", key: "anybody", provider: "vendor" });
    expect(unknown[0].note).toContain("The provider's answer was lost");
    // What failed is given back, though nobody has asked for the task.
    expect(keys).toMatchObject([
      { name: "anybody", used: 20, left: { credits: null, per: null }, perMonth: null },
    ]);
  });

  test("jobs that wait and jobs that are at work, by model", async () => {
    const { place, page } = await open();
    for (const prompt of ["one", "two", "three"]) await place.generate({ model: "slow", prompt });
    await place.until(async () => (await page.get("standing")).stages.submitting === 1);
    const { models, stages } = await page.get("standing");
    expect(models[2]).toMatchObject({
      key: "slow",
      provider: "slow",
      kind: "command",
      waiting: 2,
      working: 1,
    });
    expect(stages).toMatchObject({ queued: 2, submitting: 1, decided: 0 });
  });

  test("what is wrong with each provider", async () => {
    const { upstream, page } = await open();
    expect(await Promise.all([page.get("check"), page.get("check")])).toEqual(
      Array(2).fill([
        { provider: "vendor", problem: null },
        { provider: "other", problem: expect.stringContaining("refuses the key") },
        { provider: "slow", problem: null },
      ]),
    );
    await upstream.stop();
    expect((await page.get("check"))[0].problem).toBeTypeOf("string");
  });

  test("what was spent by key, model and day, without what failed and what is older than 30 days", async () => {
    const { place, page } = await open();
    const make = async (prompt: string, params = {}) =>
      place.finished(await place.generate({ model: "hero", prompt, params }));
    await make("long ago");
    place.clock.advance(30 * 24 * 3_600_000);
    await make("yesterday", { quality: "high" });
    place.clock.advance(24 * 3_600_000);
    await make("today");
    await make("forbidden things");
    place.key = (await page.createKey({ name: "anna" })).value;
    await make("today");
    expect(await page.get("spend")).toEqual({
      keys: [
        { name: "anybody", tasks: 2, credits: 20 },
        { name: "anna", tasks: 1, credits: 4 },
      ],
      models: [{ name: "hero", tasks: 3, credits: 24 }],
      days: [
        { name: "2026-12-29", tasks: 2, credits: 8 },
        { name: "2026-12-28", tasks: 1, credits: 16 },
      ],
    });
  });
});

describe("keys", () => {
  test("a new one works within its budget until it is revoked, and its value is told once", async () => {
    const { place, page } = await open();
    const { value } = await page.createKey({ name: " nightly ", credits: 10, perMonth: 8, perDay: 4 });
    place.key = value;
    await place.finished(await place.generate({ model: "hero", prompt: "a kite" }));
    expect((await place.call("POST", "/api/v1/generate", { model: "hero", prompt: "more" })).status).toBe(
      402,
    );
    const standing = await page.get("standing");
    expect(JSON.stringify(standing)).not.toContain(value);
    const key = standing.keys.find(({ name }: Body) => name === "nightly");
    expect(key).toMatchObject({
      plan: "Pro",
      used: 4,
      perMonth: 8,
      perDay: 4,
      revokedAt: null,
      left: { credits: 0, of: 4, per: "day" },
    });
    expect(await page.revoke(key.id)).toEqual({});
    expect((await place.call("GET", "/api/v1/me")).status).toBe(401);
    expect(await page.revoke(key.id)).toEqual([400, "This key is revoked already."]);
  });

  test.each([
    [{ name: "anybody" }, 'There is a key "anybody" already; choose another name.'],
    [{ name: "  " }, "A key needs a name, such as nightly."],
    [{ name: "a\u202eb" }, "A key's name may have no invisible characters."],
    [{ credits: -1 }, "This request cannot be read; reload the page."],
    [{ perDay: "4" }, "This request cannot be read; reload the page."],
    [{ plan: "Free" }, "This request cannot be read; reload the page."],
  ])("%j is refused", async (newKey, message) => {
    const { page } = await open();
    expect(await page.createKey(newKey)).toEqual([400, message]);
    expect((await page.get("standing")).keys).toHaveLength(1);
  });
});

describe("a person's word on an unknown job", () => {
  test("failed gives its credits back", async () => {
    const { place, upstream, page } = await open();
    const id = await unknownJob(place, upstream);
    expect(await page.resolve(id, { kind: "failed" })).toEqual({});
    const { unknown, keys } = await page.get("standing");
    expect([unknown, keys[0].used]).toEqual([[], 0]);
    expect((await page.resolve(id, { kind: "again" }))[1]).toBe(
      `What became of ${id} is not in doubt: it is decided. Nothing was changed.`,
    );
  });

  test("again sends it a second time", async () => {
    const { place, upstream, page } = await open();
    const id = await unknownJob(place, upstream);
    expect(await page.resolve(id, { kind: "again" })).toEqual({});
    expect(await place.finished(id)).toMatchObject({ status: "completed" });
    expect(upstream.times("a kite")).toBe(2);
  });

  test("found puts the provider's name for it on record, and nothing is sent again", async () => {
    const { place, upstream, page } = await open();
    const id = await unknownJob(place, upstream);
    expect(await page.resolve(id, { kind: "found", ref: " gen-42 " })).toEqual({});
    expect(place.service.journal.job(id)).toMatchObject({ stage: "accepted", ref: "gen-42" });
    expect(upstream.times("a kite")).toBe(1);
  });

  test.each([{}, { kind: "found" }, { kind: "found", ref: " " }, { kind: "lost" }])(
    "%j changes nothing",
    async (word) => {
      const { place, upstream, page } = await open();
      const id = await unknownJob(place, upstream);
      expect((await page.resolve(id, word))[0]).toBe(400);
      expect(place.stage(id)).toBe("unknown");
      expect((await page.resolve("nothing", { kind: "failed" }))[1]).toContain("There is no job nothing.");
    },
  );
});

describe("who is let in", () => {
  const evil = "https://evil.example";

  test.each([
    ["without the link", {}, 401],
    ["with a wrong cookie", { cookie: "bulkgen_dashboard_4000=abc" }, 401],
    ["by a name that somebody pointed at this machine", { host: "evil.example:4000" }, 403],
    ["by the machine's name on the network", { host: "192.168.1.5:4000" }, 403],
    ["from another site", { origin: evil }, 403],
    ["from another port", { origin: "http://127.0.0.1:4001" }, 403],
  ])("nobody %s", async (_, headers, status) => {
    const { place, page } = await open();
    const asking = status === 401 ? new Page(place) : page;
    for (const path of ["standing", "spend", "check"])
      expect((await asking.ask(`/api/${path}`, {}, headers)).status, path).toBe(status);
    for (const path of ["keys", "keys/1/revoke", "jobs/1/resolve"])
      expect((await asking.post(path, limitless, headers)).status, path).toBe(status);
    expect((await page.get("standing")).keys).toHaveLength(1);
  });

  test("a wrong token opens nothing, and a change needs the form's token and an origin", async () => {
    const { place, page } = await open();
    const stranger = new Page(place);
    const answer = await stranger.ask("?token=0123456789abcdee");
    expect(answer.headers.get("set-cookie")).toBeNull();
    expect((await page.post("keys", limitless, { "x-form-token": "guessed" })).status).toBe(403);
    const bare = await page.ask("/api/keys", { method: "POST", body: JSON.stringify(limitless) });
    expect(bare.status).toBe(403);
    expect((await page.get("standing")).keys).toHaveLength(1);
  });

  test("a key of the service opens nothing", async () => {
    const { place } = await open();
    const asked = await new Page(place).ask("/api/standing", {}, { authorization: `Bearer ${place.key}` });
    expect(asked.status).toBe(401);
  });

  test("the page is on the loopback interface alone, though the service listens everywhere", async () => {
    const place = await new Place(
      "models: [{ key: draw, provider: { kind: command }, category: image, command: [echo, --, '{{ prompt }}'] }]",
      {
        host: "0.0.0.0",
        publicUrl: "https://models.example",
      },
    ).open();
    const { clock, service, url } = place;
    const page = await servePage({ service, clock, random: systemRandom, url });
    afterwards(() => page.close());
    const link = new URL(page.link);
    expect(link.hostname).toBe("127.0.0.1");
    const admitted = await fetch(link, { redirect: "manual" });
    const cookie = admitted.headers.get("set-cookie")?.split(";")[0] ?? "";
    const standing = await fetch(new URL("/dashboard/api/standing", link), { headers: { cookie } });
    expect(servedPageAnswers["GET api/standing"].parse(await standing.json())).toMatchObject({
      url: "https://models.example",
    });
  });
});

test("the key of a provider is in no answer", async () => {
  const { place, upstream, page } = await open();
  await unknownJob(place, upstream);
  upstream.next("other", { status: 401 });
  const told = await Promise.all([page.get("standing"), page.get("check"), page.get("spend")]);
  expect(JSON.stringify(told)).not.toContain(upstream.key);
});

test("what goes wrong is said as every refusal is", async () => {
  const { place, page } = await open();
  await place.close();
  expect(await page.get("standing")).toEqual([500, expect.stringContaining("This could not be done:")]);
});
