import { readFileSync } from "node:fs";
import { symlink } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { builtInNames, lateNames } from "../../../src/manifest/templates/scope.js";
import { filterNames, tagNames } from "../../../src/manifest/templates/template.js";
import { fileWith, folderWith } from "../folder.js";
import { readManifest } from "../read.js";

const today = "2026-11-21";
const sheet = async (text: string) => readManifest(await fileWith("sheet.csv", text), { today });
/** The prompt that a template gives in a sheet with one product. */
async function prompt(template: string, cells: Record<string, string> = {}): Promise<string | null> {
  const row = {
    id: "mug",
    product: "Café mug, blue",
    note: "",
    price: "12",
    sale: "FALSE",
    day: "2026-04-05",
    due: "5.04.2026",
    lang: "en",
    note_en: "",
    ...cells,
  };
  const job = JSON.stringify({
    prompt: template,
    rows: [row, { ...row, id: "other", note: "x", note_en: "x" }],
  });
  const { rows, problems } = await readManifest(await fileWith("job.json", job), { today });
  expect(problems).toEqual([]);
  return rows[0]?.prompt ?? null;
}

describe("a template", () => {
  test.each([
    ["names a column", "A {{ product }}", "A Café mug, blue"],
    ["names an empty cell", "a{{ note }}b", "ab"],
    ["asks whether a cell is empty", "{% if note %}yes{% else %}no{% endif %}", "no"],
    ["compares with a text", '{% if sale != "FALSE" %}yes{% else %}no{% endif %}', "no"],
    ["slugs", "{{ product | slug }}", "cafe-mug-blue"],
    ["pads", "{{ index | pad: 3 }}", "001"],
    ["puts a default for nothing", '{{ note | default: "none" }}', "none"],
    ["writes a date as wished", '{{ day | date: "%d.%m.%Y" }}', "05.04.2026"],
    ["reads a date in another order", '{{ due | date: "%-d %B", "dd/mm/yyyy" }}', "5 April"],
    ["asks about a composed name", "{% if note_{{lang}} %}yes{% else %}no{% endif %}", "no"],
    [
      "asks about a composed name within a text",
      "{% if lang == 'en' and note_{{lang}} == blank %}-{% endif %}",
      "-",
    ],
    ["numbers the items", "{{ number | pad: 2 }}", "01"],
    ["knows the day it is read", "{{ today }}", today],
    ["reckons", "{{ price | times: 2 | plus: 1 }}", "25"],
    ["reckons as a person does", '{{ 19.9 | times: 1.19 }} {{ "" | plus: 1 }}', "23.681 1"],
    ["keeps what is raw", "{% raw %}{{ product }}{% endraw %}", "{{ product }}"],
    ["leaves single braces alone", "{ product } %}", "{ product } %}"],
  ])("%s", async (_name, template, text) => {
    expect(await prompt(template)).toBe(text);
  });

  test.each([
    ["Straße", "strasse"],
    ["Łódź & Ðorđe", "lodz-dorde"],
    ["  a__b  ", "a-b"],
    ["茶 碗", "茶-碗"],
    ["कप", "कप"],
    ["!!", ""],
  ])("slug of %s is %s", async (product, slug) => {
    expect(await prompt("{{ product | slug }}", { product })).toBe(slug || "");
  });

  test("may stand in every field, and in the values that it names, in any order", async () => {
    const { rows, problems } = await sheet(
      "ID,Model,Prompt,Output,Params.style,Repeat,Product Name,kind,full\n" +
        "{{ kind }}-1,{{ kind }},{{ full }},{{ model }}/{{ id }},{{ kind }},{{ row }},Blue mug,paint,the {{ product_name }}\n",
    );
    expect(problems).toEqual([]);
    expect(rows).toMatchObject([
      {
        id: "paint-1",
        model: "paint",
        prompt: "the Blue mug",
        output: "paint/paint-1",
        params: { style: "paint" },
        repeat: 2,
      },
    ]);
  });

  test("columns whose names differ only in what a template's name cannot hold do not hide each other", async () => {
    const { rows, problems } = await sheet(
      "prompt,product_name,Product Name,Kind of,Kind  of\n" +
        "{{ product_name }} {{ kind_of }} {{ ['Product Name'] }},{{ row }},b,{{ row }}x,d\n",
    );
    expect(problems).toEqual([]);
    expect(rows[0]?.prompt).toBe("2 2x b");
  });

  test("a column that it uses is not noted, and its cells are kept as they were written", async () => {
    const { notes, rows } = await sheet("id,prompt,colour\na,a {{ colour }} cup,blue\n");
    expect(notes).toEqual([]);
    expect(rows[0]?.columns).toEqual({ id: "a", prompt: "a {{ colour }} cup", colour: "blue" });
  });
});

