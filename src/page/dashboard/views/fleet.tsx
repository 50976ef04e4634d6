import type { FleetStanding } from "../../../documents/page.js";
import { duration } from "../../../text/amounts.js";
import { counted, number } from "../../parts/amounts.js";
import { Trouble } from "../parts/empty.js";
import { Words } from "../parts/words.js";
import { useAnswer } from "../server/answer.js";

const refreshMs = 3_000;

/** Who downloads for a workspace that many machines share. */
export function FleetPanel({ now }: { now: number }) {
  const { data: fleet, error } = useAnswer<FleetStanding>("/api/fleet", refreshMs);
  if (error !== null && fleet === null) return <Trouble error={error} />;
  if (fleet === null) return null;
  const { workers, waiting, longestWaitMs, active } = fleet;
  return (
    <section class="panel" aria-label="The fleet">
      <header>
        <h2>{counted(workers.length, "worker")}</h2>
        <span class="quiet">
          {counted(active, "download")} in progress, {number(waiting)} waiting
          {longestWaitMs !== null && `, the first for ${seconds(longestWaitMs)}`}
        </span>
      </header>
      {workers.length === 0 ? (
        <p class="quiet">
          Start one on any machine with <code>bulkgen worker</code>.
        </p>
      ) : (
        <ul class="workers">
          {workers.map((worker) => (
            <li key={`${worker.host} ${worker.pid} ${worker.does}`}>
              <b>
                <Words text={worker.host} />
              </b>
              <span class="quiet">
                {doing(worker)}
                {worker.does !== "submit" &&
                  ` · ${number(worker.busy)} of ${number(worker.downloads)} in progress`}
              </span>
              {worker.does !== "submit" && (
                <span>
                  {number(worker.done)} done <span class="quiet">{pace(worker, now)}</span>
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

type Worker = NonNullable<FleetStanding>["workers"][number];

function doing({ does, downloads }: Worker): string {
  if (does === "submit") return "stands by";
  if (downloads === 0) return "finishing";
  return does === "run" ? "runs, and downloads" : does === "standby" ? "downloads, stands by" : "downloads";
}

/** How fast it has been since it began. */
function pace({ done, startedAt }: Worker, now: number): string {
  const minutes = (now - startedAt) / 60_000;
  return minutes < 1 ? "" : `${number(Math.round((done / minutes) * 10) / 10)} a minute`;
}

function seconds(ms: number): string {
  return duration(Math.max(1_000, Math.floor(ms / 1_000) * 1_000));
}
