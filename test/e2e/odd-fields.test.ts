import { expect, test } from "vitest";
import { type Ended, newPlace, run } from "./command.js";
import { type Asked, me, models, type ScriptedService, startProxy, startService } from "./service.js";

/**
 * Every field of every record of the service, in every form that it should not have. One odd entry makes no command
 * useless, and nothing that was paid for is lost.
 */
const forms = [null, 2, "text", true, [], {}, [null], { a: 1 }, undefined];

type Fields = Record<string, unknown>;

/** The record once for each field and form; fields of the objects and of the first entries of the lists in it too. */
function spoilt(record: Fields): { field: string; form: unknown; record: Fields }[] {
  return Object.entries(record).flatMap(([field, value]) => {
    const whole = forms.map((form) => ({ field, form, record: { ...record, [field]: form } }));
    const [first, ...others] = Array.isArray(value) ? value : [value];
    if (typeof first !== "object" || first === null) return whole;
    const inside = spoilt(first as Fields).map((one) => ({
      field: `${field}.${one.field}`,
      form: one.form,
      record: { ...record, [field]: Array.isArray(value) ? [one.record, ...others] : one.record },
    }));
    return [...whole, ...inside];
  });
}

const plain = models.models[0] as Fields;

/** A service before which a proxy changes what it answers to `what`. */
async function changing(
  what: string,
  change: (record: Fields, asked: Asked) => unknown,
): Promise<{ service: ScriptedService; real: ScriptedService }> {
  const real = await startService({ balance: 10_000 });
  const service = await startProxy(
    real,
    () => "serve",
    (asked, passed) =>
      asked.what === what && passed.status === 200
        ? { ...passed, text: JSON.stringify(change(JSON.parse(passed.text) as Fields, asked)) }
        : passed,
  );
  return { service, real };
}