test.each([
  ["19,90", "{{ price | times: 2 }}", "times", "19,90"],
  ["5 €", "{{ price | round }}", "round", "5 €"],
  ["12", '{{ price | plus: "1,5" }}', "plus", "1,5"],
  ["12", "{{ price | divided_by: 0 }}", "divided_by", "12 | divided_by: 0"],
])("a text that is no number is not taken for 0: %s in %s", async (price, prompt, filter, got) => {
  const { problems } = await sheet(`prompt,price\n"${prompt.replaceAll('"', '""')}","${price}"\n`);
  expect(problems).toMatchObject([{ message: `the ${filter} filter needs a valid number`, got }]);
});

test.each([
  ["02/11/26", "dd/mm/yyyy", "2026-11-02"],
  ["11/02/68", "mm/dd/yyyy", "2068-11-02"],
  ["69-11-2", "yyyy/mm/dd", "1969-11-02"],
  ["1.1.00", "dd/mm/yyyy", "2000-01-01"],
  ["1.1.0026", "dd/mm/yyyy", "0026-01-01"],
])("a year of two digits lies between 1969 and 2068: %s as %s is %s", async (due, order, day) => {
  expect(await prompt(`{{ due | date: "%Y-%m-%d", "${order}" }}`, { due })).toBe(day);
});

test.each([
  ["02/11/026", "dd/mm/yyyy"],
  ["2/11/6", "mm/dd/yyyy"],
  ["126-11-02", "yyyy/mm/dd"],
])("a year of one or three digits is a problem: %s as %s", async (due, order) => {
  const { problems } = await sheet(`id,prompt,due\na,"{{ due | date: '%Y', '${order}' }}",${due}\n`);
  expect(problems).toMatchObject([{ expected: "a year of two or four digits", got: due }]);
});

test("a fault in the text of a cell that a template names is a problem of that cell", async () => {
  const { problems } = await sheet("id,prompt,product\na,A {{ product }},50% {% off %}\n");
  expect(problems).toMatchObject([
    { place: { row: 2, column: "product" }, message: 'unknown template tag "off"' },
  ]);
});

test("an empty cell is empty, also in a column with the name of a built-in variable", async () => {
  const { rows } = await sheet(
    "prompt,row,index\nseat {{ row }}-{{ index }},A,4\nseat {{ row }}-{{ index }},,\n",
  );
  expect(rows.map(({ prompt }) => prompt)).toEqual(["seat A-4", "seat -"]);
});

test.each([
  '{% if note == "" %}none{% endif %}',
  '{% if note != "" %}some{% else %}none{% endif %}',
  '{% if "" == note and note == empty and note == blank and note == nil %}none{% endif %}',
  '{% unless note_{{lang}} != "" %}none{% endunless %}',
  '{% case note %}{% when "" %}none{% else %}some{% endcase %}',
  '{% if note == "x" or id == "" %}some{% else %}none{% endif %}',
])("an empty cell of a sheet equals an empty text: %s", async (template) => {
  const { rows, problems } = await sheet(
    `id,prompt,note,note_en,lang\na,"${template.replaceAll('"', '""')}",,,en\n`,
  );
  expect(problems).toEqual([]);
  expect(rows[0]?.prompt).toBe("none");
});

