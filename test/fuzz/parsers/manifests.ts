import { expect } from "vitest";
import type { Model } from "../../../src/api/records.js";
import { EarlyExit } from "../../../src/core/exit.js";
import { digestOf } from "../../../src/core/problem.js";
import { referenceIn } from "../../../src/core/reference.js";
import { reviewedNames } from "../../../src/job/orders/review.js";
import { bytesOf } from "../../../src/manifest/formats/bytes.js";
import { manifestOf, sourceOf } from "../../../src/manifest/read.js";
import { namesFrom, Scope } from "../../../src/manifest/templates/scope.js";
import { TemplateFault, Templates } from "../../../src/manifest/templates/template.js";
import { problemsText } from "../../../src/report/problem-text.js";
import { models, plan } from "../../plan/account.js";
import type { Outcome, Parser } from "../cases.js";
import { fileOf } from "./scratch.js";
import { workbookParser } from "./workbooks.js";

/** Manifests of every format, and what is written in them: templates and references. */

const words = [
  ..."id model paint edit animate extend mould prompt params.aspect_ratio params.depth 16:9 1:1".split(" "),
  ..."output repeat priority 2 é image_url video_url lang https://files.example/a.png @a @b[2] @still".split(
    " ",
  ),
  // What every object seems to have.
  ..."__proto__ constructor toString valueOf hasOwnProperty".split(" "),
  // What a spreadsheet makes of text and numbers.
  ..."16:09:00 0.6729 1899-12-31T16:09:00 Mar-04 04.03.2026 WAHR 2,0 50 GrÃ¶ÃŸe Gr√∂√üe Gr???e Â£5 #REF! ####".split(
    " ",
  ),
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
  "{{ nobody }}",
  "| nofilter",
  "{{ index }}{{ row }}{{ step }}{{ today }}{{ model }}{{ category }}",
];
const job = ["rows", "defaults", "matrix", "zip", "steps", "vars", "name", "lang", "params", "$schema"];
const quoted = (texts: readonly string[], after = "") => texts.map((text) => `"${text}"${after}`);

/** A model with options that spreadsheets rewrite. */
const mould: Model = {
  model_key: "mould",
  model_name: "Mould",
  category: "image",
  credits_cost: 2.5,
  input_type: "text",
  parameters: [
    {
      key: "depth",
      label: "Depth",
      type: "select",
      options: optionsOf("3-4", "2.0", "50%", "16:9"),
      default: "2.0",
    },
    { key: "matt", label: "Matt", type: "select", options: optionsOf("true", "false") },
  ],
};

function optionsOf(...values: string[]) {
  return values.map((value) => ({ value, label: value }));
}

/** A case chooses one by its length. */
const duplicates = ["keep", "merge", "error"] as const;

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
  const repair = bytes.length % 2 === 0;
  const { items, problems } = await plan(manifestOf(name, source, { itemsMax: 500, repair }), {
    models: [...models, mould],
    repair,
    duplicates: duplicates[bytes.length % duplicates.length] ?? "keep",
  });
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

const names = ["id", "prompt", "season", "mood", "params.aspect_ratio", "lang", "x", "day"];
const cells = { id: "a", prompt: "A {{ season | slug }} cup", season: "Late autumn", mood: "{{ mood }}" };

