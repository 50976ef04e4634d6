import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type FaultPlanSettings,
  FaultScript,
  faultPlan,
  presets,
  readFaults,
  subjects,
} from "../../../src/sandbox/faults/plan.js";

/** The kinds of fault that so many requests of these subjects meet. */
function played(settings: FaultPlanSettings, order: readonly (typeof subjects)[number][]): (string | null)[] {
  const script = new FaultScript(faultPlan.parse(settings));
  return order.map((subject) => script.next(subject)?.kind ?? null);
}

const times = (n: number) => Array.from({ length: n }, () => "generate" as const);

describe("a script", () => {
  it("plays the same faults to the same order of requests, and others under another seed", () => {
    const orders = fc.array(fc.constantFrom(...subjects), { minLength: 50, maxLength: 200 });
    fc.assert(
      fc.property(orders, fc.constantFrom(...Object.values(presets)), (order, preset) => {
        expect(played(preset, order)).toEqual(played(preset, order));
      }),
      { numRuns: 50 },
    );
    const under = (seed: string) => played({ ...presets.lossy, seed }, times(200));
    expect(under("a")).not.toEqual(under("b"));
  });

  it("is not moved by requests that a rule is not about", () => {
    const rules = [{ fault: "lost-reply", on: ["generate" as const], rate: 0.3 }];
    const mixed = times(100).flatMap((subject) => [subject, "task" as const, "me" as const]);
    const alone = played({ rules }, times(100));
    expect(played({ rules }, mixed).filter((_, index) => index % 3 === 0)).toEqual(alone);
  });

  it("meets its rate", () => {
    const met = played({ rules: [{ fault: "lost-request", rate: 0.2 }] }, times(5_000)).filter(
      Boolean,
    ).length;
    expect(met / 5_000).toBeGreaterThan(0.18);
    expect(met / 5_000).toBeLessThan(0.22);
  });

  it("names single requests, every nth, and an end", () => {
    const at = played({ rules: [{ fault: "lost-reply", at: [2, 4] }] }, times(5));
    expect(at).toEqual([null, "lost-reply", null, "lost-reply", null]);
    const every = played({ rules: [{ fault: "lost-reply", every: 2, most: 1 }] }, times(5));
    expect(every).toEqual([null, "lost-reply", null, null, null]);
  });

  it("takes the first rule that applies, while the others go on counting", () => {
    const rules = [
      { fault: "lost-request", at: [1] },
      { fault: "lost-reply", at: [1, 2] },
    ];
    expect(played({ rules }, times(3))).toEqual(["lost-request", "lost-reply", null]);
  });
});

describe("a plan", () => {
  const problem = (settings: unknown) =>
    faultPlan
      .safeParse(settings)
      .error?.issues.map((i) => i.message)
      .join();

  it("takes a fault by its bare kind, with its details set", () => {
    const { rules } = faultPlan.parse({ rules: [{ fault: "late-arrival", rate: 1 }] });
    expect(rules[0]?.fault).toEqual({ kind: "late-arrival", delayMs: 30_000 });
  });

  it("says what is wrong with it", () => {
    expect(problem({ rules: [{ fault: "lost-mind", rate: 1 }] })).toContain("lost-request");
    expect(problem({ rules: [{ fault: "lost-reply" }] })).toContain("exactly one of rate, at and every");
    expect(problem({ rules: [{ fault: "lost-reply", rate: 0.1, at: [1] }] })).toContain("exactly one");
    expect(problem({ rules: [{ fault: "task-fails", on: ["me"], rate: 1 }] })).toContain(
      "happens on generate",
    );
    expect(problem({ rules: [{ fault: "download-expired", on: ["task"], rate: 1 }] })).toContain(
      "on download",
    );
    expect(problem({ rules: [{ fault: "lost-reply", rate: 2 }] })).toBeDefined();
  });

  it.each(Object.keys(presets))("is there under the name %s", async (name) => {
    expect((await readFaults(name)).rules.length).toBeGreaterThan(0);
    expect((await readFaults(name, "mine")).seed).toBe("mine");
  });

  it("is read from a JSON file, and what is no plan is refused by name and place", async () => {
    const folder = mkdtempSync(join(tmpdir(), "bulkgen-faults-"));
    const write = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const good = write("good.json", '{"seed": "7", "rules": [{"fault": "lost-reply", "every": 3}]}');
    expect(await readFaults(good)).toMatchObject({
      seed: "7",
      rules: [{ fault: { kind: "lost-reply" }, every: 3 }],
    });
    await expect(readFaults(write("bad.json", "{"))).rejects.toThrow("bad.json is not JSON");
    await expect(readFaults(write("odd.json", '{"rules": [{"fault": "x", "rate": 1}]}'))).rejects.toThrow(
      "rules[0]",
    );
    await expect(readFaults("flakey")).rejects.toThrow("one of flaky, lossy");
    rmSync(folder, { recursive: true });
  });
});
