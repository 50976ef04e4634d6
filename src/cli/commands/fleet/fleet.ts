import { localTime } from "../../../core/local-time.js";
import { fleetOf } from "../../../job/run/fleet-worker.js";
import { count } from "../../../text/amounts.js";
import type { WorkspaceFlags } from "../../flags/shared.js";
import { print } from "../../output/print.js";
import { workspaceOf } from "../../settings/workspace.js";
import type { Call } from "../call.js";

const doing = {
  run: "runs, and downloads",
  archive: "downloads",
  standby: "downloads, and stands by for a run whose process is gone",
} as const;

/** `bulkgen fleet`. */
export async function fleet({ flags, machine }: Call<WorkspaceFlags>): Promise<undefined> {
  const found = await fleetOf(workspaceOf(flags, machine));
  print(flags, machine, found, () => {
    const { workers, waiting, active, lock } = found;
    const run =
      lock === null
        ? "no run is in progress"
        : `${lock.run === null ? "a run" : `run ${lock.run}`} is in progress on ${lock.host} (process ${lock.pid})`;
    const lines = workers.map(
      ({ host, pid, version, downloads, busy, does, startedAt }) =>
        `${host} (process ${pid}, bulkgen ${version}): ${downloads === 0 ? "finishing" : doing[does]}; ${busy} of ${downloads} downloads in progress, since ${localTime(startedAt)}`,
    );
    return [
      `${run}; ${count(active, "download")} in progress, ${waiting} waiting`,
      ...(lines.length === 0 ? ["no workers: start some with `bulkgen worker`"] : lines),
    ].join("\n");
  });
}