function readTemplate(bytes: Buffer): Outcome {
  const all = namesFrom(names);
  const made = new Templates(all);
  const template = made.compile(bytes.toString("utf8"));
  if (typeof template !== "function") return problemIsClear(template);
  const named = {
    index: 1,
    row: 2,
    number: 1,
    step: null,
    written: cells,
    cells,
    axes: { lang: "en" },
    late: null,
  };
  const vars = { x: "y", day: "2026-04-05" };
  const shared = { names: all, templates: made, vars, today: "2026-11-20", onEmpty: null };
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
    const found = await reviewedNames(fileOf("review.csv", bytes), ["approve", "reject"], () => {});
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
    () => [
      ...texts(
        'id,model,prompt,params.aspect_ratio,season\na,paint,"A {{ season | slug }}, cup",16:9,autumn\nb,paint,x,,\n',
        "id\tmodel\tprompt\r\na\tpaint\tcup\r\n",
        "\ufeffsep=;\nid;model;prompt;repeat\na;paint;x;3\n",
        "# edition: spring\nid,model,prompt,image_url,video_url,repeat,output\na,paint,x,,,2,cups/a\nb,animate,,@a[2],,1,\n" +
          "c,extend,,,@b,,\nd,edit,x,https://files.example/a.png,,,{{ id }}\ne,paint,x,,,2,\nf,paint,x,,,,\n",
        "id,model,prompt,image_url\na,animate,,@b\nb,edit,x,@a\nc,edit,x,pictures/a.png\nd,animate,,@nobody\n",
        "id,model,prompt,params.depth,params.matt,priority\na,mould,Grüße,04.03.2026,WAHR,1\nb,mould,GrÃ¶ÃŸe Â£5,16:09:00,true,\n" +
          "c,mould,Gr???e ??,0.5,FAUX,2\nd,mould,Gr√∂√üe,2,,x\n",
      )(),
      Buffer.from("id;model;prompt\na;paint;Gr\xfc\xdfe\n", "latin1"),
      Buffer.from("\ufeffid\tmodel\tprompt\r\na\tpaint\tGrüße\r\n", "utf16le"),
    ],
    [",", ";", "\t", "\n", "\r\n", '"', '""', "#", "sep=;\n", ...words, ...templates],
  ),
  xlsx: workbookParser((bytes) => readManifest("a.xlsx", bytes)),
  json: manifest(
    "a.json",
    texts(
      '{"name": "n", "defaults": {"model": "paint"}, "rows": [{"id": "a", "prompt": "p"}], "matrix": {"lang": ["en", "de"]}, "prompt": "{{ lang }}"}',
      '{"rows": [{"id": "a", "model": "paint", "prompt": "p"}], "steps": [{"name": "still"}, {"name": "clip", "model": "animate", "image_url": "@still", "approve": true}], "zip": {"size": [1, 2]}, "vars": {"x": 1.5}, "repeat": 2, "output": "{{ id }}"}',
      '{"defaults": {"model": "mould", "params": {"depth": "2.0"}}, "rows": [{"id": "a", "prompt": "{{ index }} {{ row }} {{ today }}", "params": {"matt": true}}, {"id": "b", "prompt": "{{ prompt_{{lang}} }} {{ day | date: \'%Y\' }}", "prompt_en": "p", "day": "2026-04-05", "lang": "en"}, {"prompt": "same"}, {"prompt": "same", "repeat": 2, "priority": 3}], "publish": {"to": "s3://b/x", "for": "24h"}}',
      '{"rows": [{"id": "a"}, {"id": "b"}], "zip": {"style": ["in oil", "in ink"], "size": [1, 2]}, "matrix": {"lang": ["en"]}, "steps": [{"name": "one", "model": "mould", "prompt": "{{ id }} {{ step }} {{ style }} {{ size }} {{ lang }} {{ n }}", "matrix": {"n": [1, 2], "params.depth": ["2.0", "50%"]}, "output": "{{ category }}/{{ model }}-{{ id }}"}, {"name": "two", "model": "edit", "prompt": "y", "image_url": "@one"}, {"name": "three", "model": "animate", "image_url": "@b.two"}]}',
      '{"rows": "rows.csv", "vars": {"a": "b"}}',
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
    texts(
      '{"id": "a", "model": "paint", "prompt": "p"}\n{"id": "b", "params": {"mood": 1.0}}\n',
      '{"id": "a", "model": "edit", "prompt": "p", "image_url": "@b"}\n{"id": "b", "model": "mould", "prompt": "{{ id }} {{ x | upcase }}", "x": "y", "params": {"depth": "50%", "matt": "true"}, "repeat": 2}\n',
    ),
    [...'{ } , : " ['.split(" "), "\n", ...quoted([...words, ...templates]), ...quoted(words, ":")],
    true,
  ),
  yaml: manifest(
    "a.yaml",
    texts(
      'rows: [{ id: a, model: paint }]\nvars: { x: 1 }\nmatrix:\n  params.aspect_ratio: ["1:1", "16:9"]\nsteps:\n  - name: s\n    prompt: "{{ x }} {{ id }}"\n',
      "- &a { id: a, model: paint, prompt: x }\n- { <<: *a, id: b }\n",
      'name: n\ndefaults: { model: mould, params: { depth: 2.0 } }\nprompt: |\n  a {{ style }} cup {{ size }}\n  on a table\nmatrix:\n  style: ["in oil", "in ink"]\n  params: { depth: [2.0] }\nzip: { size: [1, 2], params.matt: [true, false] }\noutput: "{{ style | slug }}"\n',
      "rows: rows.csv\nsteps:\n  - { name: still, model: paint, prompt: x, approve: true }\n  - { name: clip, model: animate, image_url: '@still' }\n",
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
      "{{ season | pad: 3 }} {{ day | date: '%Y' }} {{ 'Ærø' | slug }} {{ x }}",
      "{% assign x = season | split: ' ' %}{% case x[0] %}{% when 'Late' %}l{% endcase %}{% raw %}{{{% endraw %}",
    ),
    words: [
      ...templates,
      ..."season mood params lang x day id today . [ ] ( ) .. : , ' \" | - == and or contains 0 9999999999 nil true".split(
        " ",
      ),
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
