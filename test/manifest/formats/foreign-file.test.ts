import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { folderWith } from "../folder.js";
import { readManifest } from "../read.js";

const told = async (name: string, content: string | Uint8Array) => {
  const folder = await folderWith({ [name]: content });
  const { rows, problems } = await readManifest(`${folder}/${name}`);
  expect(rows).toEqual([]);
  return problems;
};

describe("a file of an office program that is no manifest is named, with the step that makes one of it", () => {
  test("Excel's own file beside an open workbook, with the workbook that was meant", async () => {
    const [owner] = await told("~$set.xlsx", Buffer.from(`\x05Maria${" ".repeat(49)}\x05\0M\0a\0r\0`));
    expect(owner).toMatchObject({
      message: "Excel keeps this file beside set.xlsx while that workbook is open, and it has no rows",
      expected: "set.xlsx (name it, or close it in Excel if a pattern such as *.xlsx found this file)",
    });
  });

  const container = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
  const encrypted = Buffer.concat([
    Buffer.from(container.padEnd(4_096, "\0"), "latin1"),
    Buffer.from("EncryptionInfo\0EncryptedPackage\0", "utf16le"),
  ]);
  test.each<[name: string, content: string | Uint8Array, message: RegExp, step: string]>([
    [
      "set.xls",
      Buffer.from(`${container}Workbook`, "latin1"),
      /old Excel workbook/,
      "in Excel, File > Save As",
    ],
    ["set.xlsx", encrypted, /the workbook is encrypted/, "delete the password"],
    [
      "page.xls",
      "\ufeff\n<html xmlns:x='urn:x'>\n<table><tr><td>id</td></tr></table>",
      /web page/,
      "Save As",
    ],
    ["set.xml", Buffer.from(`\ufeff<?xml version="1.0"?>\n<Workbook/>`, "utf16le"), /XML/, "Save As"],
  ])("%s", async (name, content, message, step) => {
    expect(await told(name, content)).toMatchObject([
      { message: expect.stringMatching(message), expected: expect.stringContaining(step) },
    ]);
  });

  test.each([
    ["set.ods", "mimetype", "OpenDocument", "in LibreOffice, File > Save As"],
    ["set.numbers", "Index/Document.iwa", "Numbers", "in Numbers, File > Export To > Excel"],
    ["set.xlsb", "xl/workbook.bin", "binary Excel workbook", "in Excel, File > Save As"],
  ])("%s", async (name, entry, message, step) => {
    const { ZipFile } = await import("yazl");
    const zip = new ZipFile();
    const kind = Buffer.from("application/vnd.oasis.opendocument.spreadsheet");
    zip.addBuffer(kind, entry, { compress: false });
    zip.end();
    expect(await told(name, await buffer(zip.outputStream))).toMatchObject([
      { message: expect.stringContaining(message), expected: expect.stringContaining(step) },
    ]);
  });
});

test("in a folder with an open workbook, the workbook is the manifest that was meant", async () => {
  const folder = await folderWith({ "set.xlsx": "", "~$set.xlsx": "" });
  expect((await readManifest(folder)).problems).toMatchObject([
    { message: "the manifest is a folder", nearest: "set.xlsx" },
  ]);
});
