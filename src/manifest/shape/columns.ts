import { mediaFields } from "../../api/inputs.js";
import { nearest } from "../../text/nearest.js";
import { trimmedText } from "../../text/trimmed.js";

/** The columns that bulkgen knows, besides `params.KEY`. */
const knownColumns = [
  "id",
  "when",
  "model",
  "prompt",
  ...mediaFields,
  "output",
  "repeat",
  "priority",
] as const;

const paramPrefix = "params.";

/** The canonical name of a column: known columns ignore case and spaces, params keep their key as written. */
export function columnName(written: string): string {
  const trimmed = trimmedText(written);
  const plain = foldedName(written);
  if ((knownColumns as readonly string[]).includes(plain)) return plain;
  return /^params\s*\./i.test(trimmed)
    ? paramPrefix + trimmedText(trimmed.slice(trimmed.indexOf(".") + 1))
    : trimmed;
}

/** The variable in which a command after a file gets a value of this name, behind a prefix: `Product name` is PRODUCT_NAME. */
export function environmentName(name: string): string {
  return name.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
}

/** Before the name of a column in the environment of a command after a file. */
export const columnPrefix = "BULKGEN_COLUMN_";

/** A column as spreadsheets name it: the 28th is AB. */
export function columnLetters(number: number): string {
  const before = Math.floor((number - 1) / 26);
  const last = String.fromCharCode(65 + ((number - 1) % 26));
  return before === 0 ? last : columnLetters(before) + last;
}

/** A name without its capitals, spaces and hyphens: `Aspect Ratio` is `aspect_ratio`. */
export function foldedName(written: string): string {
  return trimmedText(written)
    .toLowerCase()
    .replaceAll(/[\s-]+/g, "_");
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

/** The name of a column that an export adds, in a sheet that already has a column of that name. */
export function prefixedName(filled: string): string {
  return `bulkgen_${filled}`;
}

/** What an export adds to a sheet, in this order. A sheet that an earlier version exported lacks the columns that came later. */
export const exportTable = [
  { name: "item", cameLater: false },
  { name: "file", cameLater: false },
  { name: "picked", cameLater: false },
  { name: "approval", cameLater: true },
  { name: "state", cameLater: false },
  { name: "reason", cameLater: false },
  { name: "credits", cameLater: false },
  { name: "task_id", cameLater: false },
  { name: "external_task_id", cameLater: false },
  { name: "evidence", cameLater: false },
] as const;

export type FilledColumn = (typeof exportTable)[number]["name"];

/** The names of the columns that an export adds, in their order. */
export const filledColumns: readonly FilledColumn[] = exportTable.map(({ name }) => name);

/** The columns that an export added to this sheet, in their order; null for a sheet that is not a whole export. */
export function exportedColumns(columns: readonly string[]): string[] | null {
  const found = exportTable.map(({ name, cameLater }) => {
    const prefixed = prefixedName(name);
    const own = columns.includes(prefixed) ? prefixed : name;
    return { own, isThere: columns.includes(own) || cameLater };
  });
  return found.every(({ isThere }) => isThere) ? found.map(({ own }) => own) : null;
}

/** Notes about columns that are not used: one for each that looks like a known one, and one for all others. */
export function unusedNotes(columns: readonly string[]): string[] {
  const kept: string[] = [];
  const slips: string[] = [];
  for (const column of new Set(columns)) {
    const near = nearest(column, knownColumns) ?? nearestParam(column);
    if (foldedName(column) === "approve")
      slips.push(
        `column "${column}" is not used: nothing waits for approval because of it; a job file asks for it, for a step or for all items`,
      );
    else if (near) slips.push(`column "${column}" is not used; did you mean "${near}"?`);
    else kept.push(`"${column}"`);
  }
  if (kept.length === 0) return slips;
  const more = kept.length > keptShown ? ` and ${kept.length - keptShown} more` : "";
  const named = kept.slice(0, keptShown).join(", ") + more;
  const note =
    kept.length === 1
      ? `column ${named} is not used (it is kept for the export)`
      : `columns ${named} are not used (they are kept for the export)`;
  return [...slips, note];
}

const keptShown = 5;

function nearestParam(column: string): string | undefined {
  const key = /^param(?:eter)?s?[._: -]+(.+)$/i.exec(column)?.[1];
  return key === undefined ? undefined : paramColumn(key);
}

/** `cup`, `cup-2`, `cup-3`: the first copy keeps the plain name, so that adding copies renames no file. */
export function copyName(name: string, copy: number): string {
  return copy === 1 ? name : `${name}-${copy}`;
}

/** The wanted output name without a media extension: the extension comes from the content. */
export function outputName(output: string): string {
  return output.replace(/\.(png|jpe?g|webp|gif|avif|mp4|webm|mov|mp3|wav|ogg|m4a|flac)$/i, "");
}

/** The wanted name of a row's copy, from 1; null if its row wants none. */
export function copyOutput(
  { output, copyOutputs }: { output: string | null; copyOutputs: readonly string[] | null },
  copy: number,
): string | null {
  const own = copyOutputs?.[copy - 1];
  if (own !== undefined) return outputName(own);
  return output === null ? null : copyName(outputName(output), copy);
}

/** A name with the label of a combination. */
export function labelled(name: string, label: string): string {
  return label === "" ? name : `${name}-${label}`;
}
