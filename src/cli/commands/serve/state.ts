import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import { ServedKeys } from "../../../serve/keys.js";
import { Journal } from "../../../serve/works/journal.js";
import type { SqliteState } from "../../../service/state/sqlite-state.js";
import { markerName, sharedFolderOf } from "../../../workspace/workspace.js";
import {
  agreeToState,
  openState,
  refuseLinkedState,
  stateFile,
  stateValues,
} from "../../settings/service-state.js";

/** The folder with the state of a served models file. Throws EarlyExit if it is reached by a link. */
export function servedFolder(
  { state }: { state?: string },
  { cwd }: Pick<Machine, "cwd">,
  file = "models.yaml",
): string {
  if (state !== undefined) return resolve(cwd, state);
  const root = dirname(resolve(cwd, file));
  const folder = join(root, markerName, "service");
  refuseLinkedState(root, folder);
  return folder;
}

/** Opens the books of a service, whether it is running or not, and closes them afterwards. Throws EarlyExit if there are none. */
export function withBooks<Result>(
  flags: { state?: string },
  machine: Machine,
  { make = false }: { make?: boolean },
  use: (books: { state: SqliteState; keys: ServedKeys; journal: Journal }) => Result,
): Result {
  const folder = servedFolder(flags, machine);
  if (!make && !existsSync(stateFile(folder)))
    throw new EarlyExit(
      "usage",
      `there is no service in ${folder}. Give the folder of its models file's .bulkgen/service with --state.`,
    );
  if (stateValues(folder, machine).length === 0) agreeToState(folder, machine, sharedFolderOf(machine.env));
  const state = openState(folder);
  try {
    return use({ state, keys: new ServedKeys(state, machine.random), journal: new Journal(state) });
  } finally {
    state.close();
  }
}
