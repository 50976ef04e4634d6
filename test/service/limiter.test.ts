import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SwitchSettings } from "../../src/service/state/switches.js";
import { InProcess } from "../sandbox/in-process.js";

type Limiter = NonNullable<SwitchSettings["limiter"]>;

function starter(limiter: Limiter, more: SwitchSettings = {}): InProcess {
  return new InProcess({ account: { plan: "Starter" }, switches: { limiter, ...more } });
}

/** Sends `n` requests at once and says how many passed. */
function burst(world: InProcess, n: number): number {
  return Array.from({ length: n }, () => world.send("GET", "/api/v1/me").status).filter((s) => s === 200)
    .length;
}

// The manual clock starts on a full minute, and at noon.
describe("a fixed window", () => {
  it("starts again where it is aligned, so that twice the limit passes around its edge", () => {
    const world = starter({ kind: "fixed-window", alignMs: 10_000 });
    world.clock.advance(9_000);
    expect(burst(world, 31)).toBe(30);
    world.clock.advance(999);
    expect(burst(world, 1)).toBe(0);
    world.clock.advance(1);
    expect(burst(world, 31)).toBe(30);
  });
});

describe("a sliding counter", () => {
  it("still weighs the window before", () => {
    const world = starter({ kind: "sliding-counter" });
    world.clock.advance(30_000);
    expect(burst(world, 31)).toBe(30);
    world.clock.advance(30_000);
    expect(burst(world, 1)).toBe(0);
    world.clock.advance(30_000);
    expect(burst(world, 31)).toBe(15);
  });

  it("refuses a steady 60/N seconds, but never 60/(N-2)", () => {
    const refusedAt = (everyMs: number) => {
      const world = starter({ kind: "sliding-counter" });
      return Array.from({ length: 90 }, () => {
        world.clock.advance(everyMs);
        return burst(world, 1);
      }).filter((passed) => passed === 0).length;
    };
    expect(refusedAt(60_000 / 30)).toBeGreaterThan(0);
    expect(refusedAt(Math.ceil(60_000 / 28))).toBe(0);
  });
});

describe("a token bucket", () => {
  it("holds its burst and no more, and refills evenly", () => {
    const world = starter({ kind: "token-bucket", burst: 5 });
    expect(burst(world, 6)).toBe(5);
    world.clock.advance(1_999);
    expect(burst(world, 1)).toBe(0);
    world.clock.advance(1);
    expect(burst(world, 2)).toBe(1);
    world.clock.advance(3_600_000);
    expect(burst(world, 6)).toBe(5);
  });
});

describe("a limiter that counts refused requests", () => {
  it("stays shut as long as it is hammered", () => {
    const world = starter({ countsRejected: true });
    expect(burst(world, 31)).toBe(30);
    for (let second = 0; second < 120; second++) {
      world.clock.advance(1_000);
      expect(burst(world, 1)).toBe(0);
    }
    world.clock.advance(60_000);
    expect(burst(world, 1)).toBe(1);
  });
});

describe("the day's limit", () => {
  /** Uses up the day's 1,000 requests within 34 minutes. */
  function usedUp(limiter: Limiter): InProcess {
    const world = starter(limiter);
    for (let minute = 0; minute < 34; minute++) {
      burst(world, minute === 33 ? 10 : 30);
      world.clock.advance(60_000);
    }
    expect(burst(world, 1)).toBe(0);
    return world;
  }

  it("looks back 24 hours when it rolls", () => {
    const world = usedUp({ day: "rolling" });
    world.clock.advance(12 * 3_600_000);
    expect(burst(world, 1)).toBe(0);
    world.clock.advance(12 * 3_600_000 - 34 * 60_000);
    expect(burst(world, 31)).toBe(30);
  });

  it("starts again at midnight UTC when it is switched so", () => {
    const world = usedUp({ day: "utc" });
    world.clock.advance(12 * 3_600_000 - 34 * 60_000 - 1);
    expect(burst(world, 1)).toBe(0);
    world.clock.advance(1);
    expect(burst(world, 31)).toBe(30);
  });
});

const kinds = ["sliding-log", "fixed-window", "sliding-counter", "token-bucket"] as const;

