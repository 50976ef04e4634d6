import { describe, expect, test } from "vitest";
import { fileWith, folderWith } from "./folder.js";
import { readManifest } from "./read.js";

const products = "id,product,prompt_en,prompt_de\nmug,Mug,a mug,ein Becher\nbowl,Bowl,a bowl,eine Schale\n";

/** The manifest of a YAML job beside a sheet of two products. */
async function job(text: string, options = {}) {
  const folder = await folderWith({ "job.yaml": text, "products.csv": products });
  return readManifest(`${folder}/job.yaml`, options);
}

describe("matrix and zip", () => {
  test("every row is made in every combination; the first key changes slowest; ids and names carry the values", async () => {
    const { rows, problems } = await job(`
rows: products.csv
output: shots/{{ product | slug }}/{{ lang }}
prompt: "{{ product }} in {{ lang }}"
matrix:
  lang: [en, de]
  params.aspect_ratio: ["1:1", "16:9"]
`);
    expect(problems).toMatchObject([]);
    expect(rows.map(({ id, prompt, params }) => [id, prompt, params["aspect_ratio"]])).toEqual([
      ["mug-en-1x1", "Mug in en", "1:1"],
      ["mug-en-16x9", "Mug in en", "16:9"],
      ["mug-de-1x1", "Mug in de", "1:1"],
      ["mug-de-16x9", "Mug in de", "16:9"],
      ["bowl-en-1x1", "Bowl in en", "1:1"],
      ["bowl-en-16x9", "Bowl in en", "16:9"],
      ["bowl-de-1x1", "Bowl in de", "1:1"],
      ["bowl-de-16x9", "Bowl in de", "16:9"],
    ]);
    expect(rows[0]).toMatchObject({
      output: "shots/mug/en",
      defaultParams: [],
      place: { row: 2, id: "mug-en-1x1", combination: "lang=en, aspect_ratio=1:1" },
      columns: { id: "mug", product: "Mug", prompt_en: "a mug", lang: "en", "params.aspect_ratio": "1:1" },
    });
  });

  test("the keys of a zip go together, and its first variable names the item", async () => {
    const { rows } = await job(`
rows: products.csv
prompt: a cup
zip:
  params: { aspect_ratio: ["1:1", "16:9"] }
  format: [square, wide]
`);
    expect(rows.map(({ id, params }) => [id, params["aspect_ratio"]])).toEqual([
      ["mug-square", "1:1"],
      ["mug-wide", "16:9"],
      ["bowl-square", "1:1"],
      ["bowl-wide", "16:9"],
    ]);
  });

  test("a job without rows is made of its combinations alone; long values go by their number", async () => {
    const { rows } = await job(`
matrix:
  prompt: [a mug on a long table in the low sun, a bowl]
  model: [paint, draw]
`);
    expect(rows.map(({ id, prompt, model }) => [id, prompt?.slice(0, 5), model])).toEqual([
      ["1-paint", "a mug", "paint"],
      ["1-draw", "a mug", "draw"],
      ["2-paint", "a bow", "paint"],
      ["2-draw", "a bow", "draw"],
    ]);
  });

  test("plain outputs and ids get the combination's name; templates contain it themselves", async () => {
    const { rows } = await job(`
rows: [{ id: "{{ lang }}-cup", output: cups/blue.png }, { id: jug, output: "{{ lang }}/jug" }]
prompt: a cup
matrix: { lang: [en, de] }
`);
    expect(rows.map(({ id, output }) => [id, output])).toEqual([
      ["en-cup", "cups/blue-en"],
      ["de-cup", "cups/blue-de"],
      ["jug-en", "en/jug"],
      ["jug-de", "de/jug"],
    ]);
  });

  test("a column whose name ends with a value of the matrix is named with it", async () => {
    const text = `rows: products.csv\nmatrix: { lang: [en, de] }\nprompt: "{{ prompt_{{lang}} }}!"`;
    const { rows, notes } = await job(text);
    expect(rows.map(({ prompt }) => prompt)).toEqual(["a mug!", "ein Becher!", "a bowl!", "eine Schale!"]);
    expect(notes.join()).not.toContain("prompt_en");
  });

  test.each<[string, string, object]>([
    [
      "lists of a zip that are not equally long",
      "zip: { a: [x, y], b: [z] }",
      { place: { row: null, column: "zip.b", line: 2 }, expected: "2 values, as in a", got: "1" },
    ],
    [
      "a key in both",
      "matrix: { a: [x] }\nzip: { a: [y] }",
      { place: { line: 3 }, message: "a cannot be varied: it is listed twice" },
    ],
    [
      "a key that names the item",
      "matrix: { id: [x] }",
      { message: "id cannot be varied: it names the item" },
    ],
    [
      "an empty list",
      "matrix: { lang: [] }",
      { expected: "a list of at least one value", got: "an empty list" },
    ],
    ["a value for a list", "matrix: { lang: en }", { expected: "a list of values", got: '"en"' }],
    [
      "lists below a name other than params",
      "zip: { look: { style: [x] } }",
      { place: { column: "zip.look", line: 2 }, expected: "a list of values" },
    ],
    [
      "a list of params",
      "matrix: { params: [x] }",
      { place: { column: "matrix.params" }, expected: "an object with a list of values for each parameter" },
    ],
    [
      "a list within a list",
      "matrix: { lang: [[en]] }",
      { place: { column: "matrix.lang.0" }, got: "a list of 1" },
    ],
  ])("%s: a problem with its place", async (_name, text, problem) => {
    const { problems } = await job(`rows: [{ id: a, prompt: p }]\n${text}\n`);
    expect(problems).toMatchObject([problem]);
  });

  test("a row that says what the matrix sets is a problem of that row, once", async () => {
    const { problems } = await job("rows: [{ id: a, model: m }, { id: b }]\nmatrix: { model: [x, y] }\n");
    expect(problems).toMatchObject([
      { place: { row: 1, id: "a", column: "model", line: 1 }, message: expect.stringContaining("matrix") },
    ]);
  });

  test("a key that nothing uses is noted: each of its values is paid for the same thing", async () => {
    const { notes } = await job(
      "rows: [{ prompt: a cup }]\nmatrix: { lang: [en, de] }\nvars: { brand: K }\n",
    );
    expect(notes).toEqual([
      "nothing uses lang, so each of its 2 values makes the same thing",
      'the variable "brand" is not used',
    ]);
    const single = await job("rows: [{ prompt: a cup }]\nmatrix: { lang: [en] }\n");
    expect(single.notes).toEqual(["nothing uses lang"]);
  });
});

