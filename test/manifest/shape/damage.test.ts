import fc from "fast-check";
import { expect, test } from "vitest";
import { damageIn, promptDamageIn } from "../../../src/manifest/shape/damage.js";
import { fileWith } from "../folder.js";
import { readManifest } from "../read.js";

/** Texts as people write them. None of them is damaged. */
const good = [
  "What???",
  "What?? Really???",
  "Quoi ??? Non.",
  "Quoi ???",
  "C’est déjà « fini » ?",
  "voilà\u00a0« Paris »",
  "“CAFÉ”, «CITÉ», CAFÉ… É™",
  "Größe: Ägypten, „Öl“, ‚Übung‘ – süß™, Spaß… Fuß”",
  "«MANHû, IRMÃ… MAÇÔ, SÃO PAULO, Ã",
  "avó, maçã, não, irmã”, órgão",
  "Ø½ inch pipe, 2×½, 3 × 4, Ø 12 mm, 5 Ų, 20 °C, 100 €",
  "ÂGE, Â, CÂN, pâte, château",
  "日本語のマグカップ。何ですか??? 赤い???",
  "猫？？？ かわいい！！！",
  "Кружка на столе. Что??? Да",
  "كوب على الطاولة",
  "zażółć gęślą jaźń, Łódź, Ćma",
  "Þór, ðað, ÆÐI",
  "😀 a mug 👩‍👩‍👧 – “nice” … ‘ok’",
  "issue #12, #hashtag, C#, what is #n/a? #name? #NVIDIA",
  'a neon sign that says "???"',
  "a ?? b, x=1?y=2??",
  "https://example.com/a?b=c",
  "√2, 3√8, √(a²+b²), ‚Ägypten‘",
  "6.022E+23 atoms, 1.5E+3, 1E+12x, E+12, 3.141592E+12, grade E+",
];

test.each(good)("good text passes: %s", (text) => {
  expect(damageIn(text)).toBeNull();
});

test("good words of many languages pass in any order and with any punctuation", () => {
  const words = fc.constantFrom(...good.flatMap((text) => text.match(/[\p{L}\p{M}]+/gu) ?? []));
  const between = fc.constantFrom(
    " ",
    ", ",
    ". ",
    " – ",
    "… ",
    "? ",
    "??? ",
    "! ",
    "” “",
    "» «",
    "’ ",
    "\n",
    " & ",
  );
  const text = fc.array(fc.tuple(words, between), { maxLength: 12 }).map((parts) => parts.flat().join(""));
  fc.assert(fc.property(text, (each) => damageIn(each) === null));
});

test.each([
  ["??????? ?????", "question marks"],
  ["????", "question marks"],
  ["??", "question marks"],
  ["a mug ???? red", "question marks"],
  ["Gr???e", "question marks"],
  ["???Mug", "question marks"],
  ["a cup, ????, blue", "question marks"],
  ["B\ufffdcher", "replacement characters"],
  ["GrÃ¶ÃŸe", "wrong encoding"],
  ["â€žhandgemachtâ€œ", "wrong encoding"],
  ["20Â°C", "wrong encoding"],
  ["a mug â€“ red", "wrong encoding"],
  ["Gr√∂√üe", "wrong encoding"],
  ["#REF!", "formula error"],
  [" #### ", "a column is too narrow"],
  ["a mug, #NAME?", "formula error"],
  ["#N/A", "formula error"],
  ["#VALUE!", "formula error"],
  ["#DIV/0!", "formula error"],
  ["#WERT!", "formula error"],
  ["a photo of #NV on oak", "formula error"],
  ["#ZAHL!", "formula error"],
  ["#ÜBERLAUF!", "formula error"],
  ["#NOMBRE!", "formula error"],
  ["#NUL!", "formula error"],
  ["#SPILL!", "formula error"],
  ["4.00638E+12", "shortened a long number"],
  ["cup-4,00638E+12", "shortened a long number"],
  ["the number 4E+12 below it", "shortened a long number"],
])("damaged text is found: %s", (text, why) => {
  expect(damageIn(text)?.message).toContain(why);
});

test.each([
  "Größe",
  "süßer Käse",
  "Äpfel und Öl",
  "café à la crème",
  "sûr, garçon",
  "maçã não",
  "Ñandú",
  "日本語のマグカップ",
  "青い花瓶",
  "Кружка",
  "zażółć gęślą jaźń",
  "كوب",
  "20 °C",
  "100 €",
  "“nice”",
  "it’s",
  "a – b",
  "😀",
])("UTF-8 that was read as Windows-1252 or Latin-1 is found: %s", (text) => {
  const bytes = Buffer.from(text);
  const windows = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";
  const latin1 = bytes.toString("latin1");
  const asWindows = latin1.replace(/[\x80-\x9f]/g, (one) => windows[one.charCodeAt(0) - 0x80] ?? one);
  expect([damageIn(latin1), damageIn(asWindows)]).toEqual([expect.anything(), expect.anything()]);
});

test.each([
  "undefined",
  " undefined\n",
  "[object Object]",
  "a cup of [object Array]",
  "\ud83d",
  "a cup \ude00 x",
])("text that a program destroyed is found: %j", (text) => {
  expect(damageIn(text)).not.toBeNull();
  expect(promptDamageIn(text)).not.toBeNull();
});

test.each(["nan", " NaN\n", "null", "None", "<NA>"])(
  "a prompt that is the word for a missing value is found, and a param may have it: %j",
  (text) => {
    expect(promptDamageIn(text)).toMatchObject({
      message: "the text is what a program writes where a value is missing",
    });
    expect(damageIn(text)).toBeNull();
  },
);

test.each([
  "an undefined shape",
  "Nan, my grandmother",
  "none",
  "object Object",
  "a null-modem cable",
  "😀👩‍👩‍👧",
])("and text that has such words passes: %j", (text) => {
  expect(promptDamageIn(text)).toBeNull();
});

test("damaged text of a row is a problem where it is sent, and --allow-damaged-text lets it through", async () => {
  const path = await fileWith(
    "set.csv",
    "id,model,prompt,params.mood,note\na,paint,????,x,#REF!\nb,paint,{{ note }},GrÃ¶ÃŸe,#REF!\nc,paint,x,y,????\n",
  );
  const { problems } = await readManifest(path);
  expect(problems.map(({ place }) => [place.row, place.column])).toEqual([
    [2, "prompt"],
    [3, "prompt"],
    [3, "params.mood"],
  ]);
  expect(problems[0]).toMatchObject({
    message: "characters were lost: the text has question marks in their place",
    expected: expect.stringContaining("--allow-damaged-text"),
    got: "????",
  });
  expect((await readManifest(path, { allowDamagedText: true })).problems).toEqual([]);
});
