import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { chance } from "./chance.js";
import { calm, crashesAt } from "./crash-everywhere.js";
import { canary, huntNamed } from "./hunt.js";
import { MemoryDisk } from "./memory-disk.js";
import { loadRegressions } from "./regressions.js";
import { simulate } from "./simulate.js";
import { scenarioOf } from "./workload.js";

describe("the simulation", () => {
  test("the same seed gives the same run, event by event", async () => {
    for (const seed of [3, 12, 28]) {
      const [once, again] = [await simulate(scenarioOf(seed)), await simulate(scenarioOf(seed))];
      expect(again.hash).toBe(once.hash);
      expect(again.effects).toBe(once.effects);
    }
    const others = [await simulate(scenarioOf(3)), await simulate(scenarioOf(4))];
    expect(others[0]?.hash).not.toBe(others[1]?.hash);
  });

  test("a run in which nothing goes wrong breaks no promise", async () => {
    expect((await simulate(calm())).violation).toBeNull();
  });

  test("a crash at any of the first effects breaks no promise", async () => {
    for (let nth = 1; nth <= 12; nth++) expect(await crashesAt(nth)).toEqual({ runs: 4, violations: [] });
  });

  test("a runner that pays twice is caught", async () => {
    expect((await huntNamed(canary)).message).toMatch(/^P2: a second POST/);
  });
});

test("what was appended to a file lasts over a power cut, in a folder that was made", async () => {
  const disk = new MemoryDisk(() => 0);
  await expect(disk.append("/deep/receipts.jsonl", "a\n")).rejects.toThrow("ENOENT");
  await expect(disk.create("/deep/file")).rejects.toThrow("ENOENT");
  await disk.makeFolder("/deep");
  await disk.append("/deep/receipts.jsonl", "a\n");
  disk.powerCut(chance(1, "power"));
  expect(disk.content("/deep/receipts.jsonl")?.toString()).toBe("a\n");
});

describe("what once broke a promise", () => {
  const kept = loadRegressions(join(import.meta.dirname, "regressions"));

  test("is kept", () => expect(kept.length).toBeGreaterThan(0));

  test.each(kept)("$name", async ({ regression }) => {
    expect((await simulate(regression.scenario)).violation?.message ?? null).toBeNull();
  });
});