describe("steps", () => {
  const steps = `
rows: [{ id: mug, product: Mug, params: { voice: clara } }]
defaults: { prompt: not used }
steps:
  - name: picture
    model: paint
    prompt: "{{ product }}"
    matrix: { params.aspect_ratio: ["1:1", "16:9"] }
  - name: voice
    model: voice
    prompt: This is the {{ product }}.
`;

  test("a row gives an item for each step; a step can add to the row and have its own matrix", async () => {
    const { rows, problems } = await job(steps);
    expect(problems).toEqual([]);
    expect(rows.map(({ id, model, prompt }) => [id, model, prompt])).toEqual([
      ["mug-picture-1x1", "paint", "Mug"],
      ["mug-picture-16x9", "paint", "Mug"],
      ["mug-voice", "voice", "This is the Mug."],
    ]);
  });

  test("what the row says for one model is not meant for the other", async () => {
    const { rows } = await job(steps);
    expect(rows[0]?.defaultParams).toContain("voice");
  });

  test("two steps of one name are a problem", async () => {
    const { problems } = await job("prompt: p\nsteps: [{ name: a }, { name: A }]\n");
    expect(problems).toMatchObject([
      { place: { column: "steps", line: 2 }, message: 'two steps are named "A"' },
    ]);
  });
});

