import { describe, expect, test } from "vitest";
import { outputOf } from "../../src/core/identity.js";
import { credits } from "../../src/core/money.js";
import { openManifest } from "../../src/manifest/read.js";
import { fileWith } from "../manifest/folder.js";
import { kept, plan, planOf, type WholePlan } from "./account.js";

const job = (text: string, change = {}) =>
  fileWith("job.yaml", text).then(async (file) => plan(await openManifest(file), change));
const parentsOf = ({ items }: WholePlan) =>
  Object.fromEntries(
    items.map(({ rowId, parents = [] }) => [
      rowId,
      parents.map(({ field, key, output }) => {
        const parent = items.find((item) => item.key === key)?.rowId;
        return `${field} ${parent}[${output}]`;
      }),
    ]),
  );
const told = ({ problems }: WholePlan) =>
  problems.map(({ place, message }) => `${place.row} ${place.column}: ${message}`);
const keys = ({ items }: WholePlan) => Object.fromEntries(items.map(({ rowId, key }) => [rowId, key]));

const steps = `
rows:
  - { id: cup, thing: a cup }
  - { id: jug, thing: a jug }
steps:
  - { name: clip, model: animate, image_url: "@picture" }
  - { name: picture, model: paint, prompt: "{{ thing }}" }
  - { name: longer, model: extend, video_url: "@clip" }
`;

describe("a reference means", () => {
  test("a step of the same row, wherever it is listed; the whole chain is priced", async () => {
    const made = await job(steps);
    expect(told(made)).toEqual([]);
    expect(parentsOf(made)).toEqual({
      "cup-clip": ["image_url cup-picture[1]"],
      "cup-picture": [],
      "cup-longer": ["video_url cup-clip[1]"],
      "jug-clip": ["image_url jug-picture[1]"],
      "jug-picture": [],
      "jug-longer": ["video_url jug-clip[1]"],
    });
    expect(made.due).toBe(6);
    expect(made.money.needed).toBe(credits(2 * 54));
    expect(made.items[0]?.inputs).toEqual({ image_url: "@picture" });
  });

  test("the item of that id, in a plain sheet too, with the number of its output", async () => {
    const made = await planOf(
      "id,model,prompt,image_url\nb,animate,,@a[2]\na,paint,x,\nc,animate,,@ a \nd,animate,,@a[2]\n",
    );
    expect(told(made)).toEqual([]);
    expect(parentsOf(made)).toEqual({
      a: [],
      b: ["image_url a[2]"],
      c: ["image_url a[1]"],
      d: ["image_url a[2]"],
    });
    expect(made.notes).toEqual([
      "2 items take a later output of paint than the first: whether it exists shows only when it is made",
    ]);
  });

  test("the step of another row, in the same combination", async () => {
    const made = await job(`
rows:
  - { id: cup }
  - { id: jug }
matrix: { lang: [en, de] }
steps:
  - { name: picture, model: paint, prompt: "{{ id }} {{ lang }}" }
  - { name: clip, model: animate, image_url: "@cup.picture" }
`);
    expect(parentsOf(made)).toMatchObject({
      "cup-en-clip": ["image_url cup-en-picture[1]"],
      "jug-de-clip": ["image_url cup-de-picture[1]"],
    });
  });

  test("the same copy of a step that is repeated", async () => {
    const made = await job(`
rows: [{ id: cup }]
repeat: 2
steps:
  - { name: picture, model: paint, prompt: x }
  - { name: clip, model: animate, image_url: "@picture" }
`);
    expect(parentsOf(made)).toMatchObject({
      "cup-clip": ["image_url cup-picture[1]"],
      "cup-clip-2": ["image_url cup-picture-2[1]"],
    });
  });

  test("the item that a merged row stands for", async () => {
    const made = await planOf("id,model,prompt,image_url\na,paint,x,\nb,paint,x,\nc,animate,,@b\n", {
      duplicates: "merge",
    });
    expect(parentsOf(made)).toEqual({ a: [], c: ["image_url a[1]"] });
  });
});

