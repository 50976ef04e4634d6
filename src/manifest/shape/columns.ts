import { mediaFields } from "../../api/inputs.js";
import { nearest } from "../../text/nearest.js";

/** The columns that mean something to bulkgen, besides `params.KEY`. */
const knownColumns = ["id", "model", "prompt", ...mediaFields, "output", "repeat", "priority"] as const;

const paramPrefix = "params.";

/** A column's name as the program knows it: known ones by any capitals and spaces, params by their key as written. */
export function columnName(written: string): string {
  const trimmed = written.trim();
  const plain = trimmed.toLowerCase().replaceAll(/[\s-]+/g, "_");
  if ((knownColumns as readonly string[]).includes(plain)) return plain;
  return /^params\s*\./i.test(trimmed)
    ? paramPrefix + trimmed.slice(trimmed.indexOf(".") + 1).trim()
    : trimmed;
}

/** The parameter's key of a `params.KEY` column, or null. */
export function paramKey(column: string): string | null {
  return column.startsWith(paramPrefix) && column !== paramPrefix ? column.slice(paramPrefix.length) : null;
}

export function paramColumn(key: string): string {
  return paramPrefix + key;
}

export function isKnown(column: string): boolean {
  return (knownColumns as readonly string[]).includes(column) || paramKey(column) !== null;
}

/** One line on a column that nothing uses. */
export function unusedNote(column: string): string {
  const near = nearest(column, knownColumns) ?? nearestParam(column);
  return `column "${column}" is used by nothing${near ? `; did you mean "${near}"?` : " (it is kept for the export)"}`;
}

function nearestParam(column: string): string | undefined {
  const key = /^param(?:eter)?s?[._: -]+(.+)$/i.exec(column)?.[1];
  return key === undefined ? undefined : paramColumn(key);
}
