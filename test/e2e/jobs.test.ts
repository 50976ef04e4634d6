import { join } from "node:path";
import { expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { newPlace, run } from "./command.js";
import { startService } from "./service.js";

const job = `
name: shots
rows: products.csv
defaults: { model: plain-image }
matrix:
  lang: [en, de]
  params.aspect_ratio: ["1:1", "16:9"]
prompt: "{{ product }}: {{ text_{{lang}} }}"
`;
const products = "\ufeffID;Product;text_en;text_de\r\nmug;Mug;blue;blau\r\nbowl;Bowl;red;rot\r\n";
const all = ["mug", "bowl"].flatMap((id) =>
  ["en", "de"].flatMap((lang) => ["1x1", "16x9"].map((ratio) => `${id}-${lang}-${ratio}`)),
);

test("a job makes every product in every combination, and a changed cell pays for its own alone", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  place.write("job.yaml", job);
  place.write("products.csv", products);
  const first = await run(place, ["run", "job.yaml", "--yes"], service);
  expect(first, first.stderr).toMatchObject({ code: 0 });
  expectArchived(join(place.folder, "outputs", "shots"), all);
  expect(service.made.map(({ prompt }) => prompt).toSorted()).toEqual(
    ["Bowl: red", "Bowl: rot", "Mug: blau", "Mug: blue"].flatMap((prompt) => [prompt, prompt]),
  );
  place.write("products.csv", products.replace("rot", "rotbraun"));
  const second = await run(place, ["run", "job.yaml", "--yes"], service);
  expect(second, second.stderr).toMatchObject({ code: 0 });
  expect(service.made.slice(8).map(({ prompt }) => prompt)).toEqual(["Bowl: rotbraun", "Bowl: rotbraun"]);
});

test("a changed name template renames the files of the archive automatically, and pays nothing", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  const named = (template: string) =>
    place.write("job.yaml", job.replace("prompt:", `output: "${template}"\nprompt:`));
  place.write("products.csv", products);
  named("{{ product }}-{{ lang }}-{{ params.aspect_ratio }}");
  await run(place, ["run", "job.yaml", "--yes"], service);
  const pictures = () =>
    place
      .files()
      .filter((file) => file.endsWith(".png"))
      .toSorted();
  const before = pictures();
  expect(before[0]).toBe("here/outputs/shots/Bowl-de-16x9.png");
  named("{{ lang }}/{{ product }}/{{ params.aspect_ratio }}");
  const plan = await run(place, ["plan", "job.yaml"], service);
  expect(plan.stdout).toContain("Mug-en-1:1 becomes en/Mug/1:1; its file is renamed at no cost");
  const again = await run(place, ["run", "job.yaml", "--yes"], service);
  expect(again, again.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(8);
  const after = before.map((file) => file.replace(/(\w+)-(\w+)-(\w+)\.png$/, "$2/$1/$3.png"));
  expect(pictures()).toEqual(after.toSorted());
  const verified = await run(place, ["verify", "--read-data"], service);
  expect(verified, verified.stdout).toMatchObject({ code: 0 });
});

test("a job from standard input is the same job, and its paths are relative to the current folder", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  place.write("products.csv", products);
  const made = await run(place, ["run", "-", "--yes"], { ...service, stdin: job });
  expect(made, made.stderr).toMatchObject({ code: 0 });
  expectArchived(join(place.folder, "outputs", "shots"), all);
  const again = await run(place, ["plan", "-", "--json"], { ...service, stdin: job });
  expect(JSON.parse(again.stdout)).toMatchObject({ file: "stdin", states: { archived: 8 } });
});

test("a mistake in a template is reported with line and column before any request is sent", async () => {
  const service = await startService();
  const place = newPlace();
  place.write("job.yaml", job.replace("{{ product }}", "{{ produkt }}"));
  place.write("products.csv", products);
  const end = await run(place, ["run", "job.yaml", "--yes"], service);
  expect(end).toMatchObject({ code: 2, stdout: "" });
  expect(end.stderr).toMatch(/^job\.yaml:8:9, column prompt: .*"produkt".*did you mean "Product"|"product"/);
  expect(service.asked).toEqual([]);
});
