import { expect, test } from "vitest";
import { announced } from "../../src/client/wrappers.js";
import type { ApiRequest, Reply } from "../../src/core/ports/send.js";
import { ManualClock } from "../manual-clock.js";

const asked = (endpoint: "me" | "generate"): ApiRequest => ({
  endpoint,
  method: endpoint === "me" ? "GET" : "POST",
  path: `/api/v1/${endpoint}`,
  timeoutMs: 30_000,
});

test.each([
  ["me", 10_000, ["GET /api/v1/me: no answer yet after 10 s; still waiting"]],
  ["me", 9_000, []],
  ["generate", 10_000, []],
] as const)("a service that takes its time over %s for %d ms is told of: %j", async (endpoint, ms, lines) => {
  const clock = new ManualClock();
  const said: string[] = [];
  const log = {
    debug: () => {},
    info: () => {},
    warn: (_: object, line: string) => said.push(line),
    error: () => {},
  };
  let answer = (_: Reply) => {};
  const send = announced(
    () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
    log,
    clock,
  );
  const answered = send(asked(endpoint));
  clock.advance(ms);
  answer({ kind: "no_answer", reason: "late" });
  await answered;
  expect(said).toEqual(lines);
  expect(clock.asleep).toBe(0);
});
