import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
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

function look(address = "/dashboard"): Promise<Page> {
  return visit(address, { headers: { cookie } });
}

/** Sends a form of the page, with the fields that it hides, unless others are given. */
async function submit(path: string, fields: Record<string, string>, headers: Record<string, string> = {}) {
  const { text } = await look();
  const hidden = Object.fromEntries(
    [...text.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  );
  const body = new URLSearchParams({ ...hidden, ...fields });
  const from = { cookie, origin: caller.sandbox.url, ...headers };
  return visit(path, { method: "POST", body, headers: from });
}

/** Makes a key by the form and returns the page that shows it. */
async function makeKey(name: string): Promise<{ shown: Page; address: string; value: string }> {
  const sent = await submit("/dashboard/keys", { name });
  const address = sent.headers.get("location") ?? "";
  const shown = await look(address);
  return { shown, address, value: /data-key>(svc_[A-Za-z0-9]{32})</.exec(shown.text)?.[1] ?? "" };
}

describe("the link", () => {
  it("is exchanged for a cookie that scripts and other sites cannot use", async () => {
    const entered = await visit(caller.sandbox.dashboard);
    expect([entered.status, entered.headers.get("location")]).toEqual([303, "/dashboard"]);
    const port = new URL(caller.sandbox.url).port;
    expect(entered.headers.get("set-cookie")).toMatch(
      new RegExp(`^bulkgen_dashboard_${port}=[\\w-]{43}; Path=/dashboard; HttpOnly; SameSite=Strict$`),
    );
    expect((await look()).status).toBe(200);
  });

  it.each(["", "?token=", "?token=wrong"])("is needed: /dashboard%s shows nothing", async (query) => {
    const page = await visit(`/dashboard${query}`);
    expect(page.status).toBe(401);
    expect(page.headers.get("set-cookie")).toBeNull();
    expect(page.text).not.toContain("API keys");
  });

  it("is not what the cookie holds", () => {
    const token = new URL(caller.sandbox.dashboard).searchParams.get("token") ?? "none";
    expect(token.length).toBe(64);
    expect(cookie).not.toContain(token);
  });

  it("gives a cookie that cannot be guessed at: one letter off, and nothing is shown", async () => {
    const other = await visit("/dashboard", { headers: { cookie: `${cookie.slice(0, -1)}!` } });
    expect(other.status).toBe(401);
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
    expect(await statusFor({ host: `evil.example:${port}` })).toBe(403);
    expect(await statusFor({ host: `evil.example:${port}` }, "GET", "/dashboard/style.css")).toBe(403);
    expect(await statusFor({ host: `127.0.0.1.evil.example:${port}` })).toBe(403);
    expect(await statusFor({ host: `127.0.0.1:${port}` })).toBe(200);
  });

  it("is refused from any other origin, whatever it asks for", async () => {
    for (const origin of ["http://evil.example", "null", "http://127.0.0.1:1"]) {
      expect(await statusFor({ origin })).toBe(403);
      expect((await submit("/dashboard/keys", { name: "theirs" }, { origin })).status).toBe(403);
    }
    expect((await look()).text).not.toContain("theirs");
  });

  it("is refused as a form without an origin, a cookie, or the page's own token", async () => {
    const token = /name="token" value="([^"]+)"/.exec((await look()).text)?.[1] ?? "";
    const body = new URLSearchParams({ token, name: "theirs" });
    expect((await visit("/dashboard/keys", { method: "POST", body, headers: { cookie } })).status).toBe(403);
    expect((await submit("/dashboard/keys", { name: "theirs" }, { cookie: "" })).status).toBe(401);
    expect((await submit("/dashboard/keys", { name: "theirs", token: "guessed" })).status).toBe(403);
    expect((await submit("/dashboard/keys/1/revoke", { token: "" })).status).toBe(403);
    expect((await look()).text).not.toContain("theirs");
  });

  it("is refused when its form is large", async () => {
    expect((await submit("/dashboard/keys", { name: "x".repeat(20_000) })).status).toBe(413);
  });
});

describe("every page", () => {
  it("allows no script, no frame, no other site, and is not kept by the browser", async () => {
    for (const page of [await look(), await visit("/dashboard"), await look("/dashboard/nowhere")]) {
      const policy = page.headers.get("content-security-policy");
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain("script-src");
      expect(policy).not.toContain("unsafe");
      expect(page.headers.get("cache-control")).toBe("no-store");
      expect(page.headers.get("x-content-type-options")).toBe("nosniff");
      expect(page.text.replaceAll(caller.sandbox.url, "")).not.toMatch(/<script|https?:|style=/);
    }
    expect((await look("/dashboard/nowhere")).status).toBe(404);
  });

  it("shows what people wrote as they wrote it, and never as markup", async () => {
    const hostile = `"><img src=x onerror=alert(1)>&amp;`;
    await caller.generate({ model: "aurora-image", prompt: hostile });
    await submit("/dashboard/keys", { name: "<b>bold</b>" });
    const { text } = await look();
    expect(text).toContain("&quot;&gt;&lt;img src=x onerror=alert(1)&gt;&amp;amp;");
    expect(text).toContain("&lt;b&gt;bold&lt;/b&gt;");
    expect(text).not.toContain("<img src=x");
    expect(text).not.toContain("<b>bold");
  });
});

