import type { LostCell } from "../shape/source.js";
import { columnOf, entriesOf, pieces } from "./unpacked.js";

/** Cells of a sheet whose value the reader of workbooks leaves out, by row and column, both counted from 1. */
export type LostCells = ReadonlyMap<number, ReadonlyMap<number, LostCell>>;

/** What the reader of workbooks does not say about a sheet. It gives values, as they are stored. */
export interface OfSheet {
  lost: LostCells;
  /** Numbers of rows that the spreadsheet does not show. */
  hiddenRows: readonly number[];
  /** Columns of the numbers that the spreadsheet shows as percentages, by row. */
  percentages: ReadonlyMap<number, ReadonlySet<number>>;
  /** Web addresses behind cells that show another text, by row and column. */
  links: ReadonlyMap<number, ReadonlyMap<number, string>>;
}

/** Whether each sheet of a workbook is hidden, in their order. */
export function hiddenSheets(bytes: Uint8Array): boolean[] {
  for (const { name, content } of entriesOf(bytes))
    if (name === "xl/workbook.xml")
      return elements(content.toString("utf8"), "sheet").map((sheet) =>
        /^(?:h|veryH)idden$/.test(attribute(sheet, "state") ?? ""),
      );
  return [];
}

/** Parts of merged cells that are looked at: a sheet may merge whole columns. */
const mergedMax = 100_000;

/**
 * Finds hidden rows, addresses behind cells, and cells that would be read as empty although a person sees a value in them: errors of
 * formulas, formulas that were saved without their result, and merged cells other than the first, if that has a value.
 * `index` is the sheet's place in the workbook, `data` its content as it was read.
 */
export function lostCells(bytes: Uint8Array, index: number, data: readonly unknown[][]): OfSheet {
  const path = sheetAt(bytes, index);
  let sheet: Buffer | null = null;
  let [styles, relations] = ["", ""];
  for (const { name, content } of entriesOf(bytes)) {
    if (name === path) sheet = content;
    else if (name === "xl/styles.xml") styles = content.toString("utf8");
    else if (path !== null && name === path.replace(/([^/]*)$/, "_rels/$1.rels"))
      relations = content.toString("utf8");
  }
  if (sheet === null) return { lost: new Map(), hiddenRows: [], percentages: new Map(), links: new Map() };
  return {
    lost: lostIn(sheet, data),
    hiddenRows: hiddenRowsIn(sheet),
    percentages: percentagesIn(sheet, percentStyles(styles)),
    links: linksIn(sheet, relations),
  };
}

