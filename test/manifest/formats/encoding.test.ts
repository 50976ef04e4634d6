import { expect, test } from "vitest";
import { fileWith } from "../folder.js";
import { readManifest } from "../read.js";

const text = "id,prompt,params.style\na,Café – crème,paper\n";
const read = async (bytes: Uint8Array) => readManifest(await fileWith("sheet.csv", bytes));

const utf16be = (from: string) => Buffer.from(from, "utf16le").swap16();

test.each<[string, Uint8Array]>([
  ["UTF-8", Buffer.from(text)],
  ["UTF-8 with a byte order mark", Buffer.from(`\uFEFF${text}`)],
  ["UTF-16 as Excel saves it", Buffer.from(`\uFEFF${text}`, "utf16le")],
  ["UTF-16 the other way round", utf16be(`\uFEFF${text}`)],
  ["UTF-16 without a mark", Buffer.from(text, "utf16le")],
  ["UTF-16 the other way round without a mark", utf16be(text)],
])("a sheet in %s is read as it is meant, without a word", async (_name, bytes) => {
  const { rows, problems, notes } = await read(bytes);
  expect([problems, notes]).toEqual([[], []]);
  expect(rows).toMatchObject([{ id: "a", prompt: "Café – crème", params: { style: "paper" } }]);
});

test("a sheet in Windows-1252 is read, and a note shows a word by which to see whether it is right", async () => {
  const { rows, problems, notes } = await read(
    Buffer.from("id,prompt\na,5 \x80 Caf\xe9 \x96 cr\xe8me\n", "latin1"),
  );
  expect(problems).toEqual([]);
  expect(rows[0]?.prompt).toBe("5 € Café – crème");
  expect(notes).toEqual([
    'the file is not UTF-8; it was read as Windows-1252 (so "€" in line 2): check that, or save the file as "CSV UTF-8"',
  ]);
});
