import { type Document, isObject, type Plain } from "../formats/document.js";
import { columnName, paramColumn } from "../shape/columns.js";
import type { Mark } from "../shape/manifest.js";
import type { Written } from "../shape/source.js";

/** The cells of a checked object, with their places. Nested params become `params.KEY`. */
export function writtenAt(
  document: Document,
  object: { [key: string]: Plain },
  path: readonly PropertyKey[],
): Written {
  const found = Object.entries(object).flatMap(([key, value]): [string, string, Mark][] => {
    if (key === "params" && isObject(value)) {
      return Object.entries(value).flatMap(([name, text]) =>
        isText(text) ? [[paramColumn(name.trim()), text, document.markAt([...path, key, name])]] : [],
      );
    }
    return isText(value) ? [[columnName(key), value, document.markAt([...path, key])]] : [];
  });
  return {
    cells: Object.fromEntries(found.map(([column, text]) => [column, text])),
    marks: Object.fromEntries(found.map(([column, , mark]) => [column, mark])),
  };
}

function isText(value: Plain): value is string {
  return typeof value === "string" && value.trim() !== "";
}
