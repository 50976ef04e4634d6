import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { fuzzTag } from "../../fuzz/amount.js";

const room = process.env["ROOM"] ?? "core";

/** Short files first: their tests are the most likely to notice a change, and the quickest. */
class ShortFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toReversed();
  }
}

/** Runs a room's tests in one process, over and over; see `main.mjs`. */
export default defineConfig({
  test: {
    include: [`test/${room}/**/*.test.ts`],
    // As for Stryker: a thread cannot set its time zone, and large sheets only repeat what small ones show.
    exclude: ["test/core/local-time.test.ts", "test/plan/large.test.ts"],
    tags: [fuzzTag],
    setupFiles: "test/setup.ts",
    env: { TZ: "UTC" },
    isolate: false,
    maxWorkers: 1,
    testTimeout: 20_000,
    hookTimeout: 20_000,
    sequence: { sequencer: ShortFirst },
    runner: "test/mutation/room/runner.mjs",
    // Changed code leaves promises and timers behind.
    dangerouslyIgnoreUnhandledErrors: true,
    silent: true,
  },
});
