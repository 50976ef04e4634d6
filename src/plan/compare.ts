import { mediaFields } from "../api/inputs.js";
import { normalText } from "../core/identity.js";
import type { NewItem } from "../core/store.js";
import { isLocalPath } from "../manifest/local-inputs.js";
import type { ChangedRow, Existing, Plan } from "./plan.js";

export type Comparison = Pick<Plan, "changed" | "vanished" | "renamed" | "restored">;

/**
 * What became of the manifest since the job was last planned. Items of rows that are wrong now did not vanish: their
 * row is still there, only nobody can tell yet what it asks for.
 */
export function compare(
  items: readonly NewItem[],
  existing: readonly Existing[],
  wrongIds: ReadonlySet<string>,
): Comparison {
  const wanted = new Set(items.map((item) => item.key));
  const known = new Set(existing.map((item) => item.key));
  const gone = existing.filter((item) => !wanted.has(item.key) && !wrongIds.has(item.rowId));
  // The newest comes last, and it is the one that the row was until now.
  const goneById = new Map(gone.map((item) => [item.rowId, item]));
  const changed = items.flatMap((item): ChangedRow[] => {
    const old = known.has(item.key) ? undefined : goneById.get(item.rowId);
    const fields = old ? differences(old, item) : [];
    if (!old || fields.length === 0) return [];
    return [{ rowNumber: item.rowNumber, rowId: item.rowId, key: item.key, oldKey: old.key, fields }];
  });
  const newKeys = new Map(changed.map((row) => [row.oldKey, row.key]));
  const vanished = gone
    .filter((item) => item.state !== "dropped")
    .map(({ key, rowId, state }) => ({ key, rowId, state, replacedBy: newKeys.get(key) ?? null }));
  return { changed, vanished, ...keptForNothing(items, existing) };
}

/** Archived items that the sheet now calls otherwise, or asks for again. */
function keptForNothing(
  items: readonly NewItem[],
  existing: readonly Existing[],
): Pick<Comparison, "renamed" | "restored"> {
  const archived = new Map(existing.filter(({ state }) => state === "archived").map((old) => [old.key, old]));
  const kept = items.flatMap((item) => {
    const old = archived.get(item.key);
    return old ? [{ item, old }] : [];
  });
  return {
    renamed: kept.flatMap(({ item: { rowNumber, rowId, name }, old }) =>
      old.name === undefined || old.name === name ? [] : [{ rowNumber, rowId, from: old.name, to: name }],
    ),
    restored: kept.flatMap(({ item: { rowNumber, rowId, key }, old }) =>
      old.vanished === true ? [{ rowNumber, rowId, key }] : [],
    ),
  };
}

type Content = Pick<NewItem, "model" | "prompt" | "params" | "inputs">;

function differences(old: Content, now: Content): ChangedRow["fields"] {
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
    .map((field) => ({ field, from: "the file as it was", to: "the file as it is" }));
}
