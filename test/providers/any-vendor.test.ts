import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { JobLater, type ProviderJob } from "../../src/providers/provider.js";
import type { ManualClock } from "../manual-clock.js";
import type { Route, Trouble, Upstream } from "../upstreams/upstream.js";
import {
  finished,
  jobOf,
  never,
  type Opened,
  openVendor,
  outcomeOf,
  type Vendor,
  vendors,
} from "./http-kinds.js";

const open: { upstream: Upstream; provider: Opened["provider"] }[] = [];

afterEach(async () => {
  for (const { upstream, provider } of open.splice(0)) {
    await provider.close?.();
    await upstream.stop();
  }
});

async function started<One extends Vendor>(vendor: One, key?: string | null) {
  const upstream = (await vendor.make().start()) as Upstream & { key: string };
  const opened = openVendor(vendor, upstream, key === undefined ? upstream.key : key);
  open.push({ upstream, provider: opened.provider });
  return { upstream, ...opened };
}

const all = Object.entries(vendors) as [string, Vendor][];

/**
 * What a vendor's public pages say of its busy answers. None but a 429 is taken for "not accepted" unless they say that such a
 * request is not processed, and it comes with the vendor's own code: a 502 of something in between proves nothing.
 */
const doubtful = { "429": "later: provider", "502": "unknown", "503": "unknown", "504": "unknown" };
const busy: Record<string, Record<string, string>> = {
  openai: { "429": "later: provider", "502 other": "unknown", "503 server_is_overloaded": "later: provider" },
  gemini: { "429": "later: provider", "502 OTHER": "unknown", "503 UNAVAILABLE": "later: provider" },
  fal: doubtful,
  replicate: doubtful,
  elevenlabs: doubtful,
  bfl: doubtful,
};

