import fc from "fast-check";
import { expect, test } from "vitest";
import { digestOf } from "../../src/core/problem.js";
import { bytesOf } from "../../src/manifest/formats/bytes.js";
import { manifestOf, sourceOf } from "../../src/manifest/read.js";
import { problemsText } from "../../src/report/problem-text.js";
import { amount } from "../fuzz/amount.js";
import { plan } from "../plan/account.js";
import { wholeSource } from "./read.js";

/**
 * Whatever bytes a manifest has, it is read to its end, and each problem is reported with its place. Reading knows no
 * client: nothing here could send a request. A case that does not end would run into the test's time limit. `npm run
 * fuzz` tries many more.
 */
const casesEach = amount(60, 2_500);

async function read(name: string, bytes: Uint8Array): Promise<void> {
  const { source } = await sourceOf(name, bytesOf(bytes), {});
  const { items, problems } = await plan(manifestOf(name, source, { itemsMax: 500 }));
  expect(items.length + problems.length).toBeGreaterThan(0);
  for (const { place, message, expected, got } of problems) {
    expect(place.file).toBeTruthy();
    expect([message, expected, typeof got]).toEqual([
      expect.stringMatching(/./),
      expect.stringMatching(/./),
      "string",
    ]);
  }
  expect(problemsText(digestOf(problems), "")).not.toContain("undefined column");
}

const words = [
  "id",
  "model",
  "paint",
  "prompt",
  "params.aspect_ratio",
  "16:9",
  "a cup",
  "output",
  "repeat",
  "2",
  "é",
  "__proto__",
  "constructor",
];
const templates = [
  "{{",
  "}}",
  "{%",
  "%}",
  "{{ id }}",
  "{{ prompt }}",
  "{{ prompt_{{lang}} }}",
  "| slug",
  "| date: '%Y'",
  "{% if id %}",
  "@x.txt",
];
const job = ["rows", "defaults", "matrix", "zip", "steps", "vars", "name", "lang", "params", "$schema"];
const languages: Record<string, string[]> = {
  "a.csv": [",", ";", "\t", "\n", "\r\n", '"', '""', "#", "sep=;\n", ...words, ...templates],
  "a.json": [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "\n",
    "1",
    "true",
    "null",
    ...[...words, ...job, ...templates].map((word) => `"${word}"`),
    ...job.map((word) => `"${word}":`),
  ],
  "a.yaml": [
    "- ",
    "  ",
    "\n",
    ": ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    "> ",
    "? ",
    "!!str ",
    "---\n",
    "#",
    '"',
    ...words,
    ...job.map((word) => `${word}:`),
    ...templates,
  ],
  "a.jsonl": [
    "{",
    "}",
    "\n",
    ",",
    ":",
    '"',
    "[",
    ...[...words, ...templates].map((word) => `"${word}"`),
    ...words.map((word) => `"${word}":`),
  ],
};

test.each(Object.entries(languages))(
  "pieces of %s in any order",
  { tags: ["fuzz"] },
  async (name, pieces) => {
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(text, async (some) => read(name, Buffer.from(some.join("")))),
      { numRuns: casesEach },
    );
  },
);

const good: Record<string, string> = {
  "a.csv":
    'id,model,prompt,params.aspect_ratio,season\na,paint,"A {{ season | slug }}, cup",16:9,autumn\nb,paint,x,,\n',
  "a.json":
    '{"name": "n", "defaults": {"model": "paint"}, "rows": [{"id": "a", "prompt": "p"}], "matrix": {"lang": ["en", "de"]}, "prompt": "{{ lang }}"}',
  "a.yaml":
    'rows: [{ id: a, model: paint }]\nvars: { x: 1 }\nmatrix:\n  params.aspect_ratio: ["1:1", "16:9"]\nsteps:\n  - name: s\n    prompt: "{{ x }} {{ id }}"\n',
  "a.jsonl": '{"id": "a", "model": "paint", "prompt": "p"}\n{"id": "b", "params": {"mood": 1.0}}\n',
  a: "id\tmodel\tprompt\r\na\tpaint\tcup\r\n",
};

test.each(Object.entries(good))(
  "a good %s with bytes changed, lost and added",
  { tags: ["fuzz"] },
  async (name, text) => {
    const bytes = Buffer.from(text);
    const change = fc.record({
      at: fc.nat(bytes.length),
      lose: fc.nat(6),
      add: fc.uint8Array({ maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
        const changed = changes.reduce(
          (now, { at, lose, add }) => Buffer.concat([now.subarray(0, at), add, now.subarray(at + lose)]),
          bytes,
        );
        await read(name, changed);
      }),
      { numRuns: amount(60, 500) },
    );
  },
);

test("a line of many megabytes is one problem, and so is a quote that swallows a large file", {
  tags: ["fuzz"],
}, async () => {
  for (const text of [
    `id,prompt\na,${"x".repeat(amount(12_000_000, 100_000_000))}\n`,
    `id,prompt\na,"${"x,y\n".repeat(amount(3_000_000, 10_000_000))}`,
  ]) {
    const { source } = await sourceOf("a.csv", bytesOf(Buffer.from(text)), {});
    expect((await wholeSource(source)).problems).toMatchObject([
      { place: { line: 2 }, message: expect.stringContaining("row 2 is longer than any row should be") },
    ]);
  }
});

test("very many wrong rows are all counted, and the first hundred mistakes are shown", {
  tags: ["fuzz"],
}, async () => {
  const length = amount(3_000, 130_000);
  const rows = Array.from({ length }, (_, n) => `r${n},nobody${n},x`).join("\n");
  const { source } = await sourceOf("a.csv", bytesOf(Buffer.from(`id,model,prompt\n${rows}\n`)), {});
  const { problems } = await plan(manifestOf("a.csv", source, {}));
  expect(problems).toHaveLength(length);
  const lines = problemsText(digestOf(problems), "").split("\n");
  expect(lines).toHaveLength(101);
  expect(lines[100]).toContain(`and ${length - 100} more`);
});
