import { buffer } from "node:stream/consumers";
import writeWorkbook from "write-excel-file/node";
import { ZipFile } from "yazl";
import type { Parser } from "../cases.js";

/** Workbooks with some of their bytes changed, which seldom get past the zip; and sheets of XML, which are packed here. */
export function workbookParser(read: Parser["read"]): Parser {
  return {
    samples: async () => [
      await workbook([
        ["id", "model", "prompt", "params.aspect_ratio"],
        ["a", "paint", "a cup", "16:9"],
        ["b", "paint", 7, true],
      ]),
      await workbook([["id"], [null], ["x"]]),
      ...sheets.map((sheet) => Buffer.from(sheet)),
    ],
    words,
    cases: 600,
    read: async (bytes) => read(bytes[0] === "<".charCodeAt(0) ? await packed(bytes) : bytes),
  };
}

const workbook = async (rows: (string | number | boolean | null)[][]) =>
  writeWorkbook([{ sheet: "Cups", data: rows }]).toBuffer();

const text = (at: string, value: string) => `<c r="${at}" t="inlineStr"><is><t>${value}</t></is></c>`;
const names = ["id", "model", "prompt", "params.depth", "repeat", "params.matt"];
const header = `<row r="1">${names.map((name, at) => text(`${"ABCDEF"[at]}1`, name)).join("")}</row>`;

const sheets = [
  `<worksheet><sheetData>${header}` +
    `<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c><c r="C2"><v>0.15</v></c><c r="D2" s="2"><v>0.5</v></c></row>` +
    `<row r="4">${text("A4", "b")}${text("B4", "mould")}<c r="C4" t="str"><f>A4&amp;"x"</f><v>bx</v></c><c r="E4"><v>2</v></c><c r="F4" t="b"><v>1</v></c></row>` +
    `</sheetData></worksheet>`,
  `<worksheet><sheetData><row r="1">${text("A1", "Autumn")}</row><row r="3">${text("A3", "id")}${text("B3", "model")}${text("C3", "prompt")}</row>` +
    `<row r="4">${text("A4", "a")}${text("B4", "paint")}<c r="C4" t="e"><v>#REF!</v></c></row>` +
    `<row r="5"><c r="A5" s="1"><v>46000.5</v></c>${text("B5", "paint")}<c r="C5"><f>1+1</f></c></row></sheetData>` +
    `<mergeCells count="1"><mergeCell ref="B4:B5"/></mergeCells></worksheet>`,
];

const words = [
  ...'<row r="2"> </row> <c/> </c> <f>1</f> <v>0</v> <v>1e9</v> <v>-0.5</v> <v/> <is> <t>x</t> <sheetData> &amp; &#10;'.split(
    /(?<=>|;) /,
  ),
  't="s"',
  't="b"',
  't="d"',
  't="e"',
  't="str"',
  's="1"',
  's="2"',
  's="9"',
  ' r="A2"',
  ' r="XFD1048576"',
  '<c r="A2">',
  '<c r="C2" s="1">',
  '<mergeCell ref="A1:C9"/>',
  '<row hidden="1">',
  text("C2", "{{ id }}"),
];

const space = "http://schemas.openxmlformats.org";
const relations = `${space}/officeDocument/2006/relationships`;
const parts: Readonly<Record<string, string>> = {
  "xl/workbook.xml": `<workbook xmlns:r="${relations}"><sheets><sheet name="Cups" sheetId="1" r:id="r1"/></sheets></workbook>`,
  "xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="r1" Type="${relations}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
  "xl/styles.xml": `<styleSheet><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/><xf numFmtId="9"/></cellXfs></styleSheet>`,
  "xl/sharedStrings.xml": "<sst><si><t>a</t></si><si><r><t>mo</t></r><r><t>uld</t></r></si></sst>",
};

/** A workbook with this sheet: style 1 is a date with a time, and style 2 a percentage. */
async function packed(sheet: Buffer): Promise<Buffer> {
  const zip = new ZipFile();
  for (const [name, xml] of Object.entries(parts)) zip.addBuffer(Buffer.from(xml), name);
  zip.addBuffer(sheet, "xl/worksheets/sheet1.xml");
  zip.end();
  return buffer(zip.outputStream);
}
