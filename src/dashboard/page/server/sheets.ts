import type { DroppedSheet } from "../../shapes.js";
import { go, link } from "../route.js";
import { postFile, withQuery } from "./client.js";
import { tellError } from "./commands.js";

export const sheetEndings = ".csv,.tsv,.xlsx,.json,.jsonl,.yaml,.yml";

/** Keeps a dropped file in the workspace, and opens it. */
export async function openDropped(files: FileList | null | undefined): Promise<void> {
  const file = files?.[0];
  if (file === undefined) return;
  try {
    const sheet = await postFile<DroppedSheet>(withQuery("/api/sheets", { name: file.name }), file);
    go(link("sheet", sheet.file));
  } catch (error) {
    tellError(error);
  }
}
