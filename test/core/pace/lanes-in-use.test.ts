import { expect, test } from "vitest";
import { LanesInUse } from "../../../src/core/pace/lanes.js";

function answering(lanes: number, saves = true) {
  let now = 0;
  const inUse = new LanesInUse(lanes, saves);
  const answer = (ms: number, sign: "good" | "trouble" = "good") => {
    inUse.answered({ sentAt: now, at: now + ms, sign });
    now += ms;
  };
  const lanesFor = (planned: number) => {
    inUse.see(planned);
    return inUse.count;
  };
  return { answer, lanesFor };
}

test("P3: a run begins with one lane and takes as many as submit everything planned within five seconds", () => {
  const { answer, lanesFor } = answering(16);
  expect(lanesFor(80)).toBe(1);
  answer(200);
  expect(lanesFor(80)).toBe(4);
  expect(lanesFor(25)).toBe(4);
});

test("P3: slow answers and many items take all lanes, and no more", () => {
  const { answer, lanesFor } = answering(16);
  answer(1_000);
  expect(lanesFor(3_000)).toBe(16);
});

test("the lanes that a user asks for are used from the start", () => {
  expect(answering(8, false).lanesFor(1)).toBe(8);
});

test("trouble leaves fewer lanes than are needed or asked for", () => {
  for (const saves of [true, false]) {
    const { answer, lanesFor } = answering(16, saves);
    answer(1_000);
    expect(lanesFor(3_000)).toBe(16);
    answer(1_000, "trouble");
    expect(lanesFor(3_000)).toBe(8);
  }
});