/** Links that were inserted into cells, and those of formulas: `HYPERLINK("https://…", "photo")`. */
function linksIn(sheet: Buffer, relations: string): Map<number, Map<number, string>> {
  const links = new Map<number, Map<number, string>>();
  const targets = new Map(
    elements(relations, "Relationship").map((each) => [attribute(each, "Id"), attribute(each, "Target")]),
  );
  const add = (cell: string | null, address: string | null | undefined) => {
    const [, letters = "", row] = /^([A-Z]+)(\d+)/.exec(cell ?? "") ?? [];
    const target = address?.replaceAll(/&(amp|quot|lt|gt|apos);/g, (_, name) => entities[name as "amp"]);
    if (row === undefined || target === undefined || !/^https?:\/\//i.test(target)) return;
    const ofRow = links.get(Number(row)) ?? new Map<number, string>();
    links.set(Number(row), ofRow.set(columnOf(letters), target));
  };
  for (const text of pieces(sheet, cellBytes)) {
    for (const link of text.includes("hyperlink") ? elements(text, "hyperlink") : [])
      add(attribute(link, "ref"), targets.get(attribute(link, "\\w+:id")));
    for (const piece of text.includes("HYPERLINK(") ? text.split(/<(?:\w+:)?c(?=\s)/).slice(1) : []) {
      const address = /HYPERLINK\((?:"|&quot;)(.*?)(?:"|&quot;)/.exec(piece)?.[1];
      add(attribute(piece.slice(0, piece.indexOf(">")), "r"), address);
    }
  }
  return links;
}

const entities = { amp: "&", quot: '"', lt: "<", gt: ">", apos: "'" };

/** The styles of cells, by their numbers, that show a number as a percentage. */
function percentStyles(styles: string): ReadonlySet<string> {
  // Every workbook knows the formats 0% and 0.00% by these numbers.
  const formats = new Set(["9", "10"]);
  for (const format of elements(styles, "numFmt")) {
    const code = (attribute(format, "formatCode") ?? "").replaceAll(/"[^"]*"|&quot;.*?&quot;|\\./g, "");
    if (code.includes("%")) formats.add(attribute(format, "numFmtId") ?? "");
  }
  const [, ofCells = ""] = /<(?:\w+:)?cellXfs[\s>]([\s\S]*?)<\/(?:\w+:)?cellXfs>/.exec(styles) ?? [];
  const found = elements(ofCells, "xf").flatMap((style, number) =>
    formats.has(attribute(style, "numFmtId") ?? "") ? [String(number)] : [],
  );
  return new Set(found);
}

function percentagesIn(sheet: Buffer, styles: ReadonlySet<string>): Map<number, Set<number>> {
  const found = new Map<number, Set<number>>();
  if (styles.size === 0) return found;
  for (const text of pieces(sheet, tagBytes))
    for (const cell of elements(text, "c")) {
      if (!styles.has(attribute(cell, "s") ?? "")) continue;
      const [, letters = "", row] = /^([A-Z]+)(\d+)$/.exec(attribute(cell, "r") ?? "") ?? [];
      const columns = found.get(Number(row)) ?? new Set();
      found.set(Number(row), columns.add(columnOf(letters)));
    }
  return found;
}

/** The file of a sheet: the workbook names a relation for it, and the relation a path. */
function sheetAt(bytes: Uint8Array, index: number): string | null {
  let workbook = "";
  let relations = "";
  for (const { name, content } of entriesOf(bytes)) {
    if (name === "xl/workbook.xml") workbook = content.toString("utf8");
    else if (name === "xl/_rels/workbook.xml.rels") relations = content.toString("utf8");
    if (workbook !== "" && relations !== "") break;
  }
  const sheet = elements(workbook, "sheet")[index];
  const id = sheet === undefined ? null : attribute(sheet, "\\w+:id");
  const relation = elements(relations, "Relationship").find((each) => attribute(each, "Id") === id);
  const target = relation === undefined ? null : attribute(relation, "Target");
  if (target === null) return null;
  return target.startsWith("/") ? target.slice(1) : `xl/${target}`;
}

/** Rows that a filter or a person has hidden. */
function hiddenRowsIn(content: Buffer): number[] {
  const rows = new Set<number>();
  for (const text of pieces(content, tagBytes)) {
    if (!text.includes("hidden")) continue;
    for (const row of elements(text, "row")) {
      const number = Number(attribute(row, "r"));
      if (/^(?:1|true)$/.test(attribute(row, "hidden") ?? "") && number > 0) rows.add(number);
    }
  }
  return [...rows];
}

/** The attributes of all elements of a name, with or without a namespace. */
function elements(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<(?:\\w+:)?${name}\\s([^>]*)`, "g"))].map(
    ([, attributes = ""]) => attributes,
  );
}

function attribute(attributes: string, name: string): string | null {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes);
  return found?.[1] ?? found?.[2] ?? null;
}

/** More than the longest tag of a row. */
const tagBytes = 1_000;
/** More than the longest cell with a formula. */
const cellBytes = 100_000;

function lostIn(content: Buffer, data: readonly unknown[][]): LostCells {
  const lost = new Map<number, Map<number, LostCell>>();
  const add = (row: number, column: number, cell: LostCell) => {
    const ofRow = lost.get(row) ?? new Map<number, LostCell>();
    if (!ofRow.has(column)) lost.set(row, ofRow.set(column, cell));
  };
  const merged: string[] = [];
  for (const text of pieces(content, cellBytes)) {
    if (/<(?:\w+:)?f[\s/>]|\st\s*=\s*["']e["']/.test(text)) formulasIn(text, add);
    if (text.includes("mergeCell")) merged.push(...elements(text, "mergeCell"));
  }
  let left = mergedMax;
  for (const each of new Set(merged)) {
    const area = /^([A-Z]+)(\d+):([A-Z]+)(\d+)$/.exec(attribute(each, "ref") ?? "");
    if (area === null) continue;
    const [range, fromLetters = "", fromRow, toLetters = "", toRow] = area;
    const [top, leftmost] = [Number(fromRow), columnOf(fromLetters)];
    const hasValue =
      (data[top - 1]?.[leftmost - 1] ?? null) !== null || lost.get(top)?.has(leftmost) === true;
    if (!hasValue) continue;
    for (let row = top; row <= Number(toRow); row++)
      for (let column = leftmost; column <= columnOf(toLetters); column++) {
        if (row === top && column === leftmost) continue;
        if (left-- === 0) return lost;
        add(row, column, { kind: "merged", text: range });
      }
  }
  return lost;
}

/** Splits at the beginnings of cells, so that the work grows with the text alone. */
function formulasIn(text: string, add: (row: number, column: number, cell: LostCell) => void): void {
  for (const piece of text.split(/<(?:\w+:)?c(?=\s)/).slice(1)) {
    const end = piece.indexOf(">");
    const attributes = piece.slice(0, end);
    const [, letters = "", row] = /^([A-Z]+)(\d+)$/.exec(attribute(attributes, "r") ?? "") ?? [];
    if (end < 0 || row === undefined) continue;
    const type = attribute(attributes, "t");
    const [cell = ""] = piece.slice(end).split(/<\/(?:\w+:)?c>/, 1);
    const value = /<(?:\w+:)?v(?:\s[^>]*)?>([^<]*)</.exec(cell)?.[1] ?? null;
    if (type === "e") add(Number(row), columnOf(letters), { kind: "error", text: value ?? "" });
    else if (!/<(?:\w+:)?f[\s/>]/.test(cell)) continue;
    // The result of a formula may be an empty text, but not an empty number.
    else if (value === null || (value === "" && type !== "str"))
      add(Number(row), columnOf(letters), { kind: "unsaved", text: "" });
  }
}
