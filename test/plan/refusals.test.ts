import { describe, expect, test } from "vitest";
import type { PlannedItem } from "../../src/core/ports/draft.js";
import { exitOfRefusal, type Finding, refusalsOf } from "../../src/plan/plan.js";
import { me, planOf } from "./account.js";

const sheet = "id,model,prompt\na,paint,x\nb,paint,y\n";

describe("whether a blocker keeps a run from starting", () => {
  const started = async (balance: number, change: Partial<PlannedItem>[] = []) => {
    const { blockers, items } = await planOf(sheet, { me: me(balance) });
    const now = items.map((item, index) => ({ ...item, ...change[index] }));
    return (["refuse", "fit", "stop"] as const).filter(
      (mode) => refusalsOf({ blockers, items: now }, mode).length === 0,
    );
  };

  test("a balance for some of the items does only if it is to cover all of them", async () => {
    expect(await started(8)).toEqual(["refuse", "fit", "stop"]);
    expect(await started(4)).toEqual(["fit", "stop"]);
  });

  test("a balance for none of them does as well if the run is to fit, unless there is something to collect", async () => {
    expect(await started(3)).toEqual(["stop"]);
    for (const state of ["archived", "failed"] as const)
      expect(await started(3, [{ due: false, state }]), state).toEqual(["stop"]);
    expect(await started(3, [{ due: false, state: "processing" }])).toEqual(["fit", "stop"]);
  });

  test("no subscription does, whatever is to happen without credits", async () => {
    const { blockers, items } = await planOf(sheet, { me: me(100, null) });
    for (const mode of ["refuse", "fit", "stop"] as const)
      expect(refusalsOf({ blockers, items }, mode)).toMatchObject([{ kind: "no_subscription" }]);
  });
});

test.each<[Finding["kind"], string]>([
  ["no_subscription", "key"],
  ["past_due", "key"],
  ["insufficient_credits", "credits"],
  ["made_before", "usage"],
  ["paid_before", "usage"],
])("a run refused for %s ends with the exit %s", (kind, exit) => {
  expect(exitOfRefusal({ kind } as Finding)).toBe(exit);
});
