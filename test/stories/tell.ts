import fc from "fast-check";
import { type Deed, told } from "./story.js";
import type { World } from "./world.js";

/** Tells so many stories, each in a world of its own, and throws the first that breaks a promise, as short as it can be. */
export async function tell(
  stories: fc.Arbitrary<Deed[]>,
  count: number,
  open: () => Promise<World>,
): Promise<void> {
  const story = fc.asyncProperty(stories, async (deeds) => {
    const fault = await faultOf(deeds, open);
    if (fault !== null) throw fault;
  });
  // Each story takes seconds, too long for the many that fast-check tries to find a smaller one.
  const found = await fc.check(story, { numRuns: count, endOnFailure: true });
  const [failed] = found.counterexample ?? [];
  if (failed === undefined) return;
  const { deeds, fault } = await smallest(failed, open);
  throw new Error(`seed ${found.seed}:\n${told(deeds)}`, { cause: fault ?? found.errorInstance });
}

/** What breaks in a story, or null. */
async function faultOf(deeds: readonly Deed[], open: () => Promise<World>): Promise<unknown> {
  const world = await open();
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
async function smallest(
  deeds: readonly Deed[],
  open: () => Promise<World>,
): Promise<{ deeds: readonly Deed[]; fault: unknown }> {
  let left = deeds;
  let fault: unknown = null;
  for (let at = left.length - 1; at >= 0; at--) {
    const shorter = left.toSpliced(at, 1);
    const found = await faultOf(shorter, open);
    if (found !== null) [left, fault] = [shorter, found];
  }
  return { deeds: left, fault };
}
