import { expect, test } from "vitest";
import { LanesInUse } from "../../src/run/waits.js";

function answering(lanes: number, saves = true) {
  let now = 0;
  const inUse = new LanesInUse(lanes, saves);
  const answer = (ms: number, sign: "good" | "trouble" = "good") => {
    inUse.answered({ sentAt: now, at: now + ms, sign });
    now += ms;
  };
  return { inUse, answer };
}

test("P3: a run begins with one lane and takes as many as submit everything planned within five seconds", () => {
  const { inUse, answer } = answering(16);
  expect(inUse.for(80)).toBe(1);
  answer(200);
  expect(inUse.for(80)).toBe(4);
  expect(inUse.for(25)).toBe(4);
});

test("P3: slow answers and many items take all lanes, and no more", () => {
  const { inUse, answer } = answering(16);
  answer(1_000);
  expect(inUse.for(3_000)).toBe(16);
});

test("the lanes that a user asks for are used from the start", () => {
  expect(answering(8, false).inUse.for(1)).toBe(8);
});

test("trouble leaves fewer lanes than are needed or asked for", () => {
  for (const saves of [true, false]) {
    const { inUse, answer } = answering(16, saves);
    answer(1_000);
    expect(inUse.for(3_000)).toBe(16);
    answer(1_000, "trouble");
    expect(inUse.for(3_000)).toBe(8);
  }
});
