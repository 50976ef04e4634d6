import type { DroppedSheet } from "../../../documents/page.js";
import { formatsByExtension } from "../../../manifest/formats/extensions.js";
import { shellWord } from "../../../text/shell.js";
import { visible } from "../../parts/visible.js";
import { go, link } from "../route.js";
import { postFile, ServerRefusal, withQuery } from "./client.js";
import { tellError } from "./commands.js";

export const sheetEndings = Object.keys(formatsByExtension).join();

/** Keeps a dropped file in the workspace, and opens it. A page does not learn where a folder lies, so its rows are made elsewhere. */
export async function openDropped(
  files: FileList | null | undefined,
  { isFolder = false }: { isFolder?: boolean } = {},
): Promise<void> {
  const file = files?.[0];
  if (file === undefined) return;
  try {
    if (isFolder)
      throw new Error(
        `${visible(file.name)} is a folder, and a browser does not say where it lies. In a terminal, where the folder is: bulkgen run ${shellWord(file.name)} --model MODEL makes a row of each picture, video or sound in it.`,
      );
    const sheet = await keep(file);
    // With its version, so that the view of an earlier one is drawn anew.
    if (sheet !== null) go(withQuery(link("sheet", sheet.file), { version: sheet.version }));
  } catch (error) {
    tellError(error);
  }
}

/** Null if another sheet of its name is there, and stays. */
async function keep(file: File): Promise<DroppedSheet | null> {
  const kept = (replace: string | null) =>
    postFile<DroppedSheet>(withQuery("/api/sheets", { name: file.name, replace }), file);
  try {
    return await kept(null);
  } catch (error) {
    if (!(error instanceof ServerRefusal && error.kind === "exists")) throw error;
    const question = `${visible(error.message)}. Replace it? Changes made to it on this page will be lost.`;
    return confirm(question) ? kept("yes") : null;
  }
}
