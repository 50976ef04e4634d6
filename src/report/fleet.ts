import type { SeenWorker } from "../fleet/job.js";
import type { fleetOf } from "../job/run/fleet-worker.js";
import { count, wait } from "../text/amounts.js";
import { terminalLines } from "../text/terminal.js";
import { iso, localTime } from "../text/times.js";

export type Fleet = Awaited<ReturnType<typeof fleetOf>>;

/** What `bulkgen fleet --json` prints. */
export function fleetJson({ workers, waiting, longestWaitMs, active, lock }: Fleet) {
  return {
    workers: workers.map(({ startedAt, ...worker }) => ({ ...worker, startedAt: iso(startedAt) })),
    waiting,
    longestWaitMs,
    active,
    lockOwner: lock && { host: lock.host, pid: lock.pid, since: iso(lock.since), run: lock.run },
  };
}

const doing: Readonly<Record<SeenWorker["does"], string>> = {
  run: "runs, and downloads",
  archive: "downloads",
  standby: "downloads, and stands by for a run whose process is gone",
  submit: "stands by for a run whose process is gone",
};

/** What `bulkgen fleet` prints. */
export function fleetText({ workers, waiting, longestWaitMs, active, lock }: Fleet): string {
  const run =
    lock === null
      ? "no run is in progress"
      : `${lock.run === null ? "a run" : `run ${lock.run}`} is in progress on ${lock.host} (process ${lock.pid})`;
  const lines = workers.map(({ host, pid, version, downloads, busy, done, does, startedAt }) => {
    const worker = `${host} (process ${pid}, bulkgen ${version})`;
    if (does === "submit") return `${worker}: ${doing[does]}, since ${localTime(startedAt)}`;
    return `${worker}: ${downloads === 0 ? "finishing" : doing[does]}; ${busy} of ${downloads} downloads in progress, ${done} done since ${localTime(startedAt)}`;
  });
  const first = longestWaitMs === null ? "" : `, the first for ${wait(longestWaitMs)}`;
  const text = [
    `${run}; ${count(active, "download")} in progress, ${waiting} waiting${first}`,
    ...(lines.length === 0 ? ["no workers: start some with `bulkgen worker`"] : lines),
  ].join("\n");
  return terminalLines(text);
}