describe("a new key", () => {
  it("is shown once, works, and is never shown again", async () => {
    const { shown, address, value } = await makeKey("nightly");
    expect(shown.status).toBe(200);
    const answer = await caller.send("GET", "/api/v1/me", { headers: { authorization: `Bearer ${value}` } });
    expect([answer.status, answer.body.api_key.name]).toEqual([200, "nightly"]);
    for (const again of [await look(address), await look()]) {
      expect(again.text).toContain("nightly");
      expect(again.text).not.toContain(value);
    }
  });

  it("is refused as unknown once it is revoked", async () => {
    const { value } = await makeKey("nightly");
    const id = /class="good" data-id="([^"]+)">\s*<th scope="row">nightly/.exec((await look()).text)?.[1];
    expect((await submit(`/dashboard/keys/${id}/revoke`, {})).status).toBe(303);
    const answer = await caller.send("GET", "/api/v1/me", { headers: { authorization: `Bearer ${value}` } });
    expect([answer.status, answer.body.error.code]).toEqual([401, "INVALID_API_KEY"]);
    expect((await look()).text).toMatch(/class="revoked"[^>]*>\s*<th scope="row">nightly/);
  });

  it("without a good name is not made, and the page says why", async () => {
    const refused = await submit("/dashboard/keys", { name: "sandbox" });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("There is a key named &quot;sandbox&quot; already");
    expect((await submit("/dashboard/keys", { name: " " })).text).toContain("A key needs a name");
  });
});

describe("a newcomer", () => {
  it("finds the address, the key, the reference and a first command that works", async () => {
    const { text } = await look();
    expect(text).toContain(`<code>${caller.sandbox.url}</code>`);
    expect(text).toContain(`<code>${caller.sandbox.key}</code>`);
    expect(text).toContain('href="/docs"');
    const command = /<pre class="command">([^<]*)</
      .exec(text)?.[1]
      ?.replaceAll("&quot;", '"')
      .replaceAll("&#39;", "'");
    const { stdout } = await promisify(execFile)("sh", ["-c", command ?? "false"]);
    expect(JSON.parse(stdout).status).toBe("processing");
  });

  it("sees a task finish without reloading, and nothing reload when all are finished", async () => {
    expect((await look()).text).not.toContain('http-equiv="refresh"');
    await caller.generate({ model: "aurora-image", prompt: "A heron" });
    expect((await look()).text).toContain('<meta http-equiv="refresh" content="3">');
    expect((await makeKey("nightly")).shown.text).not.toContain('http-equiv="refresh"');
    caller.clock.advance(1_000);
    expect((await look()).text).not.toContain('http-equiv="refresh"');
  });

  it("can activate the subscription that a refused request asks for", async () => {
    expect((await look()).text).not.toContain("Activate subscription");
    const { db } = new SqliteState(file);
    db.exec("update accounts set subscription_status = null");
    db.close();
    const generate = () => caller.generate({ model: "aurora-image", prompt: "A heron" });
    expect((await generate()).body.error.code).toBe("SUBSCRIPTION_REQUIRED");
    expect((await look()).text).toContain("Activate subscription");
    expect((await submit("/dashboard/activate", {})).status).toBe(303);
    expect((await generate()).status).toBe(200);
    expect((await submit("/dashboard/activate", {}, { cookie: "" })).status).toBe(401);
  });
});

describe("what the page shows", () => {
  const figure = (text: string, card: string) =>
    new RegExp(`id="${card}"[\\s\\S]*?class="figure">\\s*([^<\\n]*)`).exec(text)?.[1]?.trim();

  it("is the balance that GET me would return, refunds included, even before the first request", async () => {
    await caller.generate({ model: "aurora-image", prompt: "A heron" });
    await caller.generate({ model: "aurora-image", prompt: "[[provider-error]]" });
    expect(figure((await look()).text, "credits")).toBe("92");
    caller.clock.advance(1_000);
    expect(figure((await look()).text, "credits")).toBe("96");
    expect((await caller.get("/api/v1/me")).body.credits).toEqual({ balance: 96, used_this_key: 4 });
    expect(figure((await look()).text, "usage")).toBe("3");
  });

  it("is a task's state, and its outputs by addresses that can be fetched", async () => {
    await caller.generate({ model: "aurora-image", prompt: "A heron" });
    expect((await look()).text).toContain("processing");
    caller.clock.advance(1_000);
    const image =
      /<img src="(\/files\/[^"]+)"/.exec((await look()).text)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const file = await caller.download(caller.sandbox.url + image);
    expect(file.subarray(1, 4).toString()).toBe("PNG");
  });

  it("has a player for sound and film, and the reason for a failure", async () => {
    await caller.generate({ model: "voice-clear", prompt: "Good evening" });
    await caller.generate({ model: "reel-text", prompt: "Waves" });
    await caller.generate({ model: "aurora-image", prompt: "[[moderation]]" });
    caller.clock.advance(1_000);
    const { text } = await look();
    expect(text).toMatch(/<audio controls[^>]* src="\/files\/[^"]+\.mp3\?/);
    expect(text).toMatch(/<video controls[^>]* src="\/files\/[^"]+\.mp4\?/);
    expect(text).toContain("The prompt was rejected by content moderation.");
  });

  it("is a page of the newest tasks, and a link to the older ones until there are none", async () => {
    for (let made = 1; made <= 13; made++) {
      await caller.generate({ model: "aurora-image-mini", prompt: `Bird ${made}.` });
    }
    const first = (await look()).text;
    expect(first).toContain("Bird 13.");
    expect(first).not.toContain("Bird 1.");
    const older = /href="([^"]+)">Older tasks/.exec(first)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const second = (await look(older)).text;
    expect(second).toContain("Bird 1.");
    expect(second).not.toContain("Bird 2.");
    expect(second).not.toContain("Older tasks");
  });
});