test("in a step, a param is the one that is sent, and the prompt is the row's", async () => {
  const job = JSON.stringify({
    steps: [
      {
        name: "clip",
        prompt: "{{ prompt }} at {{ params.ratio }}",
        params: { ratio: "16:9" },
        output: "{{ params.ratio }}",
      },
    ],
    rows: [{ id: "a", prompt: "a cup", params: { ratio: "1:1" } }],
  });
  const { rows } = await readManifest(await fileWith("job.json", job), { today });
  expect(rows).toMatchObject([{ prompt: "a cup at 16:9", output: "16:9", params: { ratio: "16:9" } }]);
});

test("a param may be named without params., where no column and no variable has its name", async () => {
  const { rows, problems } = await sheet(
    "id,prompt,colour,params.style,params.colour\n" +
      'a,"a {{ style }} cup, {{ colour }}",red,sepia,dark\n' +
      "b,\"{% if style == 'sepia' %}old{% else %}new{% endif %} {{ style | upcase }}\",blue,plain,dark\n",
  );
  expect(problems).toEqual([]);
  expect(rows.map(({ prompt }) => prompt)).toEqual(["a sepia cup, red", "new PLAIN"]);
});

describe("a template that cannot be rendered is a problem with its place", () => {
  test("an unknown name, with the nearest one; a name in the job's own text once, however many rows use it", async () => {
    const path = await fileWith(
      "job.json",
      '{"prompt": "{{ produkt }}",\n"rows": [{"product": "a"}, {"product": "b"}]}',
    );
    expect((await readManifest(path)).problems).toMatchObject([
      {
        place: { file: path, row: null, column: "prompt", line: 1, lineColumn: 12 },
        message: 'the template names "produkt", which is neither a column nor a variable',
        got: "produkt",
        nearest: "product",
      },
    ]);
  });

  test.each<[string, string, object]>([
    ["a name in a cell", "{{ colr }}", { nearest: "colour" }],
    ["a param without params.", "{{ stile }}", { got: "stile", nearest: "params.style" }],
    ["a parameter that no column has", "{{ params.styl }}", { got: "params.styl", nearest: "params.style" }],
    [
      "a filter that is not there",
      "{{ colour | slugg }}",
      { message: 'unknown template filter "slugg"', nearest: "slug" },
    ],
    ["a tag that reads files", "{% include 'x' %}", { message: 'unknown template tag "include"' }],
    ["a loop", "{% for i in (1..9) %}{% endfor %}", { message: 'unknown template tag "for"' }],
    [
      "quotes that a spreadsheet has curved",
      "“a” {{ colour | default: “cup” }}",
      { message: "the template has curved quotes", got: "“cup”" },
    ],
    [
      "quotes of a condition that a spreadsheet has curved",
      "{% if colour == ‘blue’ %}x{% endif %}",
      { message: "the template has curved quotes", got: "‘blue’" },
    ],
    ["braces that do not close", "a {{ colour", { message: "the template cannot be rendered" }],
    [
      "a date that is none",
      '{{ colour | date: "%Y" }}',
      { message: "the date filter needs a valid date", got: "blue" },
    ],
    ["the clock", '{{ "now" | date: "%Y" }}', { got: "now" }],
    ["a width that is none", "{{ colour | pad: 1000000 }}", { got: "1000000" }],
    ["a column that a value names", "{{ prompt_{{colour}} }}", { got: "prompt_blue" }],
    [
      "itself",
      "{{ prompt }}",
      { message: "the templates refer to each other in a circle", got: "prompt → prompt" },
    ],
    [
      "a condition for which FALSE would be true",
      "a cup{% if sale %} with a SALE sign{% endif %}",
      {
        message: "the template has a condition on sale, for which any text counts as true",
        expected: 'an empty text, or a comparison such as {% if sale != "FALSE" %}',
        got: "FALSE",
      },
    ],
    ["a condition of several values", "{%- unless colour and sale -%}x{% endunless %}", { got: "FALSE" }],
    ["a condition on a param", "{% if colour == 'red' or params.hd %}x{% endif %}", { got: "no" }],
    [
      "a way to what the program is",
      "{{ colour.constructor }}",
      { message: expect.stringContaining("colour.constructor") },
    ],
    [
      "a text that doubles without end",
      `{% assign x = "aaaaaaaaaa" %}${"{% assign x = x | append: x %}".repeat(40)}{{ x }}`,
      { message: "the rendered text is too long" },
    ],
  ])("%s", async (_name, template, problem) => {
    const cell = `"${template.replaceAll('"', '""')}"`;
    const { problems, rows } = await sheet(
      `id,prompt,colour,params.style,sale,params.hd\na,${cell},blue,x,FALSE,no\nb,fine,red,y,,\n`,
    );
    expect(problems).toMatchObject([{ place: { row: 2, id: "a", column: "prompt" }, ...problem }]);
    expect(rows.map(({ id }) => id)).toEqual(["b"]);
  });

  test("of one combination alone, with its values", async () => {
    const text =
      '{"rows": [{"id": "a", "text_en": "x"}], "matrix": {"lang": ["en", "fr"]}, "prompt": "{{ text_{{lang}} }}"}';
    const { problems, rows } = await readManifest(await fileWith("job.json", text));
    expect(rows.map(({ id }) => id)).toEqual(["a-en"]);
    expect(problems).toMatchObject([
      {
        place: { row: 1, id: "a", combination: "lang=fr", column: "prompt" },
        got: "text_fr",
        nearest: "text_en",
      },
    ]);
  });
});

