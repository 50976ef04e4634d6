import { mediaFields } from "../api/inputs.js";
import { normalText } from "../core/identity.js";
import type { ChangedRow, RowContent } from "../core/ports/draft.js";
import { isLocalPath } from "../manifest/local-inputs.js";

/** What a row asks for now, and asked for otherwise before. */
export function differences(old: RowContent, now: RowContent): ChangedRow["fields"] {
  const params = new Set([...Object.keys(old.params), ...Object.keys(now.params)]);
  const pairs: [string, string | null | undefined, string | null | undefined][] = [
    ["model", old.model, now.model],
    ["prompt", old.prompt, now.prompt],
    ...[...params]
      .sort()
      .map((key): [string, string | undefined, string | undefined] => [
        `params.${key}`,
        old.params[key],
        now.params[key],
      ]),
    ...mediaFields.map((field): [string, string | undefined, string | undefined] => [
      field,
      old.inputs[field],
      now.inputs[field],
    ]),
  ];
  const different = pairs.filter(([, from, to]) => normalText(from ?? "") !== normalText(to ?? ""));
  if (different.length > 0) {
    return different.map(([field, from, to]) => ({ field, from: from ?? null, to: to ?? null }));
  }
  // All is written as before, so the content of a file must be another one.
  return mediaFields
    .filter((field) => isLocalPath(now.inputs[field] ?? "https:"))
    .map((field) => ({ field, from: "the previous file content", to: "the current file content" }));
}
