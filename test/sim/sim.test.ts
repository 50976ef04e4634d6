import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { chance } from "./chance.js";
import { asked, calm, chained, crashesAt, crowded, published } from "./crash-everywhere.js";
import { noCounts } from "./fleet/rules.js";
import { fleetScenarioOf } from "./fleet/workload.js";
import { canary, fleetCanary, huntNamed, servedCanary } from "./hunt.js";
import { Kernel } from "./kernel.js";
import { type Machine, Process } from "./machine.js";
import { MemoryDisk } from "./memory-disk.js";
import { loadRegressions, shortestOfEach } from "./regressions.js";
import type { Crash } from "./scenario.js";
import { noServedCounts } from "./served/counts.js";
import { servedLossy, servedScenarioOf } from "./served/workload.js";
import { simulate } from "./simulate.js";
import { Watch } from "./watch.js";
import { scenarioOf } from "./workload.js";

describe("the simulation", () => {
  test("the same seed gives the same run, event by event", async () => {
    const hashes = new Set<string>();
    for (const seed of [3, 12, 28]) {
      const [once, again] = [await simulate(scenarioOf(seed)), await simulate(scenarioOf(seed))];
      expect(again.hash).toBe(once.hash);
      expect(again.effects).toBe(once.effects);
      hashes.add(once.hash);
    }
    expect(hashes.size).toBe(3);
  });

  test("a run in which nothing goes wrong breaks no promise", async () => {
    expect((await simulate(calm())).violation).toBeNull();
  });

  test("a crash at an early effect breaks no promise", async () => {
    for (const nth of [1, 7, 12]) expect(await crashesAt(nth)).toEqual({ runs: 4, violations: [] });
  });

  test("P3: sixteen lanes share their commits and break no promise, nor does a crash among them", async () => {
    expect((await simulate(crowded())).violation).toBeNull();
    expect(await crashesAt(140, "crowded")).toEqual({ runs: 4, violations: [] });
  });

  test("chains break no promise though their addresses have to be renewed, nor does a crash among them", async () => {
    let renewals = 0;
    const once = await simulate(chained(), {
      store: ({ renewed }) => ({
        renewed: (item, fresh) => renewed(item, fresh).finally(() => renewals++),
      }),
    });
    const again = await simulate(chained());
    expect(once.violation).toBeNull();
    expect(renewals).toBe(1);
    expect(once.ended).toEqual(new Map([["archived", 6]]));
    expect(again.hash).toBe(once.hash);
    expect(await crashesAt(150, "chained")).toEqual({ runs: 4, violations: [] });
  });

  test("approvals and canaries break no promise, nor does a crash among them", async () => {
    const once = await simulate(asked());
    expect(once.violation).toBeNull();
    expect(once.ended.get("archived")).toBe(6);
    expect(await crashesAt(170, "asked")).toEqual({ runs: 4, violations: [] });
  });

  test("files are published and break no promise, nor does a crash among them; so is what a vanished task made", async () => {
    const handedOn: string[] = [];
    const once = await simulate(published(), {
      store: ({ renewed }) => ({
        renewed: async (item, fresh) => {
          handedOn.push(...fresh.urls.map((url) => new URL(url).hostname));
          await renewed(item, fresh);
        },
      }),
    });
    expect(once.violation).toBeNull();
    expect(once.ended).toEqual(new Map([["archived", 6]]));
    expect(handedOn).toContain("bucket.example");
    expect(await crashesAt(200, "published")).toEqual({ runs: 4, violations: [] });
  });

  test("a runner that sends an expired address of a file, and one that sends another file, are caught", async () => {
    const [expired, other] = [
      "sends an address of a local file that has expired",
      "sends a local file that has changed since the run was planned",
    ];
    expect((await huntNamed(expired, 5)).message).toMatch(/^publish: .* had expired/);
    expect((await huntNamed(other, 115)).message).toMatch(/^publish: .* that was planned/);
  });

  test("a runner that asks nobody for an approval, and one without canaries, are caught", async () => {
    expect((await huntNamed("asks nobody for an approval", 8)).message).toMatch(/^approval: /);
    expect((await huntNamed("submits all items of a kind beside its canary", 5)).message).toMatch(
      /^canary: /,
    );
  });

  test("a runner that hands on what has expired is caught", async () => {
    expect((await huntNamed("hands on an address that has expired", 8)).message).toMatch(/^P15: /);
  });

  test("several hosts that share a workspace break no promise, though their processes are killed, stopped and cut off", async () => {
    const counts = noCounts();
    const hashes: string[] = [];
    for (const seed of [7, 7, 9, 11]) {
      const { violation, fleet, hash } = await simulate(fleetScenarioOf(seed));
      expect(violation).toBeNull();
      hashes.push(hash);
      for (const what of Object.keys(counts) as (keyof typeof counts)[]) counts[what] += fleet[what];
    }
    expect(hashes[1]).toBe(hashes[0]);
    for (const what of ["runsKilled", "takeOvers", "handedOut"] as const)
      expect(counts[what]).toBeGreaterThan(0);
  });

  test("a fleet that believes a worker whose lease has ended, and one that plans again what was cut off, are caught", async () => {
    expect((await huntNamed(fleetCanary.name, fleetCanary.first)).message).toMatch(
      /^lease: a worker was believed/,
    );
    expect((await huntNamed("plans again what a killed run was submitting")).message).toMatch(/^P2: /);
  });

  test("the command and a served models file break no promise, though both die and answers are lost between all of them", async () => {
    const counts = noServedCounts();
    const hashes: string[] = [];
    for (const seed of [4, 4, 5, 8]) {
      const { violation, served, hash } = await simulate(servedScenarioOf(seed));
      expect(violation).toBeNull();
      hashes.push(hash);
      for (const what of Object.keys(counts) as (keyof typeof counts)[]) counts[what] += served[what];
    }
    expect(hashes[1]).toBe(hashes[0]);
    for (const what of ["serviceCrashes", "commandCrashes", "answersLost", "repliesLost", "unknown"] as const)
      expect(counts[what], what).toBeGreaterThan(0);
    expect(counts.held).toBe(0);
  });

  test("a crash of the service or of the command breaks no promise, whatever answers were lost before", async () => {
    const { ended, served } = await simulate(servedLossy());
    expect(ended).toEqual(new Map([["archived", 4]]));
    expect(served.unknown).toBeGreaterThan(0);
    for (const nth of [20, 45, 90])
      expect(await crashesAt(nth, "lossy")).toEqual({ runs: 4, violations: [] });
  });

  test("a service that tells of a job in doubt that it has failed, and one that sends it again, are caught", async () => {
    expect((await huntNamed(servedCanary.name, servedCanary.first)).message).toMatch(/^P5: .* has failed/);
    expect(
      (await huntNamed("sends a job again that was being sent when its service ended", 4)).message,
    ).toMatch(/^P2: item-1 was executed twice/);
  });

  test("a runner that pays twice is caught", async () => {
    expect((await huntNamed(canary.name, canary.first)).message).toMatch(/^P2: a second POST/);
  });
});