describe.each(all)("%s", (name, vendor) => {
  it("makes what it was asked for, once", async () => {
    const { upstream, provider } = await started(vendor);
    const done = await finished(provider, jobOf(vendor, "a red fox"));
    expect(done.outputs).toHaveLength(1);
    expect(done.ref).toBeTruthy();
    expect(done.cost).toMatchObject(name === "fal" ? {} : { amount: expect.any(Number) });
    expect(upstream.times("a red fox")).toBe(1);
  });

  it("sends a paid request on a connection of its own", async () => {
    const { upstream, provider } = await started(vendor);
    await finished(provider, jobOf(vendor, "one"));
    await finished(provider, jobOf(vendor, "two"));
    const ports = upstream.asked.filter(({ method }) => method === "POST").map(({ port }) => port);
    expect(new Set(ports).size).toBe(2);
  });

  const lost: [string, Trouble][] = [
    ["a dropped answer", { after: "drop" }],
    ["an empty 200", { after: "empty" }],
    ["a web page", { after: "html" }],
    ["half an answer", { after: "truncated" }],
    ["other types", { after: "wrong types" }],
    ["a 502 without words", { status: 502, body: Buffer.alloc(0) }],
    ["a 504 of a gateway", { status: 504, body: Buffer.from("<html>504 Gateway Time-out</html>") }],
    ["a 500 without the vendor's words", { status: 500, body: { oops: true } }],
  ];

  it.each(lost)("does not know what became of a submit after %s, and sends it once", async (_, trouble) => {
    const { upstream, provider } = await started(vendor);
    upstream.next("submit", trouble);
    const { outcome, message } = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    expect({ outcome, message }).toMatchObject({ outcome: "unknown" });
    expect(upstream.times("a red fox")).toBe("after" in trouble ? 1 : 0);
    expect(upstream.asked.filter(({ method }) => method === "POST")).toHaveLength(1);
  });

  it("waits as long as a 429 asks, and a while if it does not say", async () => {
    const { upstream, provider, clock } = await started(vendor);
    const inAMinute = new Date(clock.now() + 60_000).toUTCString();
    upstream.next(
      "submit",
      { status: 429, retryAfter: "7", body: {} },
      { status: 429, retryAfter: inAMinute, date: new Date(clock.now()).toUTCString(), body: {} },
      { status: 429 },
    );
    const waits: number[] = [];
    for (let count = 0; count < 3; count++) {
      const { outcome, error } = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
      expect(outcome).toBe("later: provider");
      waits.push((error as JobLater).afterMs);
    }
    expect(waits.slice(0, 2)).toEqual([7000, 60_000]);
    expect(waits[2]).toBeGreaterThan(1000);
    expect(upstream.times("a red fox")).toBe(0);
  });

  it("is refused with the vendor's words and without the key, if the key is wrong", async () => {
    const { upstream, provider } = await started(vendor, "a-wrong-secret-key");
    const { outcome, message } = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    expect(outcome).toBe("refused: provider");
    expect(message).not.toContain("a-wrong-secret-key");
    expect(upstream.times("a red fox")).toBe(0);
    const wrong = await provider.check?.(never, []);
    // fal has no address to ask at for nothing.
    if (name !== "fal") expect(wrong).toMatch(/key|auth/i);
    expect(wrong ?? "").not.toContain("a-wrong-secret-key");
  });

  it("says nothing against a good key", async () => {
    const { provider } = await started(vendor);
    expect((await provider.check?.(never, [])) ?? null).toBeNull();
  });

  it("sends nothing without its key", async () => {
    if (name === "openai") return;
    const { upstream, provider } = await started(
      { ...vendor, ...(vendor.kind === "http" ? { keyEnv: "BFL_API_KEY" } : {}) },
      null,
    );
    const { outcome, message } = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    if (vendor.kind === "http") return;
    expect(outcome).toBe("later: provider");
    expect(message).toContain("_");
    expect(upstream.asked).toEqual([]);
  });

  it("is asked again later if it cannot be reached: nothing was sent", async () => {
    const { upstream, provider } = await started(vendor);
    await upstream.stop();
    const { outcome } = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    await upstream.start();
    expect(outcome).toBe("later: provider");
  });

  it("does not know what became of a submit that was not answered in time", async () => {
    const { upstream, provider, clock } = await started(vendor);
    const hung = upstream.hang();
    const submitting = outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    await hung;
    clock.advance(180_000);
    expect(await submitting).toMatchObject({ outcome: "unknown", message: expect.stringContaining("180 s") });
  });

  it.each(Object.entries(busy[name] ?? {}))(
    "takes a busy answer to a submit, %s, for no more than it says",
    async (words, means) => {
      const { upstream, provider } = await started(vendor);
      const [status = "", code] = words.split(" ");
      const body =
        code === undefined
          ? {}
          : { body: name === "gemini" ? { error: { status: code } } : { error: { code } } };
      upstream.next("submit", { status: Number(status), ...body });
      const { outcome } = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
      expect(outcome).toBe(means);
      expect(upstream.asked).toHaveLength(1);
    },
  );

  if (vendor.isAtOnce) return;

  it("goes on after any trouble with a poll", async () => {
    const { upstream, provider } = await started(vendor);
    upstream.polls = 1;
    const accepted = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    upstream.next(
      "poll",
      { status: 503 },
      { status: 429 },
      { status: 429, retryAfter: "9" },
      { status: 500 },
      { status: 404, body: {} },
      { after: "drop" },
      { after: "empty" },
      { after: "html" },
      { after: "truncated" },
      { after: "wrong types" },
    );
    const seen: string[] = [];
    for (let count = 0; count < 10; count++) {
      const { outcome, value } = await outcomeOf(provider.poll!(accepted.value.resume!, never));
      seen.push(`${outcome} ${value.afterMs ?? ""}`.trim());
    }
    expect(seen).toEqual(["unknown", "running 30000", "running 9000", ...Array(7).fill("unknown")]);
    upstream.polls = 0;
    expect((await finishedPoll(provider, accepted.value.resume!)).outputs).toHaveLength(1);
    expect(upstream.times("a red fox")).toBe(1);
  });

  it("never says that a job failed because the server cannot be reached", async () => {
    const { upstream, provider } = await started(vendor);
    const accepted = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    await upstream.stop();
    expect((await outcomeOf(provider.poll!(accepted.value.resume!, never))).outcome).toBe("unknown");
    await upstream.start();
  });

  it("runs on while it runs", async () => {
    const { upstream, provider } = await started(vendor);
    upstream.polls = 1_000_000;
    const accepted = await outcomeOf(provider.submit(jobOf(vendor, "a red fox"), never));
    for (let count = 0; count < 5; count++)
      expect((await outcomeOf(provider.poll!(accepted.value.resume!, never))).outcome).toBe("running");
  });

  it("is refused as moderation in the vendor's form", async () => {
    const { provider } = await started(vendor);
    const { outcome } = await outcomeOf(finished(provider, jobOf(vendor, "a forbidden fox")));
    expect(outcome).toBe("refused: moderation");
  });
});