describe("an item's key", () => {
  test("is made of its parents' keys, so a changed parent makes all that follows new", async () => {
    const before = keys(await job(steps));
    const after = keys(await job(steps.replace("a cup", "a bowl")));
    const changed = Object.keys(before).filter((id) => before[id] !== after[id]);
    expect(changed).toEqual(["cup-clip", "cup-picture", "cup-longer"]);
  });

  test("does not depend on names or on the order of the sheet", async () => {
    const before = keys(await job(steps));
    const moved = steps.replaceAll("picture", "photo").replace(/( {2}- \{ name: clip.*\n)(.*)/s, "$2$1");
    const after = keys(await job(moved));
    expect(after["jug-longer"]).toBe(before["jug-longer"]);
    expect(after["jug-photo"]).toBe(before["jug-picture"]);
  });

  test("differs by the number of the output", async () => {
    const made = await planOf("id,model,prompt,image_url\na,paint,x,\nb,animate,,@a[1]\nc,animate,,@a[2]\n");
    expect(new Set(Object.values(keys(made))).size).toBe(3);
    expect(outputOf({ key: "k1:a", output: 2 })).toBe("output 2 of k1:a");
  });

  test("names the row where it has no id, and steps are found without ids", async () => {
    const made = await job(`
rows: [{ thing: a cup }, { thing: a jug }]
steps:
  - { name: picture, model: paint, prompt: "{{ thing }}" }
  - { name: clip, model: animate, image_url: "@picture" }
`);
    expect(told(made)).toEqual([]);
    const [, first, , second] = made.items;
    expect(first?.rowId).toMatch(/^[0-9a-f]{10}$/);
    expect(first?.rowId).not.toBe(second?.rowId);
    expect(first?.name).toBe(`${first?.rowId}-clip`);
  });

  test("counts identical items that take the same output", async () => {
    const sheet = "id,model,prompt,image_url\na,paint,x,\nb,animate,,@a\nc,animate,,@a\n";
    const kept = await planOf(sheet);
    expect(kept.items.map(({ rowId, occurrence }) => [rowId, occurrence])).toEqual([
      ["a", 1],
      ["b", 1],
      ["c", 2],
    ]);
    expect(kept.warnings.map(({ message }) => message)).toEqual([
      "rows 3, 4 are identical; each is made and paid for (20 credits more than once; --duplicates merge avoids that)",
    ]);
    const merged = await planOf(sheet, { duplicates: "merge" });
    expect(merged.items.map(({ rowId }) => rowId)).toEqual(["a", "b"]);
    expect(merged.sheet.rows.map(({ keys: of }) => of)).toEqual([
      [merged.items[0]?.key],
      [merged.items[1]?.key],
      [merged.items[1]?.key],
    ]);
    expect(told(await planOf(sheet, { duplicates: "error" }))).toEqual([
      "4 image_url: the row is identical to row 3",
    ]);
  });
});

describe("what is known of earlier runs", () => {
  const existing = (made: WholePlan, state: "archived" | "blocked") =>
    made.items.map((item) => ({ ...item, state }));

  test("an unchanged chain is not paid again", async () => {
    const before = await job(steps);
    const again = await job(steps, { existing: existing(before, "archived") });
    expect(again.due).toBe(0);
    expect(again.money.needed).toBe(0);
  });

  test("a changed parent is told as the reason for what follows it", async () => {
    const before = await job(steps);
    const again = await job(steps.replace("a cup", "a bowl"), { existing: existing(before, "archived") });
    expect(again.due).toBe(3);
    expect(again.changed.map(({ rowId, fields }) => [rowId, fields.map(({ to }) => to)])).toEqual([
      ["cup-clip", ["the new @picture"]],
      ["cup-picture", ["a bowl"]],
      ["cup-longer", ["the new @clip"]],
    ]);
  });

  test("identical items keep their files when their rows change places", async () => {
    const rows = ["b,animate,,@a", "c,animate,,@a", "a,paint,x,"];
    const sheet = (lines: readonly string[]) => `id,model,prompt,image_url\n${lines.join("\n")}\n`;
    const before = await planOf(sheet(rows));
    const again = await planOf(sheet(rows.toReversed()), { existing: existing(before, "archived") });
    expect(again.due).toBe(0);
    expect(keys(again)).toEqual(keys(before));
  });
});

describe("P2: rows without ids that start with the same item", () => {
  const sheet = (...rows: string[]) => `
rows:
${rows.map((row) => `  - { thing: ${row.split(" ")[0]}, scene: ${row.split(" ")[1]} }`).join("\n")}
steps:
  - { name: picture, model: paint, prompt: "{{ thing }}" }
  - { name: clip, model: animate, prompt: "{{ scene }}", image_url: "@picture" }
`;
  const rows = ["cup night", "cup dawn", "jug noon", "cup dusk"];

  test.each([
    { change: "change places", now: ["cup dusk", "cup dawn", "jug noon", "cup night"], due: 0 },
    { change: "are fewer", now: ["cup dusk", "jug noon"], due: 0 },
    { change: "are fewer and one is new", now: ["cup rain", "cup dusk"], due: 1 },
    { change: "are repeated", now: ["cup night", "cup night", "cup dawn", "jug noon", "cup dusk"], due: 2 },
  ])("are paid for once, where they $change", async ({ now, due }) => {
    const before = await job(sheet(...rows));
    expect(before.due).toBe(8);
    expect((await job(sheet(...now), { existing: kept(before, "archived") })).due).toBe(due);
  });

  test("keep what was made if they are identical and one of them goes", async () => {
    const before = await job(sheet("cup night", "cup night", "cup dawn"));
    const states = ["planned", "blocked", "archived", "archived", "archived", "archived"] as const;
    const again = await job(sheet("cup dawn", "cup night"), { existing: kept(before, ...states) });
    expect(again.due).toBe(0);
  });
});

describe("a selection", () => {
  test("takes the parents of selected items along, and says so", async () => {
    const made = await job(steps, {
      selection: {
        filters: [
          { key: "id", pattern: "cup*" },
          { key: "model", pattern: "extend" },
        ],
        onlyFailed: false,
        range: null,
        sample: null,
        seed: "",
        first: null,
      },
    });
    expect(made.items.map(({ rowId }) => rowId)).toEqual(["cup-clip", "cup-picture", "cup-longer"]);
    expect(made.notes).toContain("2 items are added to the selection: selected items take their outputs");
  });
});

describe("a problem is", () => {
  const sheet = (...rows: string[]) => planOf(`id,model,prompt,image_url,video_url\n${rows.join("\n")}\n`);

  test("a name that nothing has, with the nearest one", async () => {
    const made = await sheet("cup,paint,x,,", "clip,animate,,@cop,");
    expect(told(made)).toEqual(['3 image_url: no item and no step of the row is called "cop"']);
    expect(made.problems[0]).toMatchObject({ got: "@cop", nearest: "@cup" });
  });

  test("an item that takes its own output", async () => {
    expect(told(await sheet("a,animate,,@a,"))).toEqual([
      "2 image_url: the inputs go round in a circle: a → a",
    ]);
  });

  test("a circle of several items, and whatever takes an output of one of them", async () => {
    const made = await sheet("d,extend,,,@a", "a,extend,,,@b", "b,extend,,,@c", "c,extend,,,@a");
    const circle = /^\d video_url: the inputs go round in a circle: \w → \w → \w → \w$/;
    expect(told(made)).toEqual([
      "2 video_url: @a is part of a circle, or takes an output of one",
      ...[3, 4, 5].map(() => expect.stringMatching(circle)),
    ]);
    expect(made.items).toEqual([]);
  });

  test("an image where a video is needed, and the other way round", async () => {
    const made = await sheet(
      "a,paint,x,,",
      "b,extend,,,@a",
      "c,animate,,@d,",
      "d,extend,,,https://x.example/v",
    );
    expect(told(made)).toEqual([
      "3 video_url: video_url needs video, and @a is image (model paint)",
      "4 image_url: image_url needs image, and @d is video (model extend)",
    ]);
  });

  test("a parent whose own row is wrong, down the whole chain", async () => {
    const made = await sheet("a,nobody,x,,", "b,animate,,@a,", "c,extend,,,@b", "d,paint,y,,");
    expect(told(made).slice(1)).toEqual([
      "3 image_url: the item of @a cannot be made, because its own row has a problem",
      "4 video_url: the item of @b cannot be made, because its own row has a problem",
    ]);
    expect(made.items.map(({ rowId }) => rowId)).toEqual(["d"]);
    expect(made.money.needed).toBe(credits(4));
  });

  test("a reference without a usable name or number", async () => {
    expect(told(await sheet("a,animate,,@,", "b,animate,,@a[0],"))).toEqual([
      "2 image_url: not a usable reference to another item",
      "3 image_url: not a usable reference to another item",
    ]);
  });

  test("a step that makes several items, with their names", async () => {
    const made = await job(`
rows: [{ id: cup }]
steps:
  - { name: picture, model: paint, prompt: "x {{ lang }}", matrix: { lang: [en, de] } }
  - { name: clip, model: animate, image_url: "@picture" }
  - { name: clip2, model: animate, image_url: "@picture-de" }
`);
    expect(made.problems).toMatchObject([
      {
        message: "step picture makes several items of the row",
        expected: "one of: @picture-en, @picture-de",
      },
    ]);
    expect(parentsOf(made)["cup-clip2"]).toEqual(["image_url cup-picture-de[1]"]);
  });

  test("a step of one copy that takes a step of several", async () => {
    const made = await job(`
rows: [{ id: cup }]
steps:
  - { name: picture, model: paint, prompt: x, repeat: 3 }
  - { name: clip, model: animate, image_url: "@picture" }
  - { name: third, model: animate, image_url: "@cup-picture-3" }
`);
    expect(told(made)).toEqual(["1 image_url: step picture makes 3 copies, and this one 1"]);
    expect(parentsOf(made)["cup-third"]).toEqual(["image_url cup-picture-3[1]"]);
  });
});

test("a chain takes at least as long as its steps together, of which those that are made take no time", async () => {
  const seconds: Record<string, number> = { paint: 20, animate: 100, extend: 300 };
  const pace = (group: string) => {
    const [model] = JSON.parse(group) as [string];
    return { mean: Math.log((seconds[model] ?? 0) * 1_000), spread: 0.1, finished: 50 };
  };
  const chained = await job(steps, { pace });
  expect(chained.requests.forecast.ms).toBe(420_000);
  const flat = await planOf(
    "id,model,prompt,image_url\na,animate,,https://files.example/a.png\nb,paint,x,\n",
    { pace },
  );
  expect(flat.requests.forecast.ms).toBeLessThan(120_000);
  const existing = kept(chained, "archived").filter(({ model }) => model !== "extend");
  const rest = await job(steps, { pace, existing });
  expect(rest.due).toBe(2);
  expect(rest.requests.forecast.ms).toBeLessThan(350_000);
});

describe("what is said of a wrong reference", () => {
  const sheet = (...rows: string[]) => planOf(`id,model,prompt,image_url,video_url\n${rows.join("\n")}\n`);
  const all = ({ problems }: WholePlan) =>
    problems.map(({ message, expected, got }) => ({ message, expected, got }));

  test("names what is expected", async () => {
    expect(all(await sheet("a,animate,,@nobody,", "b,animate,,@c,", "c,nobody,x,,"))).toEqual([
      {
        message: 'no item and no step of the row is called "nobody"',
        expected: "the id of another item, or the name of a step",
        got: "@nobody",
      },
      {
        message: "the item of @c cannot be made, because its own row has a problem",
        expected: "an item that can be made",
        got: "@c",
      },
      expect.anything(),
    ]);
    expect(all(await sheet("p,paint,x,,", "b,extend,,,@p"))).toEqual([
      {
        message: "video_url needs video, and @p is image (model paint)",
        expected: "an item whose model makes video",
        got: "@p",
      },
    ]);
    expect(all(await sheet("a,extend,,,@b", "b,extend,,,@b"))).toEqual([
      {
        message: "@b is part of a circle, or takes an output of one",
        expected: "an item that can be made",
        got: "@b",
      },
      {
        message: "the inputs go round in a circle: b → b",
        expected: "a chain with a first item, which takes no output of the others",
        got: "@b",
      },
    ]);
  });

  test("names the first eight items of a long circle, and rows without ids by their numbers", async () => {
    const ring = Array.from({ length: 10 }, (_, n) => `i${n},extend,,,@i${(n + 9) % 10}`);
    const [first] = (await sheet(...ring)).problems;
    expect(first?.message).toBe(
      "the inputs go round in a circle: i0 → i9 → i8 → i7 → i6 → i5 → i4 → i3 → 2 more → i0",
    );
    const made = await job('rows: [{ thing: x }]\nsteps:\n  - { name: s, model: extend, video_url: "@s" }\n');
    expect(made.problems[0]?.message).toBe("the inputs go round in a circle: row 1 → row 1");
  });

  test("names the nearest item for the first twenty unknown names", async () => {
    const rows = Array.from({ length: 21 }, (_, n) => `r${n},animate,,@cop,`);
    const { problems } = await sheet("cup,paint,x,,", ...rows);
    expect(problems.map(({ nearest }) => nearest)).toEqual([...Array(20).fill("@cup"), undefined]);
  });

  test("names the first eight items of a step that makes several, and what two repeats have to be", async () => {
    const langs = Array.from({ length: 10 }, (_, n) => `l${n}`).join(", ");
    const made = await job(`
rows: [{ id: cup }]
steps:
  - { name: picture, model: paint, prompt: "x {{ lang }}", matrix: { lang: [${langs}] } }
  - { name: clip, model: animate, image_url: "@picture" }
  - { name: twice, model: paint, prompt: y, repeat: 2 }
  - { name: third, model: animate, repeat: 3, image_url: "@twice" }
`);
    expect(all(made)).toEqual([
      {
        message: "step picture makes several items of the row",
        expected:
          "one of: @picture-l0, @picture-l1, @picture-l2, @picture-l3, @picture-l4, @picture-l5, @picture-l6, @picture-l7 and 2 more",
        got: "@picture",
      },
      {
        message: "step twice makes 2 copies, and this one 3",
        expected: "the same repeat for both, or the id of one copy",
        got: "@twice",
      },
    ]);
  });
});

test("a name with a dot may be an id, and else is a step of another row", async () => {
  const made = await job(`
rows: [{ id: cup }, { id: "a.picture" }, { id: ".b" }]
steps:
  - { name: picture, model: paint, prompt: "{{ id }}" }
  - { name: clip, model: animate, image_url: "@cup.picture" }
`);
  expect(told(made)).toEqual([]);
  expect(parentsOf(made)["a.picture-clip"]).toEqual(["image_url cup-picture[1]"]);
  const plain = await planOf(
    "id,model,prompt,image_url\na.b,paint,x,\n.c,paint,y,\nd,animate,,@a.b\ne,animate,,@.c\n",
  );
  expect(parentsOf(plain)).toMatchObject({ d: ["image_url a.b[1]"], e: ["image_url .c[1]"] });
});

test("one item that takes a later output is noted as one, by the model that makes it", async () => {
  const made = await planOf(
    "id,model,prompt,image_url\na,paint,x,\nb,animate,,@a[2]\nc,edit,y,@a\nd,animate,,@c[3]\n",
  );
  expect(made.notes).toEqual([
    "1 item takes a later output of paint than the first: whether it exists shows only when it is made",
    "1 item takes a later output of edit than the first: whether it exists shows only when it is made",
  ]);
});

test("an item with two inputs of other items waits for both, and its key has both", async () => {
  const text = (video: string) =>
    `id,model,prompt,image_url,video_url\nboth,edit,z,@a,@${video}\na,paint,x,,\nv,extend,,,https://x.example/v\nw,extend,,,https://x.example/w\n`;
  const [one, other] = [await planOf(text("v")), await planOf(text("w"))];
  expect(told(one)).toEqual([]);
  expect(parentsOf(one)["both"]).toEqual(["image_url a[1]", "video_url v[1]"]);
  expect(keys(one)["both"]).not.toBe(keys(other)["both"]);
});

test("a step with a wrong row does not stop the other rows' steps", async () => {
  const made = await job(
    steps.replace("- { id: jug, thing: a jug }", "- { id: jug, thing: a jug, model: nobody }"),
  );
  expect(made.items.map(({ rowId }) => rowId).filter((id) => id.startsWith("cup"))).toHaveLength(3);
});

test("an item waits for the longest of the chains that lead to it", async () => {
  const made = await planOf(
    "id,model,prompt,image_url,video_url\nboth,edit,z,@e,@y\ne,edit,x,@a,\ny,extend,,,@x\nx,extend,,,@v\na,paint,x,,\nv,extend,,,https://x.example/v\n",
  );
  expect(told(made)).toEqual([]);
  expect(parentsOf(made)["both"]).toEqual(["image_url e[1]", "video_url y[1]"]);
});

test("the input that leads into a circle is the one that is told", async () => {
  const made = await planOf(
    "id,model,prompt,image_url,video_url\nd,edit,x,@p,@a\na,extend,,,@b\nb,edit,y,@p,@a\np,paint,x,,\n",
  );
  expect(told(made)).toEqual([
    "2 video_url: @a is part of a circle, or takes an output of one",
    "3 video_url: the inputs go round in a circle: a → b → a",
    "4 video_url: the inputs go round in a circle: a → b → a",
  ]);
});
