import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import type { SourceFile } from "./syntax.js";

/** The text files of the checkout: tracked, or new and not ignored. */
export function checkoutFiles(): SourceFile[] {
  const list = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    encoding: "utf8",
  });
  return list
    .split("\0")
    .filter((path) => path !== "" && existsSync(path))
    .map((path) => ({ path, text: readFileSync(path, "utf8") }))
    .filter((file) => !file.text.includes("\0"));
}
