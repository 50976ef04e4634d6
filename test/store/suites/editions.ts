import { beforeEach, expect, test } from "vitest";
import { credits } from "../../../src/core/money.js";
import type { RunStart } from "../../../src/core/ports/store.js";
import type { Store } from "../../../src/store/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { runStart } from "../item-fixture.js";
import type { OpenDatabase } from "./open.js";

export function editionsSuite(open: OpenDatabase): void {
  let store: Store;
  let jobId: number;

  beforeEach(async () => {
    store = (await open(new ManualClock())).store;
    jobId = (await store.job("demo")).id;
  });

  function of(edition: string, most: number): RunStart {
    return { ...runStart, edition, options: { ...runStart.options, maxCredits: credits(most) } };
  }

  test.each([
    ["was interrupted", "interrupted"],
    ["was killed, so that it counts as running", null],
  ] as const)(
    "P7: a run goes on under its own edition and cap after one of another edition %s",
    async (_, state) => {
      const spring = await store.startRun(jobId, of("spring", 4));
      await store.setRun(spring.id, { state: "interrupted" });
      const autumn = await store.startRun(jobId, of("autumn", 400));
      if (state !== null) await store.setRun(autumn.id, { state });
      const expected = { id: spring.id, edition: "spring", options: { maxCredits: credits(4) } };
      expect(await store.startRun(jobId, of("spring", 4))).toMatchObject(expected);
      expect(await store.run(autumn.id)).toMatchObject({
        edition: "autumn",
        options: { maxCredits: credits(400) },
      });
    },
  );

  test("P7: a finished run is followed by another of its own edition while one of another edition counts as running", async () => {
    const spring = await store.startRun(jobId, of("spring", 4));
    const autumn = await store.startRun(jobId, of("autumn", 400));
    await store.setRun(spring.id, { state: "finished" });
    const next = await store.startRun(jobId, of("spring", 4));
    expect(next).toMatchObject({ id: autumn.id + 1, edition: "spring", options: { maxCredits: credits(4) } });
  });
}
