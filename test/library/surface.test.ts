import { expect, test } from "vitest";
import { exportedNames, surface } from "../../scripts/library-surface.mjs";
import * as library from "../../src/index.js";

test("what programs can import has not changed; `vitest -u` takes a change over into surface.txt", async () => {
  await expect(surface()).toMatchFileSnapshot("surface.txt");
});

test("whatever has a value is a function or an error, and has a docstring", () => {
  expect(Object.keys(library).toSorted()).toEqual([
    "EarlyExit",
    "NoRequestsUntil",
    "ServiceError",
    "createClient",
    "createSandbox",
    "openWorkspace",
    "plan",
    "readIndex",
    "readManifest",
    "run",
  ]);
  const values = new Set(Object.keys(library));
  for (const { name, doc } of exportedNames()) if (values.has(name)) expect(doc, name).not.toBe("");
});