describe("the bound on what a job multiplies", () => {
  const large = (count: number) => `[${Array.from({ length: count }, (_, n) => n).join(", ")}]`;

  test("is reported before anything is expanded, with the factors", async () => {
    const axes = ["a", "b", "c", "d"].map((key) => `  ${key}: ${large(1_000)}`).join("\n");
    const { rows, problems } = await job(
      `prompt: "{{a}}{{b}}{{c}}{{d}}"\nrows: products.csv\nmatrix:\n${axes}\n`,
    );
    expect(rows).toEqual([]);
    expect(problems).toMatchObject([
      {
        message:
          "the manifest asks for 2000000000000 items (2 rows × 1000 of a × 1000 of b × 1000 of c × 1000 of d)",
        expected: "at most 100000, or --max-items with a higher number",
      },
    ]);
  });

  test("counts repeats, and is moved by --max-items", async () => {
    const text = "rows: products.csv\nprompt: p\nrepeat: 3\n";
    expect((await job(text, { itemsMax: 5 })).problems).toMatchObject([{ got: "6" }]);
    expect((await job(text, { itemsMax: 6 })).problems).toEqual([]);
    const steps =
      "rows: [{ id: a, prompt: p }, { id: b, repeat: 4 }]\nprompt: p\nsteps:\n  - { name: draft, repeat: 3 }\n  - { name: final }\n";
    expect((await job(steps, { itemsMax: 10 })).problems).toMatchObject([{ got: "11" }]);
    const { rows, problems } = await job(steps, { itemsMax: 11 });
    expect(problems).toEqual([]);
    expect(rows.map(({ repeat }) => repeat)).toEqual([3, 1, 3, 4]);
  });

  test("is not for plain rows: a sheet may have any number", async () => {
    expect((await job("rows: products.csv\nprompt: p\n", { itemsMax: 1 })).problems).toEqual([]);
  });
});

test("what is set at the top of the job and in its defaults is a problem", async () => {
  const { problems } = await job("rows: products.csv\nprompt: p\ndefaults: { prompt: q }\n");
  expect(problems).toMatchObject([{ place: { row: null, column: "prompt", line: 2 }, got: "both" }]);
});

test("a row's own prompt and output come before the job's, and the job's repeat holds for all", async () => {
  const { rows } = await job("rows: [{ prompt: own }, { output: own }]\nprompt: p\noutput: o\nrepeat: 2\n");
  expect(rows).toMatchObject([
    { prompt: "own", output: "o", repeat: 2 },
    { prompt: "p", output: "own", repeat: 2 },
  ]);
});

test("rows of a job in a file that is itself a job are refused", async () => {
  const folder = await folderWith({ "a.yaml": "rows: b.yaml", "b.yaml": "prompt: p" });
  expect((await readManifest(`${folder}/a.yaml`)).problems).toMatchObject([
    { place: { file: `${folder}/b.yaml` }, message: "the rows' file is itself a job file" },
  ]);
});