/** Waits after which a sliding counter has room at a whole second, where a share of the window is no exact fraction. */
const whereFractionsRoundUp = [
  6160, 6280, 3170, 10690, 3990, 14570, 18860, 7330, 15160, 1740, 5790, 5640, 15380, 18250, 7630, 16290, 2560,
  9050, 4540, 11940, 15460, 13200, 7230, 12500, 6030, 18980, 13300, 8300, 3180, 9140, 6090, 14480, 9270,
  16820, 13410, 3030, 9540, 3470, 17560, 3460, 12810, 13410, 12920, 11000, 19280, 16460, 17270, 16500, 1630,
  0,
];

describe("every limiter", () => {
  it("lets a refused caller pass who waits as long as it said", () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 20, maxLength: 80 });
    fc.assert(
      fc.property(
        fc.constantFrom(...kinds),
        fc.integer({ min: 0, max: 59_999 }),
        gaps,
        (kind, alignMs, waits) => {
          const world = starter({ kind, alignMs, burst: 3 });
          for (const wait of waits) {
            world.clock.advance(Math.floor(wait / 10));
            const answer = world.send("GET", "/api/v1/me");
            if (answer.status === 200) continue;
            world.clock.advance(Number(answer.headers["Retry-After"]) * 1_000);
            expect(world.send("GET", "/api/v1/me").status).toBe(200);
          }
          world.state.close();
        },
      ),
      { numRuns: 60, examples: [["sliding-counter", 13_075, whereFractionsRoundUp]] },
    );
  });

  it("agrees with a plain count of what it let pass", () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 4_000 }), { minLength: 60, maxLength: 120 });
    fc.assert(
      fc.property(gaps, (waits) => {
        const log = starter({ kind: "sliding-log" });
        const passed: number[] = [];
        for (const wait of waits) {
          log.clock.advance(wait);
          const now = log.clock.now();
          const room = passed.filter((at) => at > now - 60_000).length < 30;
          expect(log.send("GET", "/api/v1/me").status).toBe(room ? 200 : 429);
          if (room) passed.push(now);
        }
        log.state.close();
      }),
      { numRuns: 40 },
    );
  });

  it.each(kinds)("shows in RateLimit headers exactly how many requests are left (%s)", (kind) => {
    const world = starter({ kind }, { rateLimitHeaders: true });
    for (let left = 29; left >= 0; left--) {
      const { headers } = world.send("GET", "/api/v1/me");
      expect([headers["RateLimit-Limit"], headers["RateLimit-Remaining"]]).toEqual(["30", String(left)]);
    }
    const refused = world.send("GET", "/api/v1/me");
    expect([refused.status, refused.headers["RateLimit-Remaining"]]).toEqual([429, "0"]);
    expect(Number(refused.headers["RateLimit-Reset"])).toBeGreaterThan(0);
  });
});

describe("a 429", () => {
  const refused = (tooMany: NonNullable<SwitchSettings["tooMany"]>) => {
    const world = starter({}, { tooMany });
    burst(world, 30);
    world.clock.advance(500);
    return { answer: world.send("GET", "/api/v1/me"), now: world.clock.now() };
  };

  it("says in whole seconds when to come again, or nothing", () => {
    expect(refused({ retryAfter: "seconds" }).answer.headers["Retry-After"]).toBe("60");
    expect(refused({ retryAfter: "none" }).answer.headers).not.toHaveProperty("Retry-After");
  });

  it("says it as a date that is not too early seen from its own Date", () => {
    const { headers } = refused({ retryAfter: "date" }).answer;
    const wait = Date.parse(headers["Retry-After"] ?? "") - Date.parse(headers["Date"] ?? "");
    expect(wait).toBe(60_000);
  });

  it("has a body of JSON, of text, or none", () => {
    expect(refused({ body: "json" }).answer.body).toMatchObject({ error: { code: "RATE_LIMITED" } });
    expect(refused({ body: "text" }).answer).toMatchObject({ form: "text", body: expect.any(String) });
    expect(refused({ body: "empty" }).answer.form).toBe("empty");
  });
});
