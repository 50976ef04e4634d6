import { describe, expect, test } from "vitest";
import { dashboardApp } from "../../src/dashboard/app.js";
import { systemClock } from "../../src/system.js";
import { openDashboard, token } from "./place.js";

const evil = "https://evil.example";

test("a quota that cannot be read is closed all the same", async () => {
  let closed = 0;
  const fails = () => Promise.reject(new Error("disk I/O error"));
  const close = async () => void closed++;
  const run = { options: "{}", startedAt: 0, endedAt: null, counts: {} };
  const browser = {
    runs: async () => [run],
    run: async () => run,
    progress: async () => ({ archived: [], credits: [] }),
  };
  const watch = {
    browser: async () => browser,
    owner: async () => null,
    quotaOf: async () => ({ requests: fails, spent: fails, close }),
  };
  const app = dashboardApp({ token, workspace: { root: "/" }, clock: systemClock, watch } as never);
  const headers = { host: "127.0.0.1:4000", authorization: `Bearer ${token}` };
  for (const path of ["/api/account", "/api/runs/1/progress"])
    expect((await app.request(path, { headers })).status).toBe(500);
  expect(closed).toBe(2);
});

describe("who is let in", () => {
  test.each([
    ["no token", {}, 401],
    ["a wrong token", { authorization: "Bearer 0123456789abcdee" }, 401],
    ["the token in a cookie", { cookie: `token=${token}` }, 401],
    ["a token of another form", { authorization: `Basic ${token}` }, 401],
    ["a name that somebody pointed at this machine", { host: "evil.example:4000" }, 403],
    ["a name that begins like loopback", { host: "127.0.0.1.evil.example:4000" }, 403],
    ["another site's page", { origin: evil }, 403],
    ["a page of another port", { origin: "http://127.0.0.1:4001" }, 403],
    ["a sandboxed frame", { origin: "null" }, 403],
    [
      "a picture on another site's page",
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" },
      403,
    ],
    [
      "another port's page, without Origin",
      { "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" },
      403,
    ],
  ])("%s is refused everywhere", async (_, headers: Record<string, string>, status) => {
    const { ask, service } = await openDashboard();
    const known = status === 403 ? { authorization: `Bearer ${token}` } : { authorization: "" };
    for (const path of ["/api/standing", "/api/events", "/api/runs", "/api/models", "/api/schedules"])
      expect((await ask(path, { headers: { ...known, ...headers } })).status, path).toBe(status);
    for (const path of ["/api/act", "/api/offer", "/api/sheets?name=a.csv", "/api/zip", "/api/check"]) {
      const body = JSON.stringify({ do: "pause", run: 1 });
      const answer = await ask(path, { method: "POST", body, headers: { ...known, ...headers } });
      expect(answer.status, path).toBe(status);
    }
    expect(service.asked).toEqual([]);
  });

  test("a form of another site, which a browser sends without asking, changes nothing", async () => {
    const { ask, get } = await openDashboard();
    const answer = await ask("/api/act", {
      method: "POST",
      body: `{"do":"cancel","run":1,"x":"="}`,
      headers: {
        authorization: "",
        "content-type": "text/plain",
        origin: evil,
        "sec-fetch-site": "cross-site",
      },
    });
    expect(answer.status).toBe(403);
    expect(await get("/api/standing")).toMatchObject({ commands: [] });
  });

  test("the page itself is for everybody on this machine, knows nothing, and may load nothing from elsewhere", async () => {
    const { ask } = await openDashboard();
    const answer = await ask("/", {
      headers: { authorization: "", "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
    });
    expect(answer.status).toBe(200);
    expect(await answer.text()).not.toContain(token);
    const policy = answer.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  });

  test("what is answered about the workspace is never kept by a browser", async () => {
    const { ask } = await openDashboard();
    expect((await ask("/api/standing")).headers.get("cache-control")).toBe("no-store");
  });
});

describe("what is asked for", () => {
  test.each([
    [{ do: "redo", items: ["--all"], price: 0 }],
    [{ do: "approve", items: ["-h"] }],
    [{ do: "start", choices: { file: "--workspace=/tmp" }, price: 1 }],
    [{ do: "adopt", items: ["a"], task: "--yes", price: 0 }],
    [{ do: "refetch", items: ["a"] }],
    [{ do: "unschedule", name: "-x" }],
    [{ do: "pause schedule", name: "--workspace=/tmp" }],
    [{ do: "retry", run: "1; rm -rf", price: 0 }],
    [{ do: "redo", items: ["a"] }],
    [{ do: "redo", items: ["a"], price: -1 }],
    [{ do: "delete everything" }],
    ["text"],
  ])("%j is no act", async (body) => {
    const { refusal, get } = await openDashboard();
    const [status] = await refusal("/api/act", { method: "POST", body: JSON.stringify(body) });
    expect(status).toBe(422);
    expect(await get("/api/standing")).toMatchObject({ commands: [] });
  });

  test.each(["../../etc/passwd.csv", "/etc/hosts.csv", ".bulkgen/state.csv", "sheet.db", "", "a\0.csv"])(
    "%j is no sheet of the workspace",
    async (file) => {
      const { refusal } = await openDashboard();
      const query = new URLSearchParams({ file });
      expect((await refusal(`/api/sheet?${query}`))[0]).toBe(422);
      expect((await refusal("/api/check", { method: "POST", body: JSON.stringify({ file }) }))[0]).toBe(422);
    },
  );

  test("a path that is not there is said to be missing, and a defect shows no stack", async () => {
    const { refusal } = await openDashboard();
    expect(await refusal("/assets/nothing.js")).toEqual([404, "There is no such page."]);
    expect(await refusal("/api/runs/7")).toEqual([404, expect.stringContaining("nothing has been run in")]);
    expect((await refusal("/api/act", { method: "POST", body: "{" }))[1]).toBe("expected JSON");
  });
});
