import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { FaultSettings } from "../../../src/sandbox/faults/fault.js";
import { Caller } from "../caller.js";
import { ManualClock } from "../manual-clock.js";

const image = { model: "aurora-image-mini", prompt: "A boat" };

/** A clock on which nobody wakes before the end. */
class HeldClock extends ManualClock {
  override sleep(_ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
  }
}

let caller: Caller;
afterEach(() => caller.sandbox.close());

/** A sandbox whose first request that can meet this fault meets it. */
async function withFault(fault: FaultSettings | string): Promise<Caller> {
  caller = await Caller.start({ faults: { rules: [{ fault, at: [1] }] }, credits: 10 });
  return caller;
}

const balance = async () => (await caller.get("/api/v1/me")).body.credits.balance;

describe("over a socket", () => {
  it("a lost request breaks the connection and changes nothing", async () => {
    await withFault("lost-request");
    await expect(caller.generate(image)).rejects.toThrow("fetch failed");
    expect(await balance()).toBe(10);
  });

  it("a lost reply breaks the connection after the charge", async () => {
    await withFault("lost-reply");
    await expect(caller.generate(image)).rejects.toThrow("fetch failed");
    expect(await balance()).toBe(9);
  });

  it("a late arrival breaks the connection at once and is charged later", async () => {
    await withFault({ kind: "late-arrival", delayMs: 60_000 });
    const before = caller.clock.now();
    await expect(caller.generate(image)).rejects.toThrow("fetch failed");
    expect(await balance()).toBe(9);
    expect(caller.clock.now() - before).toBe(60_000);
  });

  it("what has not arrived when the sandbox closes never does", async () => {
    const folder = mkdtempSync(join(tmpdir(), "bulkgen-late-"));
    const file = join(folder, "state.db");
    const faults = { rules: [{ fault: "late-arrival", at: [1] }] };
    caller = await Caller.start({ file, faults, credits: 10 }, new HeldClock());
    await expect(caller.generate(image)).rejects.toThrow("fetch failed");
    await caller.sandbox.close();
    caller = await Caller.start({ file });
    expect(await balance()).toBe(10);
    rmSync(folder, { recursive: true });
  });

  it("many requests that take their time at once print no warning of Node's", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on("warning", note);
    const faults = { rules: [{ fault: "late-arrival" as const, every: 1 }] };
    caller = await Caller.start({ faults }, new HeldClock());
    for (let sent = 0; sent < 12; sent++)
      await expect(caller.get("/api/v1/me")).rejects.toThrow("fetch failed");
    process.off("warning", note);
    expect(warnings).toEqual([]);
  });

  it("an HTML error page comes in the service's place", async () => {
    await withFault({ kind: "http-error", status: 503 });
    const response = await fetch(`${caller.sandbox.url}/api/v1/me`);
    expect([response.status, response.headers.get("content-type")]).toEqual([503, "text/html"]);
  });

  it("a cut reply ends in the middle of the body that its length announced", async () => {
    await withFault("cut-reply");
    const response = await fetch(`${caller.sandbox.url}/api/v1/models`);
    expect(Number(response.headers.get("content-length"))).toBeGreaterThan(0);
    await expect(response.text()).rejects.toThrow();
  });

  it("slow bytes take their time and arrive whole", async () => {
    await withFault({ kind: "slow-bytes", bytesPerSecond: 100 });
    const before = caller.clock.now();
    const answer = await caller.get("/api/v1/me");
    const seconds = (caller.clock.now() - before) / 1_000;
    expect(answer.body.credits.balance).toBe(10);
    expect(seconds).toBeCloseTo(JSON.stringify(answer.body).length / 100, 0);
  });

  it("requests to no endpoint use up no fault", async () => {
    await withFault("lost-reply");
    expect((await caller.get("/api/v9/nothing")).status).toBe(404);
    expect((await caller.send("DELETE", "/api/v1/me")).status).toBe(405);
    await expect(caller.generate(image)).rejects.toThrow("fetch failed");
  });
});

describe("a download", () => {
  /** The output of a finished task under a fault, and what is fetched of it. */
  async function output(fault: FaultSettings | string) {
    await withFault(fault);
    const url: string = (await caller.finish(image)).output_urls[0];
    const get = (headers: Record<string, string> = {}) => fetch(url, { headers, redirect: "manual" });
    const bytes = async (response: Response) => Buffer.from(await response.arrayBuffer());
    return { url, get, bytes, whole: async () => bytes(await get()) };
  }

  it("that is truncated ends early, or pretends to be whole", async () => {
    const cut = await output("download-truncated");
    await expect(cut.whole()).rejects.toThrow();
    const whole = await cut.whole();
    await caller.sandbox.close();
    const pretending = await output({ kind: "download-truncated", pretends: true, keep: 0.25 });
    expect((await pretending.whole()).length).toBe(Math.floor(whole.length / 4));
  });

  it("that stalls comes in two pieces with a pause between", async () => {
    const { whole } = await output({ kind: "download-stalled", forMs: 90_000 });
    const before = caller.clock.now();
    const stalled = await whole();
    expect(caller.clock.now() - before).toBe(90_000);
    expect(stalled.equals(await whole())).toBe(true);
  });

  it("that stalls before its first byte comes after the pause", async () => {
    const { whole } = await output({ kind: "download-stalled", keep: 0, forMs: 90_000 });
    const before = caller.clock.now();
    expect((await whole()).length).toBeGreaterThan(0);
    expect(caller.clock.now() - before).toBe(90_000);
  });

  it("that is corrupt has the same length and tag, and other bytes", async () => {
    const { get, bytes } = await output("download-corrupt");
    const [first, second] = [await get(), await get()];
    expect(first.headers.get("etag")).toBe(second.headers.get("etag"));
    const [spoiled, good] = [await bytes(first), await bytes(second)];
    expect(spoiled.length).toBe(good.length);
    expect(spoiled.equals(good)).toBe(false);
  });

  it("that has a new ETag does not go on with the old one's range", async () => {
    caller = await Caller.start({ faults: { rules: [{ fault: "download-new-etag", at: [2] }] } });
    const url = (await caller.finish(image)).output_urls[0];
    const etag = (await fetch(url)).headers.get("etag") ?? "";
    const headers = { range: "bytes=10-", "if-range": etag };
    const changed = await fetch(url, { headers });
    expect([changed.status, changed.headers.get("etag") === etag]).toEqual([200, false]);
    expect((await fetch(url, { headers })).status).toBe(206);
  });

  it("that ignores Range comes whole", async () => {
    const { get } = await output("download-ignores-range");
    const headers = { range: "bytes=10-19" };
    expect([(await get(headers)).status, (await get(headers)).status]).toEqual([200, 206]);
  });

  it("that has expired early is refused until it is asked for again", async () => {
    const { get } = await output("download-expired");
    expect([(await get()).status, (await get()).status]).toEqual([403, 200]);
  });

  it("that is redirected is that many hops further, or elsewhere", async () => {
    const { url, get } = await output({ kind: "download-redirect", hops: 3 });
    let response = await get();
    let hops = 0;
    for (; response.status === 302; hops++) {
      const next = new URL(response.headers.get("location") ?? "", url);
      response = await fetch(next, { redirect: "manual" });
    }
    expect([hops, response.status]).toEqual([3, 200]);
    await caller.sandbox.close();
    const away = await output({ kind: "download-redirect", to: "http://169.254.169.254/latest" });
    expect((await away.get()).headers.get("location")).toBe("http://169.254.169.254/latest");
  });
});
