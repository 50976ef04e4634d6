import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { labelled, table } from "../../src/text/table.js";
import { textWidth } from "../../src/text/terminal.js";

const columns = [
  { title: "id" },
  { title: "prompt", flexible: true },
  { title: "credits", align: "right" as const },
];
const rows = [
  ["cover-1", "a lighthouse in the fog, seen from the sea, with gulls", 4],
  ["b", "short", 12.5],
];

describe("a table", () => {
  test("is as wide as its content where there is no terminal", () => {
    expect(table(columns, rows)).toMatchInlineSnapshot(`
      "id       prompt                                                  credits
      cover-1  a lighthouse in the fog, seen from the sea, with gulls        4
      b        short                                                      12.5"
    `);
  });

  test("wraps only the column that may be, and stays in the width", () => {
    expect(table(columns, rows, { width: 40, colour: false })).toMatchInlineSnapshot(`
      "id       prompt                  credits
      cover-1  a lighthouse in the           4
               fog, seen from the
               sea, with gulls
      b        short                      12.5"
    `);
  });

  test("breaks a name that is too long for its column behind a hyphen, so that no two names look the same", () => {
    const models = [
      ["aurora-image", "image", 20, 20, 4, 80],
      ["aurora-image-mini", "image", 20, 20, 1, 20],
    ];
    const titles = ["model", "category", "items", "to make", "each", "credits"];
    const shown = table(
      titles.map((title) => ({ title })),
      models,
      { width: 48, colour: false },
    );
    expect(shown).toMatchInlineSnapshot(`
      "model    category  items  to make  each  credits
      aurora-  image     20     20       4     80
      image
      aurora-  image     20     20       1     20
      image-
      mini"
    `);
  });

  test("cuts off no letter where words are wider than their columns, and breaks no number", () => {
    const titles = ["model", "category", "items", "to make", "each", "credits"];
    const shown = table(
      titles.map((title, at) => ({ title, align: at < 2 ? "left" : "right" })),
      [
        ["aurora-image", "image", 2, 2, 4, 8],
        ["atelier-vignette", "image", 20, 20, 1234.5, 24690],
      ],
      { width: 40, colour: true },
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours
    const plain = shown.replaceAll(/\u001b\[\d+m/g, "");
    expect(plain).toMatchInlineSnapshot(`
      "mode  categ  items     to    each  credi
      l     ory            make             ts
      auro  image      2      2       4      8
      ra-i
      mage
      atel  image     20     20  1234.5  24690
      ier-
      vign
      ette"
    `);
    expect(plain).not.toContain("…");
  });

  test("paints tones and heads where colour is wanted, and only there", () => {
    const painted = table([{ title: "state" }], [[{ text: "failed", tone: "bad" }]], {
      width: 60,
      colour: true,
    });
    expect(painted).toBe("\u001b[1mstate\u001b[22m\n\u001b[31mfailed\u001b[39m");
    expect(table([{ title: "state" }], [[{ text: "failed", tone: "bad" }]])).toBe("state\nfailed");
  });

  test("counts wide characters twice", () => {
    const shown = table(
      [{ title: "name" }, { title: "n" }],
      [
        ["日本語", 1],
        ["a", 2],
      ],
    );
    expect(shown).toBe("name    n\n日本語  1\na       2");
  });

  test("without rows is its head", () => expect(table(columns, [])).toBe("id  prompt  credits"));

  test.each([null, 40])("of many rows has one head and columns of one width (%s)", (width) => {
    const many = Array.from({ length: 250 }, (_, at) => [`row-${at}`, "short", at]);
    const shown = table(columns, [...many, ...rows], { width, colour: false }).split("\n");
    const few = table(columns, [...many.slice(0, 9), ...rows], { width, colour: false }).split("\n");
    expect(shown.slice(0, 10)).toEqual(few.slice(0, 10));
    expect(shown.slice(251)).toEqual(few.slice(10));
    expect(shown[250]).toBe(few[9]?.replace("row-8  ", "row-249").replace(/ {2}8$/, "249"));
  });

  test("never goes over the width, whatever its words", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", " ", "-", "日"), maxLength: 90 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(word, word, word), { maxLength: 5 }),
        fc.constantFrom(60, 100),
        (cells, width) => {
          const shown = table(columns, cells, { width, colour: false });
          for (const line of shown.split("\n")) expect(textWidth(line)).toBeLessThanOrEqual(width);
          const letters = (text: string) => [...text.replaceAll(/\s/g, "")].toSorted().join("");
          expect(letters(shown)).toBe(
            letters([...columns.map(({ title }) => title), ...cells.flat()].join("")),
          );
        },
      ),
    );
  });
});

test("the name of a file is a link where the terminal takes links, and only its name elsewhere", () => {
  const cells = [["folder", { text: "outputs/a b", file: "/srv/outputs/a b" }]] as const;
  const drawn = (links: boolean) => labelled(cells, { width: 60, colour: false, links });
  expect(drawn(false)).toBe("folder  outputs/a b");
  expect(drawn(true)).toBe("folder  \u001b]8;;file:///srv/outputs/a%20b\u0007outputs/a b\u001b]8;;\u0007");
  const evil = { text: "a\u001b]0;x\u0007b", file: "/srv/a\u001b]0;x\u0007b" };
  expect(labelled([["folder", evil]], { width: 60, colour: false, links: true })).toBe(
    "folder  \u001b]8;;file:///srv/a%1B%5D0;x%07b\u0007ab\u001b]8;;\u0007",
  );
});
