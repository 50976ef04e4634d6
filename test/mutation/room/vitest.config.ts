import { defineConfig } from "vitest/config";
import { fuzzTag } from "../../fuzz/amount.js";

const room = process.env["ROOM"] ?? "core";
const tests = process.env["ROOM_TESTS"] || "*.test.ts";

/** Runs a room's tests in one process, over and over; see `main.mjs`. */
export default defineConfig({
  test: {
    include: tests.split(",").map((name) => `test/${room}/**/${name}`),
    // As for Stryker, and without 351 downloads in one test, which would be repeated for each change that nothing notices.
    exclude: ["test/core/local-time.test.ts", "test/plan/large.test.ts", "test/archive/matrix.test.ts"],
    tags: [fuzzTag],
    setupFiles: "test/setup.ts",
    env: { TZ: "UTC" },
    isolate: false,
    maxWorkers: 1,
    // The runner ends what hangs.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    runner: "test/mutation/room/runner.mjs",
    // Changed code leaves promises and timers behind.
    dangerouslyIgnoreUnhandledErrors: true,
    silent: true,
  },
});
