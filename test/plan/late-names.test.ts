import { expect, test } from "vitest";
import { planOf } from "./account.js";

test("an output may name category, key, model, date and index, and every field", async () => {
  const { items, problems } = await planOf(
    'id,model,prompt,output,params.mood\na,paint,x,"{{ category }}/{{ model }}-{{ index | pad: 3 }}-{{ params.mood }}-{{ key }}",warm\n',
  );
  expect(problems).toEqual([]);
  expect(items[0]?.name).toBe(`image/paint-001-warm-${items[0]?.key.slice(3, 13)}`);
});

test("a name loses the spaces around it, and one of which nothing is left is the row's id", async () => {
  const { items } = await planOf(
    "id,model,prompt,output\na,paint,x,{{ category | remove: 'image' }} cup\nb,paint,y,{{ category | remove: 'image' }}\n",
  );
  expect(items.map(({ name }) => name)).toEqual(["cup", "b"]);
});

test("two outputs that come to the same name through the category are found", async () => {
  const { problems } = await planOf("model,prompt,output\npaint,x,{{ category }}\npaint,y,IMAGE\n");
  expect(problems).toMatchObject([
    { place: { row: 3, column: "output" }, message: "rows 2 and 3 want the same output", got: "IMAGE" },
  ]);
});

test("identical rows have the same key in their names, so they must differ by more", async () => {
  const { problems } = await planOf("model,prompt,output\npaint,x,{{ key }}\npaint,x,{{ key }}\n");
  expect(problems).toMatchObject([{ message: "rows 2 and 3 want the same output" }]);
});

test("a name that leads out of the folder is found when it is made late, too", async () => {
  const { problems } = await planOf("model,prompt,output\npaint,x,../{{ category }}\n");
  expect(problems).toMatchObject([
    { message: "the output path leads outside the output folder", got: "../image" },
  ]);
});

test("in a prompt they are not known yet, and that is said", async () => {
  const { problems, items } = await planOf("model,prompt\npaint,a {{ category }} of it\n");
  expect(items).toEqual([]);
  expect(problems).toMatchObject([
    {
      place: { row: 2, column: "prompt" },
      message: 'the template names "category", which is known only when an item\'s file is named',
      expected: "category, key, copy and take only in the field output",
    },
  ]);
});

test("a column of that name is that column, in any field", async () => {
  const { items, problems } = await planOf(
    "id,model,prompt,category,output\na,paint,a {{ category }},mug,{{ category }}-{{ id }}\nb,paint,a {{ category }} b,,\n",
  );
  expect(problems).toEqual([]);
  expect(items.map(({ prompt, name }) => [prompt, name])).toEqual([
    ["a mug", "mug-a"],
    ["a  b", "b"],
  ]);
});

test("a filter that fails on a late name is a problem with its place", async () => {
  const { problems } = await planOf('model,prompt,output\npaint,x,"{{ category | date: ""%Y"" }}"\n');
  expect(problems).toMatchObject([
    { place: { row: 2, column: "output" }, message: "the date filter needs a valid date", got: "image" },
  ]);
});

test("a row without an output does not get that of a wrong row before it", async () => {
  const { items } = await planOf(
    'id,model,prompt,output\na,paint,"{{ id | pad: 2.5 }}",{{ category }}/x\nb,paint,y,\n',
  );
  expect(items.map(({ name }) => name)).toEqual(["b"]);
});

test("a row of a model that does not exist has that as its only problem", async () => {
  const { problems, items } = await planOf("model,prompt,output\nnobody,x,{{ category }}\n");
  expect(items).toEqual([]);
  expect(problems.map(({ message }) => message)).toEqual(['unknown model "nobody"']);
});

test("copies have the names that their template gives them, and else their numbers", async () => {
  const { items, problems } = await planOf(
    'id,model,prompt,output,repeat\na,paint,x,"icons/{{ copy | pad: 2 }}-{{ id }}",3\nb,paint,y,{{ category }}/b,2\n',
  );
  expect(problems).toEqual([]);
  expect(items.map(({ rowId, name }) => [rowId, name])).toEqual([
    ["a", "icons/01-a"],
    ["a-2", "icons/02-a"],
    ["a-3", "icons/03-a"],
    ["b", "image/b"],
    ["b-2", "image/b-2"],
  ]);
});
