import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { proofsIn } from "./proofs.js";
import { allMutants } from "./sim/mutants.js";

/** docs/promises.md: each promise with what proves it. */
const sections = readFileSync("docs/promises.md", "utf8").split(/^### /m).slice(1);
const proofs = new Map(sections.map((text) => [/^P\d+|^.*/.exec(text)?.[0] ?? "", proofsIn(text, "docs")]));
const linked = (promise: string) => [...(proofs.get(promise)?.keys() ?? [])];

test("docs/promises.md has all 26 promises, in order", () => {
  const numbers = [...proofs.keys()].filter((name) => /^P\d+$/.test(name));
  expect(numbers).toEqual(Array.from({ length: 26 }, (_, n) => `P${n + 1}`));
});

describe.each([...proofs])("%s", (_, files) => {
  test("is proven, by tests, runners and scenes that exist", () => {
    expect(files.size).toBeGreaterThan(0);
    for (const [file, titles] of files) {
      expect(existsSync(file), file).toBe(true);
      for (const title of titles) expect(readFileSync(file, "utf8"), file).toContain(title);
    }
  });
});

test.each([...proofs.keys()].filter((name) => /^P\d+$/.test(name)))("%s has a test by name", (promise) => {
  const tests = [...(proofs.get(promise) ?? [])].filter(([file]) => /\.test\.ts$|\/suites\//.test(file));
  expect(tests.flatMap(([, titles]) => titles)).not.toEqual([]);
});

test("every rule of the simulation stands at the promise that it names", () => {
  const folders = ["test/sim", "test/sim/served"];
  const paths = folders.flatMap((folder) => readdirSync(folder).map((name) => `${folder}/${name}`));
  for (const path of paths.filter((file) => file.endsWith(".ts")))
    for (const [, promise = ""] of readFileSync(path, "utf8").matchAll(/new Violation\(\s*"(P\d+)"/g))
      expect(linked(promise), promise).toContain(path);
});

test("every broken runner stands at a promise, once", () => {
  const named = [...proofs.values()].flatMap((files) =>
    [...files]
      .filter(([file]) => /^test\/sim\/((fleet|served)\/)?mutants/.test(file))
      .flatMap(([, titles]) => titles),
  );
  expect(named.toSorted()).toEqual(
    allMutants()
      .map(({ name }) => name)
      .toSorted(),
  );
});

test("every scene of the torture stands at the promises that it names", () => {
  for (const name of readdirSync("test/torture/scenes")) {
    const file = `test/torture/scenes/${name}`;
    const head = /\/\*\*[\s\S]*?\*\//.exec(readFileSync(file, "utf8"))?.[0] ?? "";
    for (const [promise] of head.matchAll(/\bP\d+\b/g)) expect(linked(promise), promise).toContain(file);
  }
});
