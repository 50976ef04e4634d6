import { expect, test } from "vitest";
import {
  follow,
  IllegalTransition,
  type ItemEvent,
  itemStates,
  transitionList,
} from "../../src/core/item.js";

test("every step in the table leads to a state of the table", () => {
  for (const { from, event, to } of transitionList) {
    expect(itemStates).toContain(to);
    expect(follow(from, event)).toBe(to);
  }
});

test("P2: nothing but a refusal, evidence, a failed task or a person leads back to planned", () => {
  const back = transitionList
    .filter((step) => step.to === "planned")
    .map((step) => `${step.from} ${step.event}`);
  expect(back.sort()).toEqual(
    [
      "blocked released",
      "dropped returned",
      "failed retry",
      "held resubmit",
      "submitting not_sent",
      "submitting refused",
      "unknown not_charged",
    ].sort(),
  );
});

test("an event that cannot happen in a state says what could", () => {
  const bad = () => follow("archived", "intended" as ItemEvent);
  expect(bad).toThrow(IllegalTransition);
  expect(bad).toThrow("an item that is archived cannot be intended; expected one of: file_lost");
});
