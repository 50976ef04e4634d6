import { basename } from "node:path";
import type { Problem } from "../../core/problem.js";

/** What office programs save or keep that is no manifest: what the file is, and how to get a manifest from it. */
type FileProblem = Omit<Problem, "place">;

const excelWorkbook = 'in Excel, File > Save As, file type "Excel Workbook (.xlsx)"';

/** The file that Excel keeps beside an open workbook, `~$set.xlsx`. A pattern such as `*.xlsx` finds both. */
export function ownerFile(path: string): FileProblem | null {
  const name = basename(path);
  if (!name.startsWith("~$")) return null;
  const workbook = name.slice(2);
  return {
    message: `Excel keeps this file beside ${workbook} while that workbook is open, and it has no rows`,
    expected: `${workbook} (name it, or close it in Excel if a pattern such as *.xlsx found this file)`,
    got: name,
  };
}

/** Whether these are the first bytes of a container in which Office keeps old and encrypted files. */
export function isOldContainer(start: Uint8Array): boolean {
  return Buffer.from(start.subarray(0, 4)).toString("latin1") === "\xd0\xcf\x11\xe0";
}

export function oldContainer(bytes: Uint8Array): FileProblem {
  return Buffer.from(bytes).includes(Buffer.from("EncryptedPackage", "utf16le"))
    ? {
        message: "the workbook is encrypted, usually because it has a password",
        expected:
          "the same without a password: in Excel, File > Info > Protect Workbook > Encrypt with Password, delete the password and save",
        got: "an encrypted workbook",
      }
    : {
        message: "the file is an old Excel workbook (.xls)",
        expected: `the same saved as .xlsx: ${excelWorkbook}`,
        got: "an .xls file",
      };
}

/** A zip file that is no workbook as this program reads it. Names of the files in a zip are not compressed. */
export function foreignZip(bytes: Uint8Array): FileProblem | null {
  const zip = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return zips.find(({ has }) => zip.includes(has))?.problem ?? null;
}

const zips: readonly { has: string; problem: FileProblem }[] = [
  {
    has: "mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
    problem: {
      message: "the file is an OpenDocument spreadsheet (.ods)",
      expected: 'the same saved as .xlsx: in LibreOffice, File > Save As, file type "Excel 2007-365 (.xlsx)"',
      got: "an .ods file",
    },
  },
  {
    has: "Index/Document.iwa",
    problem: {
      message: "the file is a Numbers spreadsheet (.numbers)",
      expected: "the same exported as .xlsx: in Numbers, File > Export To > Excel",
      got: "a .numbers file",
    },
  },
  {
    has: "xl/workbook.bin",
    problem: {
      message: "the file is a binary Excel workbook (.xlsb)",
      expected: `the same saved as .xlsx: ${excelWorkbook}`,
      got: "an .xlsb file",
    },
  },
];

/** A web page or other XML, which many programs save under the name of an old workbook (.xls). */
export function markup(start: string): FileProblem | null {
  if (!/^\s*<(?:!doctype|html|head|meta|table|\?xml)[\s>]/i.test(start)) return null;
  return {
    message: "the file is a web page or XML, whatever its name says",
    expected: "the same saved as .xlsx: open it in Excel or LibreOffice, then File > Save As",
    got:
      start
        .trim()
        .slice(0, 40)
        .split(/[\r\n]/, 1)[0] ?? "",
  };
}
