import { expect, test } from "vitest";
import { inBatches } from "../../src/core/batches.js";

/** Work that ends when it is told to. */
function heldWork() {
  const batches: (readonly string[])[] = [];
  const ends: { resolve(): void; reject(error: unknown): void }[] = [];
  const add = inBatches<string>((batch) => {
    batches.push(batch);
    return new Promise<void>((resolve, reject) => ends.push({ resolve, reject }));
  });
  return { add, batches, ends };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("callers who come while a batch is in progress share the next one, and no two are in progress at once", async () => {
  const { add, batches, ends } = heldWork();
  const first = add("a");
  await turn();
  const others = [add("b"), add("c")];
  await turn();
  expect(batches).toEqual([["a"]]);
  ends[0]?.resolve();
  await first;
  await turn();
  expect(batches).toEqual([["a"], ["b", "c"]]);
  ends[1]?.resolve();
  await Promise.all(others);
});

test("a batch that fails fails for its own callers alone", async () => {
  const { add, ends } = heldWork();
  const first = add("a");
  await turn();
  const second = add("b");
  ends[0]?.reject(new Error("full"));
  await expect(first).rejects.toThrow("full");
  await turn();
  ends[1]?.resolve();
  await expect(second).resolves.toBeUndefined();
});
