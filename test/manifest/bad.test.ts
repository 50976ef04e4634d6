import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { expect, test } from "vitest";
import { digestOf } from "../../src/core/problem.js";
import { LocalInputs } from "../../src/manifest/local-inputs.js";
import { openManifest } from "../../src/manifest/read.js";
import { problemsText } from "../../src/report/problem-text.js";
import { plan } from "../plan/account.js";

/**
 * What a person sees for each of these files, word for word. Recorded again with UPDATE_TRANSCRIPTS=1; then
 * read what has changed as somebody would who made that very slip.
 */
const folder = new URL("./bad/", import.meta.url).pathname;
const transcript = new URL("./bad-manifests.txt", import.meta.url);
const names = readdirSync(folder).toSorted();

async function told(name: string): Promise<string> {
  const path = `${folder}${name}`;
  const { problems } = await plan(await openManifest(path), { localInputs: new LocalInputs(path) });
  const files = problems.map((problem) => ({
    ...problem,
    place: { ...problem.place, file: relative(folder, problem.place.file) },
  }));
  return `${name}\n${problemsText(digestOf(files), folder)
    .split("\n")
    .map((line) => `  ${line}`)
    .join("\n")}\n`;
}

if (process.env["UPDATE_TRANSCRIPTS"] === "1") {
  writeFileSync(transcript, (await Promise.all(names.map(told))).join("\n"));
}

const expected = new Map(
  readFileSync(transcript, "utf8")
    .split("\n\n")
    .map((block) => [block.slice(0, block.indexOf("\n")), `${block.trimEnd()}\n`]),
);

test("the transcript covers every file, and at least sixty", () => {
  expect([...expected.keys()]).toEqual(names);
  expect(names.length).toBeGreaterThanOrEqual(60);
});

test.each(names)("%s is reported as in the transcript, with at least one problem", async (name) => {
  const text = await told(name);
  expect(text).toBe(expected.get(name));
  expect(text.split("\n").length).toBeGreaterThan(2);
});