describe("prompt files", () => {
  test("are read from the manifest's folder, are templates, and may be named by one", async () => {
    const folder = await folderWith({
      "job.yaml": 'rows: [{ product: Mug }]\nmatrix: { lang: [en, de] }\nprompt: "@prompts/{{ lang }}.txt"\n',
      "prompts/en.txt": "A {{ product }}\nat dawn\n",
      "prompts/de.txt": "Ein {{ product }}",
    });
    const { rows, problems } = await readManifest(`${folder}/job.yaml`);
    expect(problems).toEqual([]);
    expect(rows.map(({ prompt }) => prompt)).toEqual(["A Mug\nat dawn", "Ein Mug"]);
  });

  test("of elsewhere, behind a link, or not there, are problems of their row", async () => {
    const outside = await fileWith("secret.txt", "secret");
    const folder = await folderWith({
      "set.csv": `id,prompt\na,@../secret.txt\nb,@${outside}\nc,@link.txt\nd,@none.txt\ne,@set.txt\nf,@handle by the sea\n`,
      "set.txt/x": "",
    });
    await symlink(outside, `${folder}/link.txt`);
    const { rows, problems } = await readManifest(`${folder}/set.csv`);
    expect(problems.map(({ place, message }) => [place.id, message.split(": ")[1]])).toEqual([
      ["a", "it lies outside the manifest's folder"],
      ["b", "it lies outside the manifest's folder"],
      ["c", "it lies outside the manifest's folder"],
      ["d", "there is no such file"],
      ["e", "it is not a file"],
    ]);
    expect(rows).toMatchObject([{ id: "f", prompt: "@handle by the sea" }]);
  });
});

test("a text without template marks comes out as it went in, whatever else is in it", async () => {
  const texts = fc.string({ unit: fc.constantFrom("{", "}", "%", "a", "'", "|", "\n", "é", "\\", "@") });
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      fc.pre(text.trim() !== "" && !text.includes("{{") && !text.includes("{%"));
      const rows = [
        { id: "a", prompt: text },
        { id: "b", prompt: "{{ id }}" },
      ];
      const manifest = await readManifest(await fileWith("job.json", JSON.stringify(rows)));
      expect(manifest.rows.map(({ prompt }) => prompt)).toEqual([text, "b"]);
    }),
    { numRuns: 60 },
  );
});

