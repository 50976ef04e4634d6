import fc from "fast-check";
import { test } from "vitest";
import { amount } from "../fuzz/amount.js";
import { type Deed, stories, told } from "./story.js";
import { World } from "./world.js";

/** `STORIES=500 SEED=7 npm run fuzz` tells so many, others than before. */
const count = amount(1, Number(process.env["STORIES"] ?? 40));

test("P2: whatever a person does with sheets, runs and files, nothing is paid twice and nothing is lost", {
  tags: ["fuzz"],
  timeout: 86_400_000,
}, async () => {
  const story = fc.asyncProperty(stories, async (deeds) => {
    const fault = await faultOf(deeds);
    if (fault !== null) throw fault;
  });
  // Each story takes seconds, too long for the many that fast-check tries to find a smaller one.
  const found = await fc.check(story, { numRuns: count, endOnFailure: true });
  const [failed] = found.counterexample ?? [];
  if (failed === undefined) return;
  const { deeds, fault } = await smallest(failed);
  throw new Error(`seed ${found.seed}:\n${told(deeds)}`, { cause: fault ?? found.errorInstance });
});

/** What breaks in a story, or null. */
async function faultOf(deeds: readonly Deed[]): Promise<unknown> {
  const world = await World.open();
  try {
    for (const deed of deeds) await world.does(deed);
    await world.end();
    return null;
  } catch (error) {
    return error;
  } finally {
    await world.close();
  }
}

/** The story without the deeds that it does not need in order to fail. */
async function smallest(deeds: readonly Deed[]): Promise<{ deeds: readonly Deed[]; fault: unknown }> {
  let left = deeds;
  let fault: unknown = null;
  for (let at = left.length - 1; at >= 0; at--) {
    const shorter = left.toSpliced(at, 1);
    const found = await faultOf(shorter);
    if (found !== null) [left, fault] = [shorter, found];
  }
  return { deeds: left, fault };
}