async function finishedPoll(
  provider: Opened["provider"],
  resume: NonNullable<Parameters<NonNullable<Opened["provider"]["poll"]>>[0]>,
) {
  for (;;) {
    const polled = await provider.poll!(resume, never);
    if (!("running" in polled)) return polled;
  }
}

const troubles = fc.constantFrom<Trouble>(
  { after: "drop" },
  { after: "empty" },
  { after: "html" },
  { after: "truncated" },
  { after: "wrong types" },
  { status: 429 },
  { status: 429, retryAfter: "3" },
  { status: 500 },
  { status: 502, body: Buffer.from("<html>") },
  { status: 503 },
  { status: 503, retryAfter: "3" },
);

it.each(all)(
  "%s makes each picture at most once, however a service goes on after trouble",
  async (_, vendor) => {
    const { upstream, provider, clock } = await started(vendor);
    let count = 0;
    const route = fc.constantFrom<Route>("submit", "poll", "result", "list");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(route, troubles), { maxLength: 6 }), async (meets) => {
        const prompt = `picture ${count++}`;
        upstream.calm();
        for (const [at, trouble] of meets) upstream.next(at, trouble);
        const end = await served(provider, jobOf(vendor, prompt), { clock, upstream });
        expect(upstream.times(prompt)).toBeLessThanOrEqual(1);
        // What the vendor has made is delivered, or waits for a person; it is not told as failed.
        if (upstream.times(prompt) === 1) expect(["done", "unknown"]).toContain(end);
        if (end === "done") expect(upstream.times(prompt)).toBe(1);
      }),
      { numRuns: 40 },
    );
  },
);

/** What a service does with a job, in short. */
async function served(
  provider: Opened["provider"],
  job: ProviderJob,
  { clock, upstream }: { clock: ManualClock; upstream: Upstream },
): Promise<string> {
  const pass = (ms: number) => {
    clock.advance(ms);
    upstream.now = clock.now();
  };
  const refs = new Set<string>();
  for (;;) {
    pass(3_600_000);
    const at = clock.now();
    let { outcome, value, error } = await outcomeOf(provider.submit(job, never));
    if (error instanceof JobLater) {
      pass(error.afterMs);
      continue;
    }
    if (outcome === "unknown" && provider.repeatable === "by id") {
      pass(600_000);
      const sent = { at, isTaken: (ref: string) => refs.has(ref) };
      const found = await provider.find!(job, never, sent).catch(() => undefined);
      if (found === null) continue;
      if (found !== undefined) [outcome, value] = ["accepted", found];
    }
    if (outcome !== "accepted") return outcome;
    for (;;) {
      const polled = await outcomeOf(provider.poll!(value.resume!, never));
      if (polled.outcome !== "running" && polled.outcome !== "unknown") return polled.outcome;
    }
  }
}

it("takes a server that closes before it speaks for one that may have accepted", async () => {
  const server = createServer((socket) => socket.once("data", () => socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const upstream = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, key: "k" };
  const { provider } = openVendor(vendors.openai, upstream as never);
  const { outcome } = await outcomeOf(provider.submit(jobOf(vendors.openai, "a red fox"), never));
  expect(outcome).toBe("unknown");
  await provider.close?.();
  server.close();
});
