import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AccountAnswer, NewKey } from "../../src/api/service-page.js";
import { createAccount, openDesk } from "../../src/service/admin/accounts.js";
import { SqliteState } from "../../src/service/state/sqlite-state.js";
import { Caller } from "../sandbox/caller.js";

let caller: Caller;
let folder: string;
let file: string;
/** The cookie that the link was exchanged for. */
let cookie: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-dashboard-"));
  file = join(folder, "sandbox.db");
  caller = await Caller.start({ file, credits: 100, plan: "Enterprise", taskMs: { min: 1_000, max: 1_000 } });
  const entered = await visit(caller.sandbox.dashboard);
  cookie = entered.headers.get("set-cookie")?.split(";")[0] ?? "";
});
afterEach(async () => {
  await caller.sandbox.close();
  rmSync(folder, { recursive: true });
});

interface Page {
  status: number;
  headers: Headers;
  text: string;
}

/** One request without following redirects. */
async function visit(address: string, init: RequestInit = {}): Promise<Page> {
  const response = await fetch(new URL(address, caller.sandbox.url), { redirect: "manual", ...init });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** What the page is told of an account. */
async function look(query = ""): Promise<AccountAnswer> {
  const { status, text } = await visit(`/dashboard/api/account${query}`, { headers: { cookie } });
  expect(status).toBe(200);
  return JSON.parse(text);
}

/** Asks for a change as the page does, with its token, unless other headers are given. */
async function change(path: string, fields: object, headers: Record<string, string> = {}): Promise<Page> {
  const { formToken } = await look();
  const own = { cookie, origin: caller.sandbox.url, "x-form-token": formToken };
  const sent = { "content-type": "application/json", ...own, ...headers };
  return visit(`/dashboard/api/${path}`, { method: "POST", body: JSON.stringify(fields), headers: sent });
}

async function makeKey(name: string): Promise<NewKey> {
  return JSON.parse((await change("keys", { name })).text);
}

const keyNames = async () => (await look()).keys.map((key) => key.name);

describe("the link", () => {
  it("is exchanged for a cookie that scripts and other sites cannot use", async () => {
    const entered = await visit(caller.sandbox.dashboard);
    expect([entered.status, entered.headers.get("location")]).toEqual([303, "/dashboard"]);
    const port = new URL(caller.sandbox.url).port;
    expect(entered.headers.get("set-cookie")).toMatch(
      new RegExp(`^bulkgen_dashboard_${port}=[\\w-]{43}; Path=/dashboard; HttpOnly; SameSite=Strict$`),
    );
    expect((await visit("/dashboard", { headers: { cookie } })).status).toBe(200);
    expect((await look()).account.email).toBe("sandbox@localhost.invalid");
  });

  it.each(["", "?token=", "?token=wrong"])("is needed: /dashboard%s shows nothing", async (query) => {
    const page = await visit(`/dashboard${query}`);
    expect(page.status).toBe(401);
    expect(page.headers.get("set-cookie")).toBeNull();
    const answer = await visit(`/dashboard/api/account${query}`);
    expect(answer.status).toBe(401);
    expect(Object.keys(JSON.parse(answer.text))).toEqual(["error"]);
  });

  it("is not what the cookie holds", () => {
    const token = new URL(caller.sandbox.dashboard).searchParams.get("token") ?? "none";
    expect(token.length).toBe(64);
    expect(cookie).not.toContain(token);
  });

  it("gives a cookie that cannot be guessed at: one letter off, and nothing is shown", async () => {
    const other = { headers: { cookie: `${cookie.slice(0, -1)}!` } };
    for (const path of ["/dashboard", "/dashboard/api/account"])
      expect((await visit(path, other)).status).toBe(401);
  });
});

describe("a request that a stranger's page could send", () => {
  /** With a Host header of its own, which fetch does not let anyone choose. */
  function statusFor(headers: Record<string, string>, method = "GET", path = "/dashboard"): Promise<number> {
    const { port } = new URL(caller.sandbox.url);
    return new Promise((resolve, reject) => {
      const sent = request({ host: "127.0.0.1", port, path, method, headers: { cookie, ...headers } });
      sent.on("response", (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.on("error", reject);
      sent.end();
    });
  }

  it("is refused under any host name but this machine's", async () => {
    const { port } = new URL(caller.sandbox.url);
    for (const path of ["/dashboard", "/dashboard/api/account"]) {
      expect(await statusFor({ host: `evil.example:${port}` }, "GET", path)).toBe(403);
      expect(await statusFor({ host: `127.0.0.1.evil.example:${port}` }, "GET", path)).toBe(403);
      expect(await statusFor({ host: `127.0.0.1:${port}` }, "GET", path)).toBe(200);
    }
    const [part = ""] = /\/dashboard\/assets\/[^"]+/.exec((await visit("/dashboard")).text) ?? [];
    expect(await statusFor({ host: `127.0.0.1:${port}` }, "GET", part)).toBe(200);
    expect(await statusFor({ host: `evil.example:${port}` }, "GET", part)).toBe(403);
  });

  it("is refused from any other origin, whatever it asks for", async () => {
    for (const origin of ["http://evil.example", "null", "http://127.0.0.1:1"]) {
      expect(await statusFor({ origin })).toBe(403);
      expect(await statusFor({ origin }, "GET", "/dashboard/api/account")).toBe(403);
      expect((await change("keys", { name: "theirs" }, { origin })).status).toBe(403);
    }
    expect(await keyNames()).not.toContain("theirs");
  });

  it("is refused as a change without an origin, a cookie, or the page's own token", async () => {
    const { formToken } = await look();
    const body = JSON.stringify({ name: "theirs" });
    const headers = { cookie, "x-form-token": formToken };
    expect((await visit("/dashboard/api/keys", { method: "POST", body, headers })).status).toBe(403);
    expect((await change("keys", { name: "theirs" }, { cookie: "" })).status).toBe(401);
    expect((await change("keys", { name: "theirs" }, { "x-form-token": "guessed" })).status).toBe(403);
    expect((await change("keys/1/revoke", {}, { "x-form-token": "" })).status).toBe(403);
    expect((await change("activate", {}, { "x-form-token": "" })).status).toBe(403);
    expect(await keyNames()).not.toContain("theirs");
  });

  it("is refused when it is large", async () => {
    expect((await change("keys", { name: "x".repeat(20_000) })).status).toBe(413);
  });
});

describe("every answer", () => {
  it("allows no inline script or style, no frame, no other site, and is not kept by the browser", async () => {
    const paths = ["/dashboard", "/dashboard/api/account", "/dashboard/nowhere"];
    const pages = [await visit("/dashboard")];
    for (const path of paths) pages.push(await visit(path, { headers: { cookie } }));
    for (const page of pages) {
      const policy = page.headers.get("content-security-policy");
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain("unsafe");
      expect(page.headers.get("cache-control")).toBe("no-store");
      expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    }
    expect(pages.map(({ status }) => status)).toEqual([401, 200, 200, 404]);
    expect(pages[1]?.text).not.toMatch(/<script(?![^>]* src="\/dashboard\/)|<style|https?:|style=/);
    expect(pages[2]?.headers.get("content-type")).toContain("application/json");
  });
});

describe("a new key", () => {
  it("is told once, works, and is never told again", async () => {
    const { value, id } = await makeKey("nightly");
    expect(value).toMatch(/^svc_[A-Za-z0-9]{32}$/);
    const answer = await caller.send("GET", "/api/v1/me", { headers: { authorization: `Bearer ${value}` } });
    expect([answer.status, answer.body.api_key.name]).toEqual([200, "nightly"]);
    const later = await look();
    expect(later.keys).toContainEqual(expect.objectContaining({ id, name: "nightly", requestsCount: 1 }));
    expect(JSON.stringify(later)).not.toContain(value);
  });

  it("is refused as unknown once it is revoked", async () => {
    const { value, id } = await makeKey("nightly");
    expect((await change(`keys/${id}/revoke`, {})).status).toBe(200);
    const answer = await caller.send("GET", "/api/v1/me", { headers: { authorization: `Bearer ${value}` } });
    expect([answer.status, answer.body.error.code]).toEqual([401, "INVALID_API_KEY"]);
    const { keys, now } = await look();
    expect(keys.find((key) => key.id === id)?.revokedAt).toBe(now);
  });

  it("without a good name is not made, and the page is told why", async () => {
    const refused = await change("keys", { name: "sandbox" });
    expect(refused.status).toBe(400);
    const message = (page: Page) => JSON.parse(page.text).error.message;
    expect(message(refused)).toContain('There is a key named "sandbox" already');
    for (const fields of [{ name: " " }, {}, { name: 7 }])
      expect(message(await change("keys", fields))).toContain("A key needs a name");
  });

  it("has the name that was given, whatever it holds", async () => {
    await makeKey("<b>bold</b>");
    expect(await keyNames()).toContain("<b>bold</b>");
  });
});

describe("an account", () => {
  it("of another user is told and changed when it is named, and the sandbox's own is not", async () => {
    const desk = openDesk({
      file,
      clock: caller.clock,
      random: { next: () => 0.5, uuid: () => crypto.randomUUID() },
    });
    const { id } = createAccount(desk, "second@example.org", {});
    desk.close();
    expect((await change("keys", { user: id, name: "theirs" })).status).toBe(200);
    const other = await look(`?user=${id}`);
    expect(other.account.email).toBe("second@example.org");
    expect(other.accounts.map(({ email }) => email)).toEqual([
      "sandbox@localhost.invalid",
      "second@example.org",
    ]);
    expect(other.keys.map(({ name }) => name)).toContain("theirs");
    expect(other.publicKey).toBeNull();
    expect(other.firstCommand).toContain("YOUR_API_KEY");
    expect(await keyNames()).not.toContain("theirs");
  });

  it("is told with the key that everybody has", async () => {
    expect((await look()).publicKey).toBe(caller.sandbox.key);
  });

  it("can have the subscription activated that a refused request asks for", async () => {
    expect((await look()).account.subscription).toBe("active");
    const { db } = new SqliteState(file);
    db.exec("update accounts set subscription_status = null");
    db.close();
    const generate = () => caller.generate({ model: "aurora-image", prompt: "A heron" });
    expect((await generate()).body.error.code).toBe("SUBSCRIPTION_REQUIRED");
    expect((await look()).account.subscription).toBeNull();
    expect((await change("activate", {}, { cookie: "" })).status).toBe(401);
    expect((await change("activate", {})).status).toBe(200);
    expect((await generate()).status).toBe(200);
  });

  it("has the balance that GET me would return, refunds included, even before the first request", async () => {
    await caller.generate({ model: "aurora-image", prompt: "A heron" });
    await caller.generate({ model: "aurora-image", prompt: "[[provider-error]]" });
    expect((await look()).account.balance).toBe(92);
    caller.clock.advance(1_000);
    expect((await look()).account.balance).toBe(96);
    expect((await caller.get("/api/v1/me")).body.credits).toEqual({ balance: 96, used_this_key: 4 });
    expect((await look()).keys[0]).toMatchObject({ requestsCount: 3, used: 4 });
  });
});

describe("a task", () => {
  it("is told in its state, with outputs by addresses that can be fetched and stay the same", async () => {
    await caller.generate({ model: "aurora-image", prompt: "A heron" });
    expect((await look()).tasks).toMatchObject([{ status: "processing", outputs: [], prompt: "A heron" }]);
    caller.clock.advance(1_000);
    const [task] = (await look()).tasks;
    const file = await caller.download(caller.sandbox.url + task?.outputs[0]);
    expect(file.subarray(1, 4).toString()).toBe("PNG");
    caller.clock.advance(1_000);
    expect((await look()).tasks[0]?.outputs).toEqual(task?.outputs);
    for (let minutes = 0; minutes < 180; minutes += 20) {
      const path = (await look()).tasks[0]?.outputs[0];
      caller.clock.advance(20 * 60 * 1_000);
      await caller.download(caller.sandbox.url + path);
    }
  });

  it("of any category is told, and the reason for a failure", async () => {
    const hostile = `"><img src=x onerror=alert(1)>&amp;`;
    await caller.generate({ model: "voice-clear", prompt: "Good evening" });
    await caller.generate({ model: "reel-text", prompt: hostile });
    await caller.generate({ model: "aurora-image", prompt: "[[moderation]]" });
    caller.clock.advance(1_000);
    const { tasks } = await look();
    expect(tasks).toMatchObject([
      { category: "image", error: "The prompt was rejected by content moderation.", credits: 0 },
      { category: "video", prompt: hostile, outputs: [expect.stringMatching(/^\/files\/[^"]+\.mp4\?/)] },
      { category: "audio", outputs: [expect.stringMatching(/^\/files\/[^"]+\.mp3\?/)] },
    ]);
  });

  it("is on a page of the newest ones, or an older page, until there are no more", async () => {
    for (let made = 1; made <= 13; made++) {
      await caller.generate({ model: "aurora-image-mini", prompt: `Bird ${made}.` });
    }
    const first = await look();
    expect(first.tasks.map(({ prompt }) => prompt).slice(0, 2)).toEqual(["Bird 13.", "Bird 12."]);
    expect(first.tasks).toHaveLength(12);
    const second = await look(`?before=${first.older}`);
    expect(second.tasks.map(({ prompt }) => prompt)).toEqual(["Bird 1."]);
    expect(second.older).toBeNull();
  });
});
