import { expect, test } from "vitest";
import { OtherUser } from "../../../src/core/ports/accounts.js";
import { TaskTaken } from "../../../src/core/ports/attempt.js";
import { isRunOrder } from "../../../src/core/ports/orders.js";

test("a key of another user is told with both users and the service", () => {
  expect(new OtherUser("u-1", "u-2", "https://service.example")).toMatchObject({
    name: "OtherUser",
    message:
      "the API key belongs to another user than before: expected u-1 at https://service.example, got u-2",
  });
});

test("a task that another request led to is told with the item of that request", () => {
  expect(new TaskTaken("t-1", "cup")).toMatchObject({
    name: "TaskTaken",
    message: "expected a task of its own, got t-1, which is that of an earlier request (cup)",
  });
});

test("pause and cancel are orders to the run, and all others are orders to its items", () => {
  expect([isRunOrder({ do: "pause" }), isRunOrder({ do: "cancel" })]).toEqual([true, true]);
  expect(isRunOrder({ do: "skip", items: [1] })).toBe(false);
});
