import { expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";
import { type ScriptedService, startService } from "./service.js";

/** Pictures that have to be approved, and large ones of them. */
const shop = `
name: shop
rows:
  - { id: a, prompt: a cup }
  - { id: b, prompt: a jar }
  - { id: c, prompt: a pot }
defaults: { model: plain-image }
steps:
  - { name: edit, approve: true }
  - { name: large, image_url: "@edit" }
`;

interface Shop {
  where: Place;
  service: ScriptedService;
  /** Runs a command that ends with this code, and returns what it printed on both streams. */
  did(line: string, code?: number): Promise<string>;
}

/** A job whose items are all made and approved. */
async function made(text = shop): Promise<Shop> {
  const service = await startService({ balance: 200 });
  const where = newPlace();
  where.write("shop.yaml", text);
  const did = async (line: string, code = 0) => {
    const end = await run(where, line.split(" "), service);
    expect(end.code, `${line}: ${end.stderr}`).toBe(code);
    return end.stdout + end.stderr;
  };
  await run(where, ["run", "shop.yaml", "--yes"], service);
  if (text.includes("approve")) {
    await did("approve --all");
    await did("resume --yes");
  }
  return { where, service, did };
}

test("whoever approves several takes is told what was made of the earlier ones, in one command", async () => {
  const { did } = await made();
  await did("redo a-edit b-edit --yes", 10);
  expect(await did("approve --all")).toBe(
    "2 items are approved. a-large, b-large were made of a-edit, b-edit: `bulkgen reject a-edit b-edit`, then `bulkgen redo a-large b-large` makes them of a-edit-v2, b-edit-v2, for 4 credits\n",
  );
  await did("reject a-edit b-edit");
  await did("redo a-large b-large --yes");
  expect(await did("export --final --columns item")).toContain("a-edit-v2\r\na-large-v2\r\n");
});

test("of an item that was made several times, one take is made again: the one that is handed over", async () => {
  const { did } = await made();
  await did("redo b-large --yes");
  await did("redo b-large --yes");
  await did("redo b-edit --yes", 10);
  expect(await did("approve b-edit-v2")).toBe(
    "b-edit-v2 is approved. b-large was made of b-edit: `bulkgen reject b-edit`, then `bulkgen redo b-large` makes it of b-edit-v2, for 2 credits\n",
  );
  await did("pick b-large-v3");
  expect(await did("approve b-edit-v2")).toContain(
    "then `bulkgen redo b-large-v3` makes it of b-edit-v2, for 2",
  );
});

test("a final set says which files were made of another take than it has, and how that is mended", async () => {
  const { did } = await made();
  expect(await did("export --final --columns item")).not.toContain("another take");
  await did("redo a-edit --yes", 10);
  await did("approve a-edit-v2");
  const note =
    "1 file was made of another take than the set has. a-large was made of a-edit: `bulkgen reject a-edit`, then `bulkgen redo a-large` makes it of a-edit-v2, for 2 credits\n";
  expect(await did("export --final --columns item")).toContain(note);
  expect(await did("export --final --zip set.zip")).toContain(note);
  expect(await did("gallery --final")).toContain(note);
  expect(await did("export --columns item")).not.toContain("another take");
  // Only what is selected is handed over.
  expect(await did("export --final --filter id=b* --columns item")).not.toContain("another take");
  await did("reject a-edit");
  await did("redo a-large --yes");
  expect(await did("export --final --columns item")).not.toContain("another take");
  // A take that goes with the set is there already.
  await did("pick a-large");
  expect(await did("export --final --columns item")).toContain(
    "another take than the set has. a-large was made of a-edit, and a-large-v2 of a-edit-v2: `bulkgen pick a-large-v2` takes that\n",
  );
});

test("where nothing has to be approved, the way to the picked take is named whole", async () => {
  const { did } = await made(shop.replace(", approve: true", ""));
  await did("redo a-edit --yes");
  await did("pick a-edit-v2");
  const advice =
    "a-large was made of a-edit: `bulkgen reject a-edit`, `bulkgen approve a-edit-v2`, then `bulkgen redo a-large` makes it of a-edit-v2, for 2 credits\n";
  expect(await did("export --final --columns item")).toContain(advice);
  await did("reject a-edit");
  await did("approve a-edit-v2");
  await did("redo a-large --yes");
  expect(await did("export --final --columns item")).toContain("a-edit-v2\r\na-large-v2\r\n");
});

test("an item and what is made of it are not made again at once: the second would be made of the first as it was", async () => {
  const { did, service } = await made();
  const before = service.made.length;
  expect(await did("redo a-edit a-large --yes", 2)).toContain(
    "a-large would be made of the present a-edit, not of its new take. Nothing was changed. " +
      "`bulkgen reject a-edit a-large --again` makes them anew, each once you have approved the one before it",
  );
  expect(await did("redo --filter id=a* --yes", 2)).toContain("a-large would be made of the present a-edit");
  expect(service.made.length).toBe(before);
  // As the message says.
  await did("reject a-edit a-large --again --yes", 10);
  expect(service.made.length).toBe(before + 1);
  await did("approve a-edit-v2");
  await did("resume --yes", 10);
  await did("approve a-large-v2");
  expect(await did("export --final --columns item")).toContain("a-edit-v2\r\na-large-v2\r\n");
  expect(await did("export --final --columns item")).not.toContain("another take");
  // Other rows go together.
  await did("redo b-edit c-large --yes", 10);
});

test("the same holds over several steps, and for a change of the prompt", async () => {
  const { did, service } = await made(`${shop}  - { name: poster, image_url: "@large" }\n`);
  const before = service.made.length;
  expect(await did("redo a-edit a-poster --prompt blue --yes", 2)).toContain(
    "a-poster would be made of the present a-edit (through a-large), not of its new take. Nothing was changed. " +
      "Make them one after the other: first `bulkgen redo a-edit --prompt …`. Then reject a-edit, approve its new take, and `bulkgen redo a-large`",
  );
  expect(service.made.length).toBe(before);
  // A rejected one makes way for its new take, for which what follows waits.
  await did("reject a-edit");
  await did("redo a-edit a-large --yes", 10);
  expect(service.made.length).toBe(before + 1);
  // Once that is approved, another one is a choice of its own.
  await did("approve a-edit-v2");
  await did("resume --yes");
  expect(await did("redo a-edit a-large --yes", 2)).toContain(
    "a-large would be made of the present a-edit-v2",
  );
});
