import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { newPlace, type Place, run, started } from "../e2e/command.js";
import type { Started } from "../e2e/in-process.js";

let place: Place;
let folder: string;
let serving: Started | undefined;
beforeEach(() => {
  place = newPlace();
  folder = place.folder;
});
afterEach(stop);

async function bulkgen(...words: string[]) {
  const { code, stdout, stderr } = await run(place, words);
  return { status: code, stdout, stderr };
}

async function json(...words: string[]) {
  const { status, stdout, stderr } = await bulkgen(...words, "--json");
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

async function serve(...words: string[]): Promise<{ url: string; key: string; dashboard: string }> {
  serving = started(place, ["sandbox", "--json", ...words], { serves: true });
  const [line] = await serving.prints(/^\{.*\}\n/);
  return JSON.parse(line);
}

async function stop(): Promise<void> {
  serving?.interrupt();
  await serving?.ended;
  serving = undefined;
}

async function me(url: string, key: string) {
  const response = await fetch(`${url}/api/v1/me`, { headers: { "x-api-key": key } });
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
  return { status: response.status, body: (await response.json()) as any };
}

const state = ".bulkgen/sandbox/service.db";

describe("bulkgen sandbox", () => {
  it("keeps its state in the workspace, where the other commands find it while it is served", async () => {
    const { url, dashboard } = await serve();
    expect(dashboard).toMatch(new RegExp(`^${url}/dashboard\\?token=[0-9a-f]{64}$`));
    expect(existsSync(join(folder, state))).toBe(true);

    const made = await bulkgen("sandbox", "keys", "create", "nightly");
    const key = made.stdout.trim();
    expect(made.stdout).toMatch(/^svc_[A-Za-z0-9]{32}\n$/);
    expect((await me(url, key)).body.api_key.name).toBe("nightly");

    await bulkgen("sandbox", "account", "--credits", "12.5", "--subscription", "past_due");
    const { credits, subscription } = (await me(url, key)).body;
    expect([credits.balance, subscription.status, subscription.plan]).toEqual([12.5, "past_due", "Pro"]);

    expect(await json("sandbox", "keys", "list")).toMatchObject([
      { name: "nightly", requests_count: 2, credits_used: 0, public: false, revoked_at: null },
      { name: "sandbox", public: true },
    ]);
    expect((await bulkgen("sandbox", "keys", "revoke", "nightly")).status).toBe(0);
    expect((await me(url, key)).body.error.code).toBe("INVALID_API_KEY");
  });

  it("changes the plan and credits of an existing account only when the flags say so", async () => {
    await bulkgen("sandbox", "account", "--create", "ana@example.com");
    await bulkgen("sandbox", "account", "--plan", "Starter", "--credits", "3");
    const first = await serve();
    const kept = (await me(first.url, first.key)).body;
    expect([kept.subscription.plan, kept.credits.balance]).toEqual(["Starter", 3]);
    await stop();
    const second = await serve("--plan", "enterprise", "--credits", "8");
    const changed = (await me(second.url, second.key)).body;
    expect([changed.subscription.plan, changed.credits.balance]).toEqual(["Enterprise", 8]);
    expect(await json("sandbox", "account", "--user", "ana@example.com")).toMatchObject({
      credits: { balance: 500 },
      subscription: { plan: "Pro" },
    });
  });

  it("plays the models that were saved from a service, with the plan and credits of a real account", async () => {
    const saved = await bulkgen("models", "--sandbox", "--save", "models.json");
    expect([saved.status, saved.stdout]).toEqual([0, ""]);
    const list = JSON.parse(readFileSync(join(folder, "models.json"), "utf8"));
    list.models = [{ ...list.models[0], model_key: "theirs", credits_cost: 9 }];
    writeFileSync(join(folder, "models.json"), JSON.stringify(list));
    const rehearsal = ["--models", "models.json", "--plan", "Starter", "--credits", "10"];
    const { url, key } = await serve("--state", "rehearsal.db", ...rehearsal);
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const generate = (model: string) =>
      fetch(`${url}/api/v1/generate`, {
        method: "POST",
        headers,
        body: JSON.stringify({ model, prompt: "A heron" }),
      });
    expect((await (await generate("theirs")).json()).credits_remaining).toBe(1);
    expect((await generate("theirs")).status).toBe(402);
    expect((await generate("aurora-image")).status).toBe(400);
    expect((await me(url, key)).body.subscription.plan).toBe("Starter");
  });

  it("does as a file of switches says, and refuses one that is wrong by naming the switch", async () => {
    writeFileSync(join(folder, "profile.json"), JSON.stringify({ errorShape: "flat", requestIds: true }));
    const { url } = await serve("--state", ":memory:", "--switches", "profile.json");
    const answer = await fetch(`${url}/api/v1/me`);
    expect(answer.headers.get("x-request-id")).not.toBeNull();
    expect(await answer.json()).toMatchObject({ code: "MISSING_API_KEY" });
    writeFileSync(join(folder, "bad.json"), JSON.stringify({ limiter: { kind: "leaky" }, colour: 1 }));
    const refused = await bulkgen("sandbox", "--switches", "bad.json");
    expect(refused).toMatchObject({ status: 2, stdout: "" });
    expect(refused.stderr).toMatch(/bad\.json is not a set of switches[\s\S]*colour[\s\S]*limiter\.kind/);
  });

  it("lets things go wrong as a preset or a file says", async () => {
    const always = { rules: [{ fault: { kind: "http-error", status: 503 }, rate: 1 }] };
    writeFileSync(join(folder, "faults.json"), JSON.stringify(always));
    const { url, key } = await serve("--faults", "faults.json", "--fault-seed", "7");
    expect((await fetch(`${url}/api/v1/me`, { headers: { "x-api-key": key } })).status).toBe(503);
    expect(await bulkgen("sandbox", "--faults", "bad-day")).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(
        /^bulkgen: expected a JSON file or one of flaky, .*, got bad-day: there is no file \S+bad-day$/m,
      ),
    });
    expect((await bulkgen("sandbox", "--faults", folder)).stderr).toMatch(
      /, got (\S+): \1 is a folder; expected a file$/m,
    );
  });

  it("says what is wrong with a file of models, and does not start", async () => {
    writeFileSync(join(folder, "models.json"), '{"models": [{"model_key": "a"}]}');
    const { status, stderr } = await bulkgen("sandbox", "--models", "models.json");
    expect(status).toBe(2);
    expect(stderr).toContain("models.json is not a list of models:");
    expect(stderr).toContain("→ at models[0].category");
    expect((await bulkgen("sandbox", "--models", "none.json")).stderr).toContain("there is no file ");
  });

  it("leaves nothing behind with its state in memory", async () => {
    const { url, key } = await serve("--state", ":memory:", "--credits", "5");
    expect((await me(url, key)).body.credits.balance).toBe(5);
    expect(existsSync(join(folder, ".bulkgen"))).toBe(false);
  });
});

