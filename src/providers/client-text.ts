import { posix, win32 } from "node:path";
import { shortText } from "../text/terminal.js";

/** Characters of a provider's own words that clients are shown. */
const charactersMax = 300;

/** A path of two parts or more, on any system; what comes after `:` or another `/` is part of an address. */
const paths = /(?<![\w:/.\\])(?:[A-Za-z]:)?(?:[\\/][^\s\\/"'`<>|:;,()]+)+[\\/]?/g;

/**
 * What a program or a machine said, as one short line for clients. Of a path only the last part stays: the others say how
 * this machine is set up. `folders` are removed even if they hold characters that end a path elsewhere.
 */
export function clientText(text: string, folders: readonly string[] = []): string {
  let plain = text;
  for (const folder of folders.toSorted((a, b) => b.length - a.length))
    if (folder !== "") plain = plain.replaceAll(`${folder}/`, "").replaceAll(folder, "");
  plain = plain.replace(paths, (path) => (path.includes("\\") ? win32 : posix).basename(path));
  return shortText(plain, charactersMax);
}
