import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "./environment.js";

/** Throws an error of the system's kind for a user without a home folder, as in a container. */
export function homeFolder(environment: Environment): string {
  if (environment["HOME"]) return environment["HOME"];
  try {
    return homedir();
  } catch (error) {
    const message =
      "this user has no home folder: set HOME to a folder that it may write, or XDG_STATE_HOME and XDG_CONFIG_HOME";
    throw Object.assign(new Error(message, { cause: error }), { code: "ENOENT" });
  }
}

/** A path with `~` at its beginning, as a shell would have written it: it does not where the path follows `=` or a quote. */
export function fromHome(path: string, environment: Environment): string {
  if (path !== "~" && !path.startsWith("~/")) return path;
  return join(homeFolder(environment), path.slice(1));
}