describe("when", () => {
  const texts = "id,headline_en,headline_de,shown\nmug,Mugs,,\nbowl,Bowls,Schalen,no\njug,Jugs,Kannen,yes\n";
  const made = async (text: string) => {
    const folder = await folderWith({ "job.yaml": text, "products.csv": texts });
    return readManifest(`${folder}/job.yaml`);
  };
  const ids = async (text: string) => (await made(text)).rows.map(({ id }) => id);

  test("on a job leaves out the combinations for which it is empty, and says how many", async () => {
    const { rows, problems, notes } = await made(`
rows: products.csv
matrix: { lang: [en, de] }
when: "{{ headline_{{lang}} }}"
prompt: 'headline "{{ headline_{{lang}} }}"'
`);
    expect(problems).toEqual([]);
    expect(rows.map(({ id }) => id)).toEqual(["mug-en", "bowl-en", "bowl-de", "jug-en", "jug-de"]);
    expect(notes).toContain("1 combination is left out by when");
    expect(notes.join()).not.toContain("is empty");
  });

  test("on a step and on a value of the matrix leaves out those; everything that applies must say yes", async () => {
    expect(
      await ids(`
rows: products.csv
matrix: { lang: [en, { value: de, when: "{{ headline_de }}" }] }
steps:
  - { name: picture, prompt: a picture }
  - { name: banner, when: "{% if shown == 'yes' %}1{% endif %}", prompt: a banner }
`),
    ).toEqual([
      "mug-en-picture",
      "bowl-en-picture",
      "bowl-de-picture",
      "jug-en-picture",
      "jug-en-banner",
      "jug-de-picture",
      "jug-de-banner",
    ]);
  });

  test("on a step leaves out the steps that use its output, too", async () => {
    expect(
      await ids(`
rows: products.csv
steps:
  - { name: film, image_url: "@frame" }
  - { name: frame, when: "{{ headline_de }}", prompt: a frame }
  - { name: voice, prompt: a voice }
  - { name: whole, video_url: "@film[2]", audio_url: "@voice" }
`),
    ).toEqual([
      "mug-voice",
      "bowl-film",
      "bowl-frame",
      "bowl-voice",
      "bowl-whole",
      "jug-film",
      "jug-frame",
      "jug-voice",
      "jug-whole",
    ]);
  });

  test.each(["no", "FALSE", " 0 "])("as a column leaves out the rows in which it says %j", async (word) => {
    const folder = await folderWith({ "s.csv": `id,prompt,when\na,x,${word}\nb,x,yes\nc,x,\n` });
    const { rows, notes } = await readManifest(`${folder}/s.csv`);
    expect(rows.map(({ id }) => id)).toEqual(["b", "c"]);
    expect(notes).toContain("1 row is left out by when");
  });

  test.each([
    "00",
    "-0",
    "0.00",
    "0,0",
    ".0",
    "+0.",
    "0,000.00",
    "0 %",
    "0.00E+00",
    "\u22120",
    "0,00 €",
    "$0",
    "-$0.00",
    "¥ 0",
  ])("takes the zero %j for no", async (zero) => {
    const job = JSON.stringify({ rows: [{ id: "a", when: zero }, { id: "b" }], prompt: "x" });
    expect((await readManifest(await fileWith("job.json", job))).rows.map(({ id }) => id)).toEqual(["b"]);
  });

  test.each(["0.01", "10", "-", "0 left", ".", "€", "1 €"])("does not take %j for no", async (word) => {
    const job = JSON.stringify({ rows: [{ id: "a", when: word }], prompt: "x" });
    expect((await readManifest(await fileWith("job.json", job))).rows).toHaveLength(1);
  });

  test("notes a word that counts as yes and was probably meant as no", async () => {
    const folder = await folderWith({
      "s.csv": "id,prompt,when\na,x,nein\nb,x,N/A\nc,x,yes\nd,x,-\ne,x,nein\n",
    });
    const { notes, rows } = await readManifest(`${folder}/s.csv`);
    expect(rows).toHaveLength(5);
    expect(notes).toContain(
      'when says "nein", "N/A", "-" in rows 2, 3, 5 and 6, which counts as yes; to leave such rows out, write no',
    );
  });

  test("does not leave out everything where another row has a problem", async () => {
    const folder = await folderWith({
      "job.yaml": `rows: s.csv\nwhen: "{{ date }}"\nprompt: "{{ date | date: '%Y' }}"\n`,
      "s.csv": "id,date\na,\nb,soon\n",
    });
    const { problems } = await readManifest(`${folder}/job.yaml`);
    expect(problems).toMatchObject([{ message: "the date filter needs a valid date", got: "soon" }]);
    expect(problems).toHaveLength(1);
  });

  test("that leaves out everything is told", async () => {
    const { problems } = await made("{ rows: products.csv, when: '0', prompt: x }");
    expect(problems).toMatchObject([{ message: "when leaves out everything", got: "3 left out" }]);
  });

  test("with a fault in it is told once, where it stands", async () => {
    const { problems, rows } = await made('rows: products.csv\nwhen: "{{ headlin_en }}"\nprompt: x\n');
    expect(rows).toEqual([]);
    expect(problems).toMatchObject([
      { place: { row: null, column: "when", line: 2 }, nearest: "headline_en" },
    ]);
  });
});

