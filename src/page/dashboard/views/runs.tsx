import { useEffect, useState } from "preact/hooks";
import { wantedItems } from "../../../core/item.js";
import type { AccountOverTime, LiveRun, RunPage, Standing } from "../../../documents/page.js";
import type { RunDocument } from "../../../documents/run.js";
import { duration } from "../../../text/amounts.js";
import { counted, credits, number } from "../../parts/amounts.js";
import { Chart } from "../parts/charts.js";
import { Beginning, Trouble, Waiting } from "../parts/empty.js";
import { Gauge, QuotaGauge, ReasonNote } from "../parts/live.js";
import { NewestFiles } from "../parts/newest.js";
import { endWords, isFollowed, runStateWords } from "../parts/run-words.js";
import { Progress, StateCountList } from "../parts/states.js";
import { msOf, Time, useTime } from "../parts/time.js";
import { Words } from "../parts/words.js";
import { link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { get, withQuery } from "../server/client.js";
import { FleetPanel } from "./fleet.js";

/** How often the charts are drawn again (ms). */
export const chartMs = 5_000;

/** What is going on, and every run before. */
export function RunsView({ standing }: { standing: Standing }) {
  const now = useTime();
  const { data, error } = useAnswer<RunPage>("/api/runs");
  const account = useAnswer<AccountOverTime>(
    data !== null && data.runs.length > 0 ? "/api/account" : null,
    chartMs,
  );
  const [older, setOlder] = useState<RunPage[]>([]);
  const [olderError, setOlderError] = useState<Error | null>(null);
  const [isReading, setReading] = useState(false);
  const shownUntil = data?.older ?? null;
  // Older pages follow this first page only, and are dropped when it changes.
  useEffect(() => setOlder([]), [shownUntil]);
  const next = older.length > 0 ? (older.at(-1)?.older ?? null) : shownUntil;
  const more = async () => {
    setReading(true);
    try {
      const page = await get<RunPage>(withQuery("/api/runs", { before: next }));
      setOlder((before) => [...before, page]);
      setOlderError(null);
    } catch (reason) {
      setOlderError(reason as Error);
    }
    setReading(false);
  };
  const runs = [...(data?.runs ?? []), ...older.flatMap((page) => page.runs)];
  return (
    <div class="view runs-view">
      <h1>Runs</h1>
      {standing.running !== null && <LiveRunPanel live={standing.running} now={now} />}
      {standing.database !== null && <FleetPanel now={now} />}
      {data === null ? (
        <Waiting error={error} />
      ) : runs.length === 0 ? (
        <Beginning folder={standing.workspace} />
      ) : (
        <>
          <NewestFiles />
          {account.data !== null && <AccountCharts account={account.data} now={standing.now} />}
          <ul class="runs" aria-label="Runs, the newest first">
            {runs.map((run) => (
              <RunRow key={run.run} run={run} now={now} />
            ))}
          </ul>
          {olderError !== null && <Trouble error={olderError} />}
          {next !== null && (
            <p class="more">
              <button type="button" disabled={isReading} onClick={() => void more()}>
                Show older runs
              </button>
            </p>
          )}
        </>
      )}
    </div>
  );
}

function LiveRunPanel({ live, now }: { live: LiveRun; now: number }) {
  const { run, job, counts, spent, cap, quota, since, newestFile } = live;
  const total = wantedItems(counts);
  const done = counts.archived ?? 0;
  return (
    <section class="panel live" aria-label={`Run ${run} in progress`}>
      <header>
        <i class="pulse" />
        <h2>
          <a href={link("runs", run)}>
            <Words text={job} />
          </a>
        </h2>
        <span class="quiet">
          run {run} · for {duration(Math.max(0, Math.floor((now - since) / 1_000) * 1_000))} · process{" "}
          {live.pid} on <Words text={live.host} />
        </span>
      </header>
      <div class="live-figure">
        <p class="figure">
          {number(done)}
          <span class="quiet"> of {number(total)} archived</span>
        </p>
        <p class="quiet">end: {endWords(live, now)}</p>
      </div>
      <ReasonNote live={live} />
      <Progress counts={counts} label={`Progress of run ${run}`} large />
      <StateCountList counts={counts} />
      <div class="gauges">
        <QuotaGauge label="Requests this minute" window={quota.minute} />
        <QuotaGauge label="Requests in 24 hours" window={quota.day} />
        {cap === null ? (
          <div class="gauge">
            <span>Credits</span>
            <b>
              {number(spent)} <span class="quiet">no cap</span>
            </b>
          </div>
        ) : (
          <Gauge label="Credits" used={spent} limit={cap} />
        )}
      </div>
      {quota.blockedUntil !== null && quota.blockedUntil > now && (
        <p class="quiet">
          The service has asked for a pause of{" "}
          {duration(Math.ceil((quota.blockedUntil - now) / 1_000) * 1_000)}.
        </p>
      )}
      {newestFile !== null && (
        <p class="quiet">
          newest file: <Words text={newestFile} />
        </p>
      )}
    </section>
  );
}

function AccountCharts({
  account: { stepMs, spent, requests },
  now,
}: {
  account: AccountOverTime;
  now: number;
}) {
  const times = [...spent, ...requests].map(({ at }) => at);
  const [from, setFrom] = useState(0);
  const first = Math.min(...times, now - stepMs * 12);
  useEffect(() => setFrom(first), [first]);
  const to = Math.ceil(now / stepMs) * stepMs;
  const sum = (amounts: readonly { amount: number }[]) =>
    amounts.reduce((all, { amount }) => all + amount, 0);
  if (from === 0) return null;
  const shape = {
    from: Math.floor(from / stepMs) * stepMs - stepMs,
    to,
    stepMs,
    kind: "steps",
    forecast: null,
    level: null,
  } as const;
  return (
    <section class="charts" aria-label="The account over the last days">
      <Chart
        label="Credits spent, last days"
        words={credits(sum(spent))}
        data={{ ...shape, amounts: spent }}
      />
      {requests.length > 0 && (
        <Chart
          label="API requests, last 24 hours"
          words={counted(sum(requests), "request")}
          data={{ ...shape, amounts: requests }}
        />
      )}
    </section>
  );
}

function RunRow({ run, now }: { run: RunDocument; now: number }) {
  const { run: id, job, counts, startedAt, endedAt, alive, beganBy, edition } = run;
  const { spent, pending, lost } = run.credits;
  return (
    <li>
      <a class="run" href={link("runs", id)}>
        <span class="run-name">
          <b>
            <Words text={job} />
          </b>
          <span class="quiet">
            run {id}
            {edition !== "" && (
              <>
                {" "}
                · edition <Words text={edition.replace(/^#/, "")} />
              </>
            )}
            {beganBy?.schedule !== undefined && (
              <>
                {" "}
                · schedule <Words text={beganBy.schedule} />
              </>
            )}
          </span>
        </span>
        <span class="run-progress">
          {isFollowed(run) ? (
            <span class="quiet">a later run of this job followed</span>
          ) : (
            <>
              <Progress counts={counts} label={`Run ${id}`} />
              <StateCountList counts={counts} />
            </>
          )}
        </span>
        <span class="run-facts">
          <span>{credits(spent)}</span>
          {pending > 0 && <span class="quiet">{number(pending)} pending</span>}
          {lost > 0 && <span class="quiet">up to {number(lost)} lost</span>}
        </span>
        <span class="run-facts">
          <span class={`run-state ${alive ? "alive" : run.state}`}>{runStateWords(run)}</span>
          <span class="quiet">
            <Time at={startedAt} now={now} />
            {endedAt !== null && `, ${duration(Math.max(1_000, msOf(endedAt) - msOf(startedAt)))}`}
          </span>
        </span>
      </a>
    </li>
  );
}
