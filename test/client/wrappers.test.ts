import { expect, test } from "vitest";
import { announced, withoutKey } from "../../src/client/wrappers.js";
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

test("P21: neither the key nor its secret part comes back from a service, wherever it has them", async () => {
  const secret = "canaryCANARYcanaryCANARYcanary00";
  const replies: Reply[] = [
    {
      kind: "answer",
      status: 401,
      headers: { [`x-${secret}`]: `a svc_${secret}` },
      body: `svc_${secret} and ${secret}`,
    },
    { kind: "no_answer", reason: `bad header svc_${secret}` },
    { kind: "not_sent", reason: `no host ${secret}` },
  ];
  const send = withoutKey(async () => replies.shift() as Reply, `svc_${secret}`);
  expect(await send(asked("me"))).toEqual({
    kind: "answer",
    status: 401,
    headers: { "x-[API key]": "a [API key]" },
    body: "[API key] and [API key]",
  });
  expect(await send(asked("me"))).toEqual({ kind: "no_answer", reason: "bad header [API key]" });
  expect(await send(asked("me"))).toEqual({ kind: "not_sent", reason: "no host [API key]" });
});

test("a key without a secret part is removed as a whole, and nothing else", async () => {
  const send = withoutKey(async () => ({ kind: "no_answer", reason: "svc_ and more" }), "svc_");
  expect(await send(asked("me"))).toEqual({ kind: "no_answer", reason: "[API key] and more" });
});