describe("a column that a template uses is empty in some rows", () => {
  const notesOf = async (prompt: string, more: object = {}) => {
    const cups =
      "id,tone,kind,tone_en,Head EN,again\na,,x,,,{{ tone }}\nb,warm,x,warm,H,{{ tone }}\nc,,x,,,{{ tone }}\n";
    const job = {
      rows: "cups.csv",
      matrix: { lang: ["en"] },
      prompt,
      output: "{{ tone }}/{{ id }}",
      ...more,
    };
    const folder = await folderWith({ "job.json": JSON.stringify(job), "cups.csv": cups });
    const { notes, problems } = await readManifest(`${folder}/job.json`);
    expect(problems).toEqual([]);
    return notes.filter((note) => note.includes("is empty"));
  };
  const note = (column: string, name = column) =>
    `"${column}" is empty in rows 2 and 4, and a template uses it; when: "{{ ${name} }}" leaves such rows out`;
  const inBranch = (kind: string) =>
    `{% case kind %}{% when "${kind}" %}{{ tone }}{% else %}plain{% endcase %}`;

  test.each([
    "a {{ tone }} cup",
    "a {{ tone | upcase }} cup {{ tone }}",
    "a {{ tone | upcase }} cup",
    `{{ tone | replace: "warm", "2026-04-05" | date: "%Y" }}`,
    '{{ "a " | append: tone }}',
    "a {% echo tone | upcase %} cup",
    "{% if kind == 'x' and tone != 'red' %}a {{ tone }} cup{% endif %}",
    "{% capture line %}a {{ tone }} cup{% endcapture %}{{ line }}",
    inBranch("x"),
  ])("the plan names them where it is put out: %s", async (prompt) => {
    expect(await notesOf(prompt)).toEqual([note("tone")]);
  });

  test("also by a name made of values, and by the cell of another column", async () => {
    expect(await notesOf("a {{ tone_{{lang}} | upcase }} cup")).toEqual([note("tone_en")]);
    expect(await notesOf("a {{ head_{{lang}} }} cup")).toEqual([note("Head EN", "head_en")]);
    expect(await notesOf("a {{ tone | upcase }} {{ again | upcase }} {{ head_en }}")).toEqual([
      note("tone"),
      note("Head EN", "head_en"),
    ]);
  });

  test.each([
    inBranch("other"),
    "{% if tone %}a {{ tone }} cup{% endif %}",
    "{% if tone_{{lang}} %}a {{ tone_{{lang}} }} cup{% endif %}",
    '{% if head_{{lang}} != "" %}a {{ head_{{lang}} | upcase }} cup{% endif %}',
    "{% unless tone == blank %}a {{ tone }} cup{% endunless %}",
    '{{ tone | default: "plain" }}',
    '{{ tone | upcase | default: "plain" }}',
    '{{ tone_{{lang}} | default: "plain" }}',
    '{% echo tone | default: "plain" %}',
    "{% raw %}{{ tone }}{% endraw %}",
    "{{ kind }}",
  ])("the plan says nothing where that is asked for: %s", async (prompt) => {
    expect(await notesOf(prompt)).toEqual([]);
  });
});

test("a job names its rows by a column, and adds the combination", async () => {
  const skus = "sku,prompt\nK-1,a mug\nK-2,a bowl\n";
  const folder = await folderWith({
    "job.yaml": 'rows: skus.csv\nid: "{{ sku }}"\nsteps: [{ name: a }, { name: b, image_url: "@a" }]\n',
    "axes.yaml": 'rows: skus.csv\nid: "{{ sku }}_{{ lang }}"\nmatrix: { lang: [en, de] }\n',
    "skus.csv": skus,
  });
  const idsIn = async (file: string) => (await readManifest(`${folder}/${file}`)).rows.map(({ id }) => id);
  expect(await idsIn("job.yaml")).toEqual(["K-1-a", "K-1-b", "K-2-a", "K-2-b"]);
  expect(await idsIn("axes.yaml")).toEqual(["K-1_en", "K-1_de", "K-2_en", "K-2_de"]);
});
