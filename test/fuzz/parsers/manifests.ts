import { expect } from "vitest";
import writeWorkbook from "write-excel-file/node";
import { EarlyExit } from "../../../src/core/exit.js";
import { digestOf } from "../../../src/core/problem.js";
import { referenceIn } from "../../../src/core/reference.js";
import { reviewedNames } from "../../../src/job/orders/review.js";
import { bytesOf } from "../../../src/manifest/formats/bytes.js";
import { manifestOf, sourceOf } from "../../../src/manifest/read.js";
import { namesFrom, Scope } from "../../../src/manifest/templates/scope.js";
import { TemplateFault, Templates } from "../../../src/manifest/templates/template.js";
import { problemsText } from "../../../src/report/problem-text.js";
import { plan } from "../../plan/account.js";
import type { Outcome, Parser } from "../cases.js";
import { fileOf } from "./scratch.js";

/** Manifests of every format, and what is written in them: templates and references. */

const words = [
  ..."id model paint prompt params.aspect_ratio 16:9 output repeat 2 é __proto__ constructor".split(" "),
  "a cup",
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
const quoted = (texts: readonly string[], after = "") => texts.map((text) => `"${text}"${after}`);

/**
 * Whatever bytes a manifest has, it is read to its end, and each problem is reported with its place. Reading knows no
 * client: nothing here could send a request.
 */
function manifest(
  name: string,
  samples: Parser["samples"],
  pieces: readonly string[],
  isJson = false,
): Parser {
  return { samples, words: pieces, isJson, read: (bytes) => readManifest(name, bytes) };
}

async function readManifest(name: string, bytes: Buffer): Promise<Outcome> {
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
  return items.length > 0 ? "taken" : "refused";
}

const texts =
  (...samples: string[]) =>
  () =>
    samples.map((sample) => Buffer.from(sample));

const workbook = async (rows: (string | number | boolean | null)[][]) =>
  writeWorkbook([{ sheet: "Cups", data: rows }]).toBuffer();

const names = ["id", "prompt", "season", "mood", "params.aspect_ratio"];
const cells = { id: "a", prompt: "A {{ season | slug }} cup", season: "Late autumn", mood: "{{ mood }}" };

function readTemplate(bytes: Buffer): Outcome {
  const all = namesFrom(names);
  const made = new Templates(all);
  const template = made.compile(bytes.toString("utf8"));
  if (typeof template !== "function") return problemIsClear(template);
  const named = { index: 1, row: 2, step: null, written: cells, cells, axes: {}, late: null };
  const shared = { names: all, templates: made, vars: {}, today: "2026-11-20" };
  try {
    expect(typeof template(new Scope(named, shared))).toBe("string");
    return "taken";
  } catch (error) {
    if (error instanceof TemplateFault) return problemIsClear(error.fault);
    if ((error as Error).name === "LateName") return "refused";
    throw error;
  }
}

function problemIsClear({
  message,
  expected,
  got,
}: {
  message: string;
  expected: string;
  got: string;
}): Outcome {
  expect([message, expected, typeof got]).toEqual([
    expect.stringMatching(/./),
    expect.stringMatching(/./),
    "string",
  ]);
  return "refused";
}

function readReference(bytes: Buffer): Outcome {
  const found = referenceIn(bytes.toString("utf8"));
  if (found === null) return "refused";
  expect(found.name).not.toMatch(/^\s|\s$|[[\]]/);
  expect(found.name).not.toBe("");
  expect(Number.isInteger(found.output) && found.output >= 1 && found.output <= 9_999).toBe(true);
  // What it means can be written again.
  expect(referenceIn(`@${found.name}[${found.output}]`)).toEqual(found);
  return "taken";
}

async function readReview(bytes: Buffer): Promise<Outcome> {
  try {
    const found = await reviewedNames(fileOf("review.csv", bytes), ["approve", "reject"]);
    for (const { name, decision } of found) {
      expect(name).not.toBe("");
      expect(["approve", "reject"]).toContain(decision);
    }
    return "taken";
  } catch (error) {
    expect(error).toBeInstanceOf(EarlyExit);
    return "refused";
  }
}

export const manifestParsers: Readonly<Record<string, Parser>> = {
  csv: manifest(
    "a.csv",
    texts(
      'id,model,prompt,params.aspect_ratio,season\na,paint,"A {{ season | slug }}, cup",16:9,autumn\nb,paint,x,,\n',
      "id\tmodel\tprompt\r\na\tpaint\tcup\r\n",
      "\ufeffsep=;\nid;model;prompt;repeat\na;paint;x;3\n",
    ),
    [",", ";", "\t", "\n", "\r\n", '"', '""', "#", "sep=;\n", ...words, ...templates],
  ),
  xlsx: {
    ...manifest(
      "a.xlsx",
      async () => [
        await workbook([
          ["id", "model", "prompt", "params.aspect_ratio"],
          ["a", "paint", "a cup", "16:9"],
          ["b", "paint", 7, true],
        ]),
        await workbook([["id"], [null], ["x"]]),
      ],
      [],
    ),
    cases: 600,
  },
  json: manifest(
    "a.json",
    texts(
      '{"name": "n", "defaults": {"model": "paint"}, "rows": [{"id": "a", "prompt": "p"}], "matrix": {"lang": ["en", "de"]}, "prompt": "{{ lang }}"}',
      '{"rows": [{"id": "a", "model": "paint", "prompt": "p"}], "steps": [{"name": "still"}, {"name": "clip", "model": "animate", "image_url": "@still", "approve": true}], "zip": {"size": [1, 2]}, "vars": {"x": 1.5}, "repeat": 2, "output": "{{ id }}"}',
    ),
    [
      ...'{ } [ ] , : " 1 true null'.split(" "),
      "\n",
      ...quoted([...words, ...job, ...templates]),
      ...quoted(job, ":"),
    ],
    true,
  ),
  jsonl: manifest(
    "a.jsonl",
    texts('{"id": "a", "model": "paint", "prompt": "p"}\n{"id": "b", "params": {"mood": 1.0}}\n'),
    [...'{ } , : " ['.split(" "), "\n", ...quoted([...words, ...templates]), ...quoted(words, ":")],
    true,
  ),
  yaml: manifest(
    "a.yaml",
    texts(
      'rows: [{ id: a, model: paint }]\nvars: { x: 1 }\nmatrix:\n  params.aspect_ratio: ["1:1", "16:9"]\nsteps:\n  - name: s\n    prompt: "{{ x }} {{ id }}"\n',
      "- &a { id: a, model: paint, prompt: x }\n- { <<: *a, id: b }\n",
    ),
    [
      "- ",
      "  ",
      ": ",
      "|\n",
      "> ",
      "? ",
      "!!str ",
      "---\n",
      "<<: ",
      ..."\n [ ] { } #".split(" "),
      '"',
      "&a ",
      "*a",
      ...words,
      ...job.map((word) => `${word}:`),
      ...templates,
    ],
  ),
  templates: {
    samples: texts(
      "A {{ season | slug }} cup, {% if mood %}{{ mood | upcase }}{% else %}plain{% endif %}",
      "{{ params.aspect_ratio | default: '1:1' }} {{ 'now' | date: '%Y' }} {{ prompt_{{season}} }}",
      "{% assign x = season | split: ' ' %}{% case x[0] %}{% when 'Late' %}l{% endcase %}{% raw %}{{{% endraw %}",
    ),
    words: [
      ...templates,
      ..."season mood params . [ ] ( ) .. : , ' \" | - == and or contains 0 9999999999 nil true".split(" "),
      " ",
      "\n",
      "{% assign a = ",
      "{% capture a %}",
      "{% endcapture %}",
      "{% raw %}",
      "{% # ",
      "{% case mood %}",
      "{% when 1 %}",
      "| column",
      "| pad: ",
      "| replace: 'a', 'aaaaaaaa'",
      "| split: '' | join: mood",
      "| repeat",
    ],
    read: readTemplate,
  },
  references: {
    samples: texts("@hero", "@row-1.still[2]", "@ a b [12]"),
    words: ["@", "[", "]", "1", "0", "9999", "99999", ".", " ", "\t", "é", "-", "a"],
    read: readReference,
  },
  review: {
    samples: texts("id,decision\na,approve\nb,reject\nc,pick\n", "decision;id\n;a\nAPPROVE ; b\n"),
    words: ["id", "decision", "approve", "reject", "redo", "a", "b", ",", ";", "\n", '"', " "],
    read: readReview,
  },
};
