import { expect, test } from "vitest";
import { carryOn, openWorld, picture, start, states } from "./harness.js";

test("a timer that fires a moment early costs a moment, not a long nap", async () => {
  const world = await openWorld({ taskMs: { min: 9_000, max: 9_000 } });
  try {
    const { clock } = world;
    const begun = clock.now();
    const now = clock.now.bind(clock);
    // Timers fire up to a millisecond early, and deciding what to do next takes longer than that.
    clock.earlyMs = 1;
    clock.now = () => {
      const read = now();
      clock.advance(1);
      return read;
    };
    const run = await start(
      world,
      Array.from({ length: 6 }, (_, index) => picture(`p${index}`, index)),
    );
    await carryOn(world, run);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    // Polls come after 2, 3, 4.5 seconds: the third finds each task finished.
    expect(now() - begun).toBeLessThan(15_000);
  } finally {
    await world.close();
  }
});
