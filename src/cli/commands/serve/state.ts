import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import { ServedKeys } from "../../../serve/keys.js";
import { Journal } from "../../../serve/works/journal.js";
import type { SqliteState } from "../../../service/state/sqlite-state.js";
import { shellWord } from "../../../text/shell.js";
import { notAgreed, unagreed } from "../../../trust/trust.js";
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
  const sharedFolder = sharedFolderOf(machine.env);
  const values = stateValues(folder, machine);
  const asked = notAgreed(sharedFolder, folder, values);
  const trust = `bulkgen trust${flags.state === undefined ? "" : ` --state ${shellWord(flags.state)}`}`;
  if (asked.length > 0) throw unagreed(folder, asked, trust);
  if (make && values.length === 0) agreeToState(folder, machine, sharedFolder);
  const state = openState(folder);
  try {
    return use({ state, keys: new ServedKeys(state, machine.random), journal: new Journal(state) });
  } finally {
    state.close();
  }
}