describe("transactions of one turn of the event loop", () => {
  /** A process that dies at the third of four transactions; which of them were done, and which did it learn of? */
  async function dyingAtTheThird(fault: Omit<Crash, "kind"> | null) {
    const done: number[] = [];
    const known: number[] = [];
    const crash = fault && { kind: "crash", ...fault };
    const machine = {
      kernel: new Kernel(0, () => false),
      processes: [],
      desk: { effectCount: 0, ofEffect: (name: string) => (name === "3" ? crash : null) },
      watch: new Watch(),
    };
    const process = new Process(machine as unknown as Machine, 0, 0);
    const begin = (number: number) =>
      process
        .transaction("state.db", String(number), [], async () => done.push(number))
        .then(() => known.push(number));
    for (const number of [1, 2, 3, 4]) void begin(number);
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    return { done, known };
  }

  test("are one commit", async () => {
    expect(await dyingAtTheThird(null)).toEqual({ done: [1, 2, 3, 4], known: [1, 2, 3, 4] });
  });

  test("are all lost by a crash before their commit", async () => {
    expect(await dyingAtTheThird({ after: false })).toEqual({ done: [], known: [] });
  });

  test("are all done before a crash after it, and the process knows of none", async () => {
    expect(await dyingAtTheThird({ after: true })).toEqual({ done: [1, 2, 3, 4], known: [] });
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

  // `npm run sim` plays all of them.
  test.each(shortestOfEach(kept))("$name", async ({ regression }) => {
    expect((await simulate(regression.scenario)).violation?.message ?? null).toBeNull();
  });

  test("an item waits for its parent's file while that is still being fetched", async () => {
    const [found] = kept.filter(({ name }) => name.includes("chain-seed-770002339"));
    if (found === undefined) throw new Error("the regression of this seed is gone");
    expect((await simulate(found.regression.scenario)).violation?.message ?? null).toBeNull();
  });
});