describe("files as inputs", () => {
  const generate = async (url: string, key: string, image_url: string) => {
    const response = await fetch(`${url}/api/v1/generate`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: JSON.stringify({ model: "atelier-upscale", image_url }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every shape
    return { status: response.status, body: (await response.json()) as any };
  };

  it("are not taken from the folder in which the sandbox was started", async () => {
    writeFileSync(join(folder, "private.png"), "a picture");
    const { url, key } = await serve();
    for (const path of ["private.png", "missing.png"]) {
      const { status, body } = await generate(url, key, path);
      expect([status, body.error.message]).toEqual([400, "image_url must be a URL: https://…"]);
    }
  });

  it("are taken from below the folder that --inputs names, and from nowhere else", async () => {
    mkdirSync(join(folder, "shared"));
    writeFileSync(join(folder, "private.png"), "a picture");
    writeFileSync(join(folder, "shared", "cup.png"), "a picture");
    const { url, key } = await serve("--inputs", "shared");
    expect((await generate(url, key, "cup.png")).status).toBe(200);
    expect((await generate(url, key, "../private.png")).status).toBe(400);
  });

  it("need a folder that exists", async () => {
    const { status, stderr } = await bulkgen("sandbox", "--inputs", "nowhere");
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining('--inputs: expected a folder, got "nowhere"'),
    ]);
  });
});

describe("a port that cannot be had", () => {
  it("is refused with advice", async () => {
    expect(await bulkgen("sandbox", "--port", "70000")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("--port: expected a port from 0 to 65535, got 70000"),
    });
    const { port } = new URL((await serve()).url);
    expect(await bulkgen("sandbox", "--state", ":memory:", "--port", port)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining(
        `port ${port} is in use by another program. Choose another with --port`,
      ),
    });
  });
});

describe("a subscription whose period is over", () => {
  it("has ended if it was to be canceled, for the service and for those who ask", async () => {
    const { url, key } = await serve();
    await bulkgen("sandbox", "account", "--cancel-at-period-end", "--period-end", "2020-01-01");
    expect((await me(url, key)).body.subscription).toMatchObject({
      status: "canceled",
      current_period_end: "2020-01-01T00:00:00.000Z",
    });
    expect((await bulkgen("sandbox", "account")).stdout).toContain("canceled, ended 2020-01-01");
    await bulkgen("sandbox", "account", "--subscription", "active");
    expect((await me(url, key)).body.subscription).toMatchObject({
      status: "active",
      cancel_at_period_end: false,
    });
  });

  it("is renewed otherwise, month by month or year by year", async () => {
    const { url, key } = await serve();
    await bulkgen("sandbox", "account", "--billing-interval", "year", "--period-end", "2020-01-01");
    const { status, billing_interval, current_period_end } = (await me(url, key)).body.subscription;
    expect([status, billing_interval]).toEqual(["active", "year"]);
    expect((Date.parse(current_period_end) - Date.UTC(2020, 0, 1)) % (365 * 24 * 60 * 60 * 1_000)).toBe(0);
  });
});

describe("the administration", () => {
  it("takes its flags before or after the word that says what to do", async () => {
    expect(
      await json("sandbox", "--state", "a.db", "account", "--create", "ana@example.com", "--name", "Ana"),
    ).toMatchObject({
      user: { email: "ana@example.com", name: "Ana" },
    });
    const all = await json("sandbox", "account", "--all", "--state", "a.db");
    expect(all.map((each: { user: { email: string } }) => each.user.email)).toEqual([
      "sandbox@localhost.invalid",
      "ana@example.com",
    ]);
    expect(existsSync(join(folder, ".bulkgen"))).toBe(false);
  });

  it.each([
    [["keys", "list"], "there is no sandbox state "],
    [["keys", "list", "--state", ":memory:"], "state in memory cannot be changed from here"],
    [["account", "--plan", "Gold"], "expected one of Starter, Pro, Enterprise"],
    [["account", "--subscription", "paused"], "expected one of active, canceled, past_due, none"],
    [["account", "--period-end", "soon"], "expected a date such as 2026-12-31"],
    [["account", "--create", "ana"], "expected an e-mail address"],
    [["keys", "create", " "], "name: expected a value, got an empty text"],
  ])("refuses %j in one line, as a mistake of usage", async (words, message) => {
    const { status, stdout, stderr } = await bulkgen("sandbox", ...words);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^ {4}at /m);
  });
});