test("a rendered value that contains template marks is plain text where it is used", async () => {
  const values = fc.string({
    unit: fc.constantFrom("{{", "}}", "{%", "%}", "a", " ", "id", "|"),
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(values, async (value) => {
      const job = { vars: { x: value }, rows: [{ id: "a" }], prompt: "{{ x }}{{ id }}" };
      const manifest = await readManifest(await fileWith("job.json", JSON.stringify(job)));
      expect(manifest.rows.length + manifest.problems.length).toBeGreaterThan(0);
    }),
    { numRuns: 100 },
  );
});

describe("a look-up table", () => {
  const job = (prompt: string) =>
    fileWith(
      "job.json",
      JSON.stringify({ tables: { voice: { anna: "slt", ben: "kal" } }, prompt, rows: [{ speaker: "ben" }] }),
    );

  test("gives what it has for a value", async () => {
    const { rows } = await readManifest(await job('{{ speaker | lookup: "voice" }}'));
    expect(rows.map(({ prompt: made }) => made)).toEqual(["kal"]);
  });

  test("has texts, not templates", async () => {
    const path = await fileWith(
      "job.json",
      '{"rows": [{"id": "a"}], "prompt": "x",\n"tables": {"voice": {"anna": "{{ id }}", "ben": "{% raw %}"}}}',
    );
    expect((await readManifest(path)).problems).toMatchObject([
      { place: { column: "tables.voice.anna", line: 2 }, got: "{{ id }}" },
      { place: { column: "tables.voice.ben", line: 2 }, got: "{% raw %}" },
    ]);
  });

  test.each([
    ['{{ "bem" | lookup: "voice" }}', "the table voice has no entry for this value", "ben"],
    [
      '{{ speaker | lookup: "voce" }}',
      'the lookup filter needs a table of the job, and there is no table "voce"',
      "voice",
    ],
  ])("says what it lacks: %s", async (text, message, nearest) => {
    const { problems } = await readManifest(await job(text));
    expect(problems).toMatchObject([{ message, nearest }]);
  });
});

test("the number of an item counts what is made, through all combinations", async () => {
  const job = {
    rows: [{ id: "a" }, { id: "b", when: "no" }, { id: "c" }],
    matrix: { lang: ["en", "de"] },
    prompt: "{{ number }}",
  };
  const { rows } = await readManifest(await fileWith("job.json", JSON.stringify(job)));
  expect(rows.map(({ prompt: made }) => made)).toEqual(["1", "2", "3", "4"]);
});

describe("docs/templates.md", () => {
  const page = readFileSync(new URL("../../../docs/templates.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| (.+?) \| `(\{\{.+?\}\})` \| (.+?) \|$/gm)].map(
    ([, names = "", template = "", gives = ""]) => ({
      names,
      template: template.replaceAll("\\|", "|"),
      gives,
    }),
  );
  const inTicks = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, name]) => name);

  test("lists every filter, tag and variable", () => {
    expect(rows.flatMap(({ names }) => inTicks(names)).toSorted()).toEqual(
      [...filterNames, "date"].toSorted(),
    );
    for (const tag of tagNames) expect(page, tag).toContain(`{% ${tag}`);
    for (const name of [...builtInNames, ...lateNames])
      expect(page, name).toMatch(new RegExp(`^\\| \`${name}\` \\|`, "m"));
  });

  test.each(rows.filter(({ gives }) => gives.startsWith("`")))(
    "$template gives $gives",
    async ({ template, gives }) => {
      const tables = { voice: { anna: "slt" } };
      const job = JSON.stringify({ tables, prompt: `x${template}`, rows: [{ id: "a" }] });
      const { rows: made, problems } = await readManifest(await fileWith("job.json", job), { today });
      expect(problems).toEqual([]);
      expect(made[0]?.prompt).toBe(`x${gives.slice(1, -1)}`);
    },
  );
});
