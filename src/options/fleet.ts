import { defaultRunOptions } from "../core/next/options.js";
import { type FlagsOf, option } from "./definition.js";
import { outFlag } from "./run.js";
import { type CarryFlags, carryFlags, dailyCapFlags, serviceFlags, workspaceFlags } from "./shared.js";
import { anyText, FlagError, positive } from "./values.js";

/** Flags of the commands for a workspace that many machines share. */

const placeText = "PostgreSQL address, or the state.db of a workspace";
export const migrateFlags = {
  from: option("<place>", `where the state is: ${placeText} (default: --database-url)`, anyText, {
    isPath: true,
    inFiles: "never",
  }),
  to: option("<place>", `where it will be: ${placeText} (default: --database-url)`, anyText, {
    isPath: true,
    inFiles: "never",
  }),
  ...workspaceFlags,
};
export type MigrateFlags = FlagsOf<typeof migrateFlags>;

type WorkerPart = "archive" | "submit,poll" | "submit,poll,archive";

/** The run's one process both submits and polls. */
function parseParts(text: string): WorkerPart {
  const parts = new Set(
    text
      .toLowerCase()
      .split(",")
      .map((part) => part.trim()),
  );
  const known = ["submit", "poll", "archive"].filter((part) => parts.delete(part)).join(",");
  if (parts.size === 0 && (known === "archive" || known.startsWith("submit,poll")))
    return known as WorkerPart;
  throw new FlagError(
    `expected archive, or submit,poll (whoever submits also polls), got ${JSON.stringify(text)}`,
  );
}
const workerParts = Object.assign(parseParts, { choices: ["archive", "submit,poll"] });

// A worker never waits for the lock, and follows many runs.
const { ifLocked: _ifLocked, work: _work, events: _events, ...carriedOn } = carryFlags;
const { json: _json, ...service } = serviceFlags;

export const workerFlags = {
  lanes: option(
    "<n>",
    "submits in flight at once in a run that this worker continues (default: those of the run)",
    positive,
  ),
  downloads: option("<n>", "downloads at once", positive, { default: defaultRunOptions.downloads }),
  only: option(
    "<what>",
    "archive: only download, which needs no key; submit,poll: download nothing, only take over a run whose process is gone",
    workerParts,
    { inFiles: "never" },
  ),
  out: {
    ...outFlag,
    describe: "where this host has the runs' output folder (default: outputs in the workspace)",
  },
  ...service,
  ...carriedOn,
  ...dailyCapFlags,
};
export type WorkerFlags = FlagsOf<typeof workerFlags> & Omit<CarryFlags, "ifLocked" | "work" | "events">;
