import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { startService } from "./service.js";
import { unzip } from "./unzip.js";

const sheet = "id,model,prompt,params.seed\ncup,aurora-image,a cup,2\njar,aurora-image,a jar,\n";

/** A rehearsal of two pictures, one of them with a fixed seed. */
async function made(): Promise<Place> {
  const place = newPlace();
  place.write("set.csv", sheet);
  const first = await run(place, ["run", "set.csv", "--sandbox", "--yes"]);
  expect(first.code, first.stderr).toBe(0);
  return place;
}

const bytes = (place: Place, name: string) =>
  readFileSync(join(place.folder, "sandbox-outputs/set", name)).toString("base64");

test("a retake with other params or another prompt asks for those, and the export says what was made", async () => {
  const place = await made();
  const words = "redo cup --param seed=3 --param aspect_ratio=16:9 --sandbox --yes";
  const redone = await run(place, words.split(" "));
  expect(redone.code, redone.stderr).toBe(0);
  const worded = await run(place, [
    "redo",
    "cup",
    "--prompt",
    "a blue cup",
    "--param",
    "seed=",
    "--sandbox",
    "--yes",
  ]);
  expect(worded.code, worded.stderr).toBe(0);
  const columns = "item,prompt,seed,params.aspect_ratio";
  const sheetOf = await run(place, ["export", "--sandbox", "--columns", columns, "--filter", "id=cup*"]);
  expect(sheetOf.stdout.replace("\uFEFF", "").split("\r\n")).toEqual([
    columns,
    "cup,a cup,2,",
    "cup-v2,a cup,3,16:9",
    "cup-v3,a blue cup,,",
    "",
  ]);
  // The row is what it was.
  const again = await run(place, ["run", "set.csv", "--sandbox", "--yes"]);
  expect(again.stdout).toContain("all of them before, not paid again");
});

test("a param that the model does not take is refused before anything is submitted", async () => {
  const place = await made();
  const typo = await run(place, ["redo", "cup", "--param", "aspect_ratoi=16:9", "--sandbox", "--yes"]);
  expect(typo).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('cup: model aurora-image has no parameter "aspect_ratoi"'),
  });
  expect(typo.stderr).toContain('did you mean "aspect_ratio"? Nothing was changed.');
  const option = await run(place, ["redo", "cup", "--param", "aspect_ratio=16:10", "--sandbox", "--yes"]);
  expect(option).toMatchObject({ code: 2, stderr: expect.stringContaining('has no option "16:10"') });
});

test("the same again with a fixed seed is said before it is bought; without one the sandbox makes another picture", async () => {
  const place = await made();
  const same = await run(place, ["redo", "cup", "jar", "--sandbox", "--yes"]);
  expect(same.code, same.stderr).toBe(0);
  expect(same.stdout + same.stderr).toContain(
    "cup: the seed is fixed (2), so the same request probably makes the same file again; --param seed=N makes another",
  );
  expect(bytes(place, "cup-v2.png")).toBe(bytes(place, "cup.png"));
  expect(bytes(place, "jar-v2.png")).not.toBe(bytes(place, "jar.png"));
});

test("a retake whose params cost more is made only at the price that was agreed to", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  place.write("one.csv", "id,model,prompt\na,plain-image,a cup\n");
  await run(place, ["run", "one.csv", "--yes"], service);
  const options = [
    { value: "low", label: "Low" },
    { value: "high", label: "High", credits_cost: 12 },
  ];
  const models = [
    {
      model_key: "plain-image",
      model_name: "Plain",
      category: "image",
      credits_cost: 4,
      input_type: "text",
      parameters: [{ key: "quality", label: "Quality", type: "select", options }],
    },
  ];
  service.script(({ what }) =>
    what === "GET models" ? { json: { success: true, data: { models, count: 1 } } } : "serve",
  );
  const dear = await run(place, ["redo", "a", "--param", "quality=high", "--max-price", "5"], service);
  expect(dear).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      "the price is 12 credits, more than --max-price 5 allows. Nothing was submitted.",
    ),
  });
  const agreed = await run(place, ["redo", "a", "--param", "quality=high", "--max-price", "12"], service);
  expect(agreed.code, agreed.stderr).toBe(0);
  expect(service.made.map(({ body }) => body["params"])).toEqual([undefined, { quality: "high" }]);
});

test("a prompt that is meant for a sheet is refused, and the price is asked for what can be made alone", async () => {
  const place = await made();
  for (const [prompt, why] of [
    ["", "expected a prompt, got nothing"],
    ["{{ product }} at night", "without templates"],
    ["@prompts/night.txt", "not that of a file"],
  ] as const) {
    const refused = await run(place, ["redo", "cup", "--prompt", prompt, "--sandbox", "--yes"]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(why) });
  }
  const wrong = await run(place, ["redo", "cup", "--param", "seeed=3", "--sandbox", "--yes"]);
  expect(wrong.code).toBe(2);
  expect(wrong.stdout + wrong.stderr).not.toContain("to be made again");
  const good = await run(place, ["redo", "cup", "--prompt", "a cup at night", "--sandbox", "--yes"]);
  expect(good.stderr + good.stdout).toContain("the prompt: a cup at night");
  const same = await run(place, ["redo", "cup", "--param", "seed=2", "--sandbox", "--yes"]);
  expect(same.stderr + same.stdout).toContain("the seed is fixed (2)");
});

test("--filter selects from the job, whatever the newest run has made", async () => {
  const place = await made();
  expect((await run(place, ["redo", "cup", "--sandbox", "--yes"])).code).toBe(0);
  const other = await run(place, ["redo", "--filter", "id=jar", "--sandbox", "--yes"]);
  expect(other.code, other.stderr).toBe(0);
  const again = await run(place, ["redo", "--filter", "id=*", "--sandbox", "--yes"]);
  expect(again.code, again.stderr).toBe(0);
  const { stdout } = await run(place, ["export", "--sandbox", "--columns", "item"]);
  expect(stdout.replaceAll("\r", "").split("\n").slice(1, -1)).toEqual([
    "cup",
    "cup-v2",
    "cup-v3",
    "jar",
    "jar-v2",
    "jar-v3",
  ]);
});

test("a name may have the number of the take in it, which a final set keeps", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  place.write(
    "shots.yaml",
    'rows: [{ id: cup, prompt: a cup }]\ndefaults: { model: plain-image }\noutput: "shots/{{ id }}_take{{ take }}"\n',
  );
  const did = async (line: string) => {
    const end = await run(place, line.split(" "), service);
    expect(end.code, `${line}: ${end.stderr}`).toBe(0);
    return end.stdout;
  };
  await did("run shots.yaml --yes");
  await did("redo cup --yes");
  await did("redo cup-v2 --yes");
  const names = async () => (await did("export --columns file")).match(/shots\/[\w-]+\.png/g);
  const all = ["shots/cup_take1.png", "shots/cup_take2.png", "shots/cup_take3.png"];
  expect(await names()).toEqual(all);
  await did("pick cup-v2");
  await did("export --final --zip set.zip --files-only");
  expect([...unzip(join(place.folder, "set.zip")).keys()]).toEqual(["shots/cup_take2.png"]);
  // Neither another run nor a rebuilt database gives them other names.
  expect(await did("run shots.yaml --yes")).not.toContain("renamed");
  await did("doctor --rebuild --yes");
  expect(await did("plan shots.yaml")).not.toContain("renamed");
  await did("run shots.yaml --yes");
  expect(await names()).toEqual(all);
});
