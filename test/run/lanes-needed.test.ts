import { expect, test } from "vitest";
import { LanesNeeded } from "../../src/run/waits.js";

function answering(lanes: number | null) {
  let now = 0;
  const needed = new LanesNeeded(lanes, { monotonic: () => now });
  const answer = (ms: number) => {
    const answered = needed.began();
    now += ms;
    answered();
  };
  return { needed, answer };
}

test("P3: a run begins with one lane and takes as many as submit everything planned within five seconds", () => {
  const { needed, answer } = answering(16);
  expect(needed.for(80)).toBe(1);
  answer(200);
  expect(needed.for(80)).toBe(4);
  expect(needed.for(25)).toBe(4);
});

test("P3: slow answers and many items take all lanes, and no more", () => {
  const { needed, answer } = answering(16);
  answer(1_000);
  expect(needed.for(3_000)).toBe(16);
});

test("the lanes that a user asks for are used from the start", () => {
  expect(answering(null).needed.for(1)).toBe(Number.POSITIVE_INFINITY);
});
