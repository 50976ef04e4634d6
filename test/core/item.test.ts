import { expect, test } from "vitest";
import {
  follow,
  IllegalTransition,
  type ItemEvent,
  type ItemState,
  itemStates,
  transitionList,
  wantedItems,
} from "../../src/core/item.js";

/** The table of the design, written out once more: state, event, next state. */
const design: readonly [ItemState, ItemEvent, ItemState][] = [
  ["blocked", "released", "planned"],
  ["blocked", "dropped", "dropped"],
  ["planned", "intended", "submitting"],
  ["planned", "waits", "blocked"],
  ["planned", "supplied", "archived"],
  ["planned", "dropped", "dropped"],
  ["submitting", "accepted", "processing"],
  ["submitting", "not_sent", "planned"],
  ["submitting", "refused", "planned"],
  ["submitting", "rejected", "failed"],
  ["submitting", "unanswered", "unknown"],
  ["unknown", "not_charged", "planned"],
  ["unknown", "given_up", "failed"],
  ["unknown", "charged", "held"],
  ["unknown", "undecided", "held"],
  ["held", "adopted", "processing"],
  ["held", "resubmit", "planned"],
  ["held", "refetch", "ready"],
  ["held", "skipped", "dropped"],
  ["processing", "completed", "ready"],
  ["processing", "task_failed", "failed"],
  ["processing", "window_passed", "overdue"],
  ["overdue", "completed", "ready"],
  ["overdue", "task_failed", "failed"],
  ["ready", "saved", "archived"],
  ["ready", "url_expired", "ready"],
  ["ready", "unfetchable", "held"],
  ["failed", "retry", "planned"],
  ["failed", "supplied", "archived"],
  ["archived", "file_lost", "ready"],
  ["dropped", "returned", "planned"],
];

test("an item follows the table of the design, and every other event is illegal in its state", () => {
  const events = [...new Set(design.map(([, event]) => event))];
  const followed = itemStates.flatMap((from) =>
    events.flatMap((event) => {
      try {
        return [`${from} ${event} ${follow(from, event)}`];
      } catch (error) {
        expect(error).toBeInstanceOf(IllegalTransition);
        return [];
      }
    }),
  );
  expect(followed.toSorted()).toEqual(design.map((row) => row.join(" ")).toSorted());
});

test("the list of legal transitions is the table of the design", () => {
  const listed = transitionList.map(({ from, event, to }) => `${from} ${event} ${to}`);
  expect(listed.toSorted()).toEqual(design.map((row) => row.join(" ")).toSorted());
});

test("P2: only a refusal, evidence, a failed task or a person leads back to planned", () => {
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
  expect(new IllegalTransition("archived", "intended" as ItemEvent).name).toBe("IllegalTransition");
  expect(bad).toThrow("an item that is archived cannot be intended; expected one of: file_lost");
  expect(() => follow("overdue", "intended" as ItemEvent)).toThrow("one of: completed, task_failed");
});

test("a run has to make all its items but the dropped ones", () => {
  expect(wantedItems({ planned: 3, archived: 4, held: 1, dropped: 2 })).toBe(8);
  expect(wantedItems({ planned: 3, archived: 4 })).toBe(7);
  expect(wantedItems({})).toBe(0);
});
