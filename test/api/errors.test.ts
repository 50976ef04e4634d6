import { expect, test } from "vitest";
import { errorTable, meaningOf, rowOf } from "../../src/api/errors.js";

test("all codes of one status mean the same for the request, because a code may be missing", () => {
  for (const { code, status, submit, poll, stop } of errorTable)
    expect(meaningOf(status), code).toMatchObject({ submit, poll, stop });
});

test("P2: a paid request is free only after a complete 4xx that by the rules of HTTP is sent instead of doing the work", () => {
  const statuses = Array.from({ length: 300 }, (_, at) => 300 + at);
  const free = statuses.filter((status) => meaningOf(status).submit !== "unknown");
  expect(free).toEqual([
    400, 401, 402, 403, 404, 405, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 426, 428, 429, 431,
    451,
  ]);
});

test("P2: no answer to a poll ends a task", () => {
  expect(errorTable.filter(({ poll }) => poll === "missing").map(({ status }) => status)).toEqual([404]);
  expect(meaningOf(410)).toMatchObject({ submit: "rejected", poll: "unclear", stop: null });
});

test("an answer that refuses a paid request says what stops the run, and no other answer does", () => {
  for (const { code, submit, stop } of errorTable) expect(stop !== null, code).toBe(submit === "refused");
});

test("a code that the service invents has no row", () => {
  expect(rowOf("NEW_ERROR")).toBeUndefined();
  expect(rowOf(null)).toBeUndefined();
});