const isRight = ({ code, stderr }: Ended) => {
  expect([1, 4], stderr).not.toContain(code);
  expect(stderr).not.toMatch(/undefined|NaN|\[object|TypeError/);
};

test("a catalogue with every odd entry serves plan, run, models, redo and doctor; each odd entry is named or read", async () => {
  const odd = spoilt(plain).map(({ record }, at) => ({
    ...record,
    ...("model_key" in record && record["model_key"] === plain["model_key"]
      ? { model_key: `odd-${at}` }
      : {}),
  }));
  const { service, real } = await changing("GET models", (list) => ({
    ...list,
    models: [plain, null, 7, "text", [], ...odd],
  }));
  const place = newPlace();
  place.write("a.csv", "id,model,prompt,params.aspect_ratio\na,plain-image,a cup,16:9\n");
  for (const command of [
    ["plan", "a.csv"],
    ["run", "a.csv", "--yes"],
    ["models"],
    ["models", "--json"],
    ["redo", "a", "--yes"],
    ["doctor"],
  ]) {
    const end = await run(place, command, service);
    isRight(end);
    expect(end.code, `${command.join(" ")}: ${end.stderr}${end.stdout}`).toBe(0);
  }
  expect(real.made.length).toBe(2);
  const { stderr } = await run(place, ["plan", "a.csv"], service);
  expect(stderr).toMatch(
    /GET \/api\/v1\/models: not understood: models\[1\]: model_key is absent: the model is left out; .* and \d+ more/,
  );
  const doctor = await run(place, ["doctor"], service);
  expect(doctor.stdout + doctor.stderr).toContain("not understood: models[1]: model_key is absent");
});

test.each([
  ["a default that is null", { default: null }],
  ["a default that is a number", { default: 1 }],
  ["options that are plain strings", { options: ["1:1", "16:9"] }],
  ["options that are numbers", { options: [1, 2] }],
  ["options as labels by value", { options: { "1:1": "Square", "16:9": "Wide" } }],
  ["options of which some are odd", { options: [null, { value: "16:9" }, { label: "x" }] }],
  ["no options", { options: null }],
  ["no label and no type", { label: null, type: null }],
])("a row of a model whose param has %s is planned and made with its value", async (_, change) => {
  const [param] = plain["parameters"] as [Fields];
  const { service, real } = await changing("GET models", (list) => ({
    ...list,
    models: [{ ...plain, parameters: [{ ...param, ...change }] }],
  }));
  const place = newPlace();
  const value = JSON.stringify(change).includes("[1,2]") ? "2" : "16:9";
  place.write("a.csv", `id,model,prompt,params.aspect_ratio\na,plain-image,a cup,${value}\n`);
  const end = await run(place, ["run", "a.csv", "--yes"], service);
  expect(end.code, end.stderr + end.stdout).toBe(0);
  expect(real.made[0]?.body).toMatchObject({ params: { aspect_ratio: value } });
});

test.each([
  ["no models", {}],
  ["models that are null", { models: null }],
  ["models that are an object", { models: {} }],
  ["a list alone", []],
])("an answer with %s is not the service's list of models", async (_, body) => {
  const { service } = await changing("GET models", () => body);
  const place = newPlace();
  place.write("a.csv", "id,model,prompt\na,plain-image,a cup\n");
  const end = await run(place, ["plan", "a.csv"], service);
  expect(end.code).toBe(4);
  expect(end.stderr).toContain("GET /api/v1/models: expected the documented record");
});

test("the list of models in {success, data}, after a byte order mark, and its price as text are read", async () => {
  const { service } = await changing("GET models", (list) => ({
    success: true,
    data: { ...list, models: [{ ...plain, credits_cost: "12" }] },
  }));
  const place = newPlace();
  place.write("a.csv", "id,model,prompt\na,plain-image,a cup\n");
  const end = await run(place, ["plan", "a.csv"], service);
  expect(end.code, end.stderr).toBe(0);
  expect(end.stdout).toMatch(/plain-image .* 12\b/);
});

test("whatever field of the account is odd, plan, account and doctor end with what they know", async () => {
  const records = spoilt(me({ balance: 100 }));
  let at = 0;
  const { service } = await changing("GET me", () => records[at]?.record);
  for (; at < records.length; at++) {
    const { field, form } = records[at] ?? {};
    const place = newPlace();
    place.write("a.csv", "id,model,prompt\na,plain-image,a cup\n");
    const command = [["plan", "a.csv"], ["account"], ["doctor"]][at % 3] ?? [];
    const end = await run(place, command, service);
    const where = `${command.join(" ")}: ${field} is ${JSON.stringify(form)}: ${end.stderr}${end.stdout}`;
    expect([1, 4], where).not.toContain(end.code);
    expect(end.stdout + end.stderr, where).not.toMatch(/undefined|NaN|\[object|TypeError/);
  }
});

const row = (at: number) => `r${at},plain-image,number ${at}`;
const at = (asked: { body: Fields } | undefined) =>
  Number(String(asked?.body["prompt"]).replace("number ", ""));

test("whatever field of the answer to a paid request is odd, a readable task id is kept and collected", async () => {
  const record = {
    task_id: "t",
    external_task_id: "x",
    status: "processing",
    model: "plain-image",
    category: "image",
    credits_consumed: 2,
    credits_remaining: 90,
  };
  const odd = spoilt(record);
  const { service, real } = await changing("POST generate", (answer, { body }) => {
    const { field, form } = odd[at({ body: JSON.parse(body) as Fields })] ?? {};
    return { ...answer, [field ?? ""]: form };
  });
  const place = newPlace();
  place.write("a.csv", ["id,model,prompt", ...odd.map((_, index) => row(index))].join("\n"));
  const end = await run(place, ["run", "a.csv", "--yes", "--lanes", "1", "--max-unsettled", "100"], service);
  isRight(end);
  expect(real.made.length).toBe(odd.length);
  const { stdout } = await run(place, ["export", "--columns", "id,state"], service);
  const states = new Map(
    stdout
      .trim()
      .split(/\r?\n/)
      .map((line) => line.split(",") as [string, string]),
  );
  for (const [index, { field, form }] of odd.entries()) {
    // The service knows no task of that id, but it was told, and so is polled.
    const isOther = field === "task_id" && (form === "text" || form === 2);
    const state = isOther ? /overdue/ : field === "task_id" ? /held|unknown/ : /archived/;
    expect(states.get(`r${index}`), `${field} is ${JSON.stringify(form)}`).toMatch(state);
  }
});

test("whatever field of a finished task is odd, its item is archived or held, and never paid for again", async () => {
  const odd = spoilt({
    model: "",
    category: "",
    status: "",
    input: {},
    output_urls: [],
    error: null,
    credits_consumed: 2,
    created_at: "",
    completed_at: "",
  });
  const { service, real } = await changing("GET task", (task) => {
    const { field, form } = odd[at({ body: task["input"] as Fields })] ?? {};
    return { ...task, [field ?? ""]: form };
  });
  const place = newPlace();
  place.write("a.csv", ["id,model,prompt", ...odd.map((_, index) => row(index))].join("\n"));
  const end = await run(place, ["run", "a.csv", "--yes"], service);
  isRight(end);
  expect(end.code).toBe(10);
  const { stdout } = await run(place, ["export", "--columns", "id,state,reason"], service);
  const lines = stdout.trim().split(/\r?\n/).slice(1);
  for (const [index, { field, form }] of odd.entries()) {
    const state = lines[index]?.split(",")[1];
    expect([field, form, state]).toEqual([field, form, field === "output_urls" ? "held" : "archived"]);
  }
  expect(real.made.length).toBe(odd.length);
  const again = await run(place, ["run", "a.csv", "--yes"], service);
  expect(again.code).toBe(10);
  expect(real.made.length).toBe(odd.length);
});

const list = (answer: unknown) => [answer];
const text = (answer: unknown) => JSON.stringify(answer);
const inData = (answer: unknown) => ({ success: true, data: answer });
const onlyModels = (answer: unknown) => (answer as Fields)["models"];
const byKey = (answer: unknown) => ({
  models: Object.fromEntries(
    (onlyModels(answer) as Fields[]).map(({ model_key: key, ...model }) => [String(key), model]),
  ),
});
const outputs = (change: (urls: string[]) => Fields) => (answer: unknown) => {
  const { output_urls: urls, ...task } = answer as Fields & { output_urls: string[] };
  return { ...task, ...change(urls) };
};
const pathOf = (url: string) => new URL(url).pathname;

test.each<[string, string | null, (answer: unknown) => unknown]>([
  ["every answer in a list of one", null, list],
  ["every answer as JSON in a text", null, text],
  ["every answer in a list of one in data", null, (answer) => inData(list(answer))],
  ["every answer as a text in data", null, (answer) => inData(text(answer))],
  ["the models as a bare list", "GET models", onlyModels],
  ["the models as a bare list in data", "GET models", (answer) => inData(onlyModels(answer))],
  ["the models by their keys", "GET models", byKey],
  ["the addresses as paths", "GET task", outputs((urls) => ({ output_urls: urls.map(pathOf) }))],
  ["one address under output_url", "GET task", outputs(([url]) => ({ output_url: url }))],
  ["one path under output_url", "GET task", outputs(([url = ""]) => ({ output_url: pathOf(url) }))],
  ["the addresses as JSON in a text", "GET task", outputs((urls) => ({ output_urls: text(urls) }))],
])("%s are read, and what was paid for is archived", async (_, what, change) => {
  const real = await startService();
  const service = await startProxy(
    real,
    // A file's bytes do not pass through it.
    ({ what, path }) =>
      what === "GET file" ? { status: 307, headers: { location: `${real.url}${path}` } } : "serve",
    (asked, passed) =>
      passed.status === 200 && asked.what !== "GET file" && (what === null || asked.what === what)
        ? { ...passed, text: JSON.stringify(change(JSON.parse(passed.text))) }
        : passed,
  );
  const place = newPlace();
  place.write("a.csv", "id,model,prompt\na,plain-image,a cup\nb,plain-image,a jar\n");
  const end = await run(place, ["run", "a.csv", "--yes"], service);
  expect(end.code, end.stderr).toBe(0);
  expect(real.made).toHaveLength(2);
  expect(place.files().filter((name) => name.endsWith(".png"))).toHaveLength(2);
});
