import { basename, dirname, resolve } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import type { MigrateFlags } from "../../../options/fleet.js";
import { count } from "../../../text/amounts.js";
import { migrateToFiles, migrateToServer } from "../../../workspace/state-folder/migrate.js";
import { findWorkspace, type Workspace } from "../../../workspace/workspace.js";
import { print } from "../../output/print.js";
import type { Call } from "../call.js";

/** `bulkgen migrate`. */
export async function migrate({ flags, machine }: Call<MigrateFlags>): Promise<undefined> {
  const { databaseUrl } = flags;
  const [from, to] = [flags.from ?? databaseUrl, flags.to ?? databaseUrl];
  const isServer = (place: string | undefined) => place !== undefined && /^postgres(ql)?:\/\//.test(place);
  if (from === undefined || to === undefined || isServer(from) === isServer(to))
    throw new EarlyExit(
      "usage",
      "expected a move between files and a database: --from .bulkgen/state.db --to postgres://USER@HOST/DATABASE, or back with the two exchanged. With BULKGEN_DATABASE_URL set, the path is enough. See `bulkgen migrate --help`.",
    );
  const [path, url] = isServer(to) ? [from, to] : [to, from];
  const { clock, random, stderr } = machine;
  const { workspace, address } = placesOf(path, url, flags, machine);
  const job = { workspace, address, clock, random };
  const migrated = await (isServer(to) ? migrateToServer(job) : migrateToFiles(job));
  const where = isServer(to) ? address.shown : workspace.stateFile;
  if (isServer(to) && !flags.quiet && !flags.json)
    stderr.write(
      `bulkgen: set BULKGEN_DATABASE_URL for every command from now on. Workspaces with state in files here do not see the requests of this one: if they use the same key, give each a part of the quota with --share\n`,
    );
  if (!isServer(to) && !flags.quiet && !flags.json && databaseUrl !== undefined)
    stderr.write("bulkgen: unset BULKGEN_DATABASE_URL: the database is refused from now on\n");
  print(flags, machine, "migration", { state: where, ...migrated }, () =>
    [
      `The state of ${workspace.root} is now in ${where}:`,
      `${count(migrated.items, "item")}, ${count(migrated.attempts, "paid request")} of this workspace, ${migrated.spendLog} in the spend log of its account.`,
    ].join(" "),
  );
}

/** The workspace whose state file or folder `path` is. Throws EarlyExit. */
function placesOf(path: string, url: string, flags: MigrateFlags, { cwd, env }: Machine) {
  const file = resolve(cwd, path);
  const named = flags.workspace ?? rootOf(file);
  const sandbox = flags.sandbox ?? false;
  const hints = { cwd, sandbox, env, named };
  const workspace: Workspace = findWorkspace(hints);
  const { root, markerFolder, stateFile } = workspace;
  if (![root, markerFolder, stateFile].includes(file))
    throw new EarlyExit(
      "usage",
      `${path} is not the state of the workspace ${root}: expected ${stateFile}. Nothing was changed.`,
    );
  const { database } = findWorkspace({ ...hints, databaseUrl: url });
  if (database === null) throw new Error("a workspace was found without its database");
  return { workspace, address: database };
}

/** The folder of a workspace by that of its state, or by the file. */
function rootOf(file: string): string {
  const folder = basename(file) === "state.db" ? dirname(file) : file;
  const marker = basename(folder) === "sandbox" ? dirname(folder) : folder;
  return basename(marker) === ".bulkgen" ? dirname(marker) : marker;
}
