import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "./environment.js";

/** A path with `~` at its beginning, as a shell would have written it: it does not where the path follows `=` or a quote. */
export function fromHome(path: string, environment: Environment): string {
  if (path !== "~" && !path.startsWith("~/")) return path;
  return join(environment["HOME"] || homedir(), path.slice(1));
}
