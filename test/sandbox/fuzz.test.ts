import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { amount } from "../fuzz/amount.js";
import { servedModels } from "../serve/subject.js";
import { requests } from "./fuzz/requests.js";
import { type Answer, type Call, get, post, type Subject } from "./suite/subject.js";
import { appInProcess, onASocket, worldInProcess } from "./suite/subjects.js";

const secret = "The stranger's very own prompt";

/** What must be true of every answer, whatever was asked. */
function isInOrder(call: Call, answer: Answer, strangersTask: string, asStranger: boolean): void {
  expect(answer.status, JSON.stringify([call, answer.body])).toBeLessThan(500);
  const text = JSON.stringify(answer.body);
  if (answer.status >= 400) expect(answer.body).toMatchObject({ error: { code: expect.any(String) } });
  if (asStranger) return;
  expect(text).not.toContain(secret);
  expect(text).not.toContain("stranger@example.com");
  if (answer.status === 200) expect(text).not.toContain(strangersTask);
}

/** Sends `cases` random requests to a service of two users, one of whom has a task that nobody else may see. */
async function fuzz(open: () => Promise<Subject>, cases: number): Promise<void> {
  const subject = await open();
  const { hands } = subject;
  if (!hands) throw new Error("only a service in our hands is fuzzed");
  const picture = { model: "aurora-image", prompt: secret };
  const { task_id: theirs } = (await subject.send(post(picture, hands.strangersKey))).body;
  const { task_id: own } = (await subject.send(post({ ...picture, prompt: "own" }, subject.key))).body;
  hands.state.db.exec("update accounts set balance_micro = 1000000000");
  const keys = [subject.key, hands.secondKey, hands.revokedKey];
  const taskIds = [theirs, own, `${theirs}/../${own}`, theirs.toUpperCase()];
  const calls = requests(keys, taskIds, Object.values(hands.inputs));
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(calls, async (call) => {
      const answer = await subject.send(call);
      isInOrder(call, answer, theirs, false);
      seen.add(String(answer.body?.error?.code ?? answer.status));
    }),
    { numRuns: cases },
  );
  // A fuzz that never gets past the door proves nothing.
  for (const outcome of ["200", "INVALID_REQUEST", "MISSING_MODEL", "INVALID_MODEL", "TASK_NOT_FOUND"]) {
    expect([...seen]).toContain(outcome);
  }
  const me = (await subject.send(get("/api/v1/me", subject.key))).body;
  expect(me.user.email).toBe("ada@example.com");
  await subject.close();
}

describe("whatever is asked, nothing breaks and nobody sees another user's data", { tags: ["fuzz"] }, () => {
  it("by requests to the world", () => fuzz(worldInProcess, amount(300, 6_000)));
  it("by requests through HTTP without a socket", () => fuzz(appInProcess, amount(200, 4_000)));
  it("by requests over a socket", () => fuzz(onASocket, amount(100, 1_000)));
  it("by requests to a served models file", () => fuzz(servedModels, amount(100, 1_000)));
});
