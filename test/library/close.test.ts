import { expect, test, vi } from "vitest";
import type { openEvents, RunEvent } from "../../src/job/run/events.js";
import { runManifest } from "../../src/library/run.js";
import { skippingClock } from "../e2e/skipping-clock.js";
import { libraryPlace } from "./place.js";

vi.mock("../../src/job/run/events.js", async (original) => {
  const real = await original<{ openEvents: typeof openEvents }>();
  return {
    openEvents(...how: Parameters<typeof openEvents>) {
      const events = real.openEvents(...how);
      return {
        ...events,
        async close() {
          await events.close();
          throw new Error("the steps cannot be closed");
        },
      };
    },
  };
});

test("a run whose events cannot be closed yields all of them, and ends with the error", async () => {
  const { on, sandbox, place } = await libraryPlace();
  place.write("set.csv", "id,model,prompt\ncup,aurora-image-mini,a cup\n");
  const seen: RunEvent["event"][] = [];
  const run = skippingClock.during(
    (async () => {
      for await (const { event } of runManifest(on, "set.csv", { service: sandbox, maxCredits: 1 }))
        seen.push(event);
    })(),
  );
  await expect(run).rejects.toThrow("the steps cannot be closed");
  expect(seen).toEqual(["run_started", "submitted", "completed", "archived", "run_finished"]);
});
