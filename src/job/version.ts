import { readFileSync } from "node:fs";
import { packageFile } from "../package-file.js";

/** bulkgen's own version. */
export function ownVersion(): string {
  const text = readFileSync(packageFile("package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
