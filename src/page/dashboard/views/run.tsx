import { useState } from "preact/hooks";
import { wantedItems } from "../../../core/item.js";
import type { LiveRun, ProgressOverTime, RunDetail, Standing, ZipReady } from "../../../documents/page.js";
import { duration } from "../../../text/amounts.js";
import { counted, credits, number } from "../../parts/amounts.js";
import { Icon } from "../../parts/icon.js";
import { Chart } from "../parts/charts.js";
import { Waiting } from "../parts/empty.js";
import { QuotaGauge, ReasonNote } from "../parts/live.js";
import { NewestFiles } from "../parts/newest.js";
import { endWords, goesOn, isFollowed, runStateWords } from "../parts/run-words.js";
import { Progress, StateBadge, StateCountList } from "../parts/states.js";
import { msOf, Time, useTime } from "../parts/time.js";
import { Clamped, Words } from "../parts/words.js";
import { go, link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { post } from "../server/client.js";
import { propose, showNote, tellError } from "../server/commands.js";
import { ItemTable } from "./item-table.js";
import { NextStep } from "./next-step.js";
import { chartMs } from "./runs.js";

/** One run: its progress, its cost, the forecast, its troubles, and every item. */
export function RunView({ id, standing, query }: { id: number; standing: Standing; query: URLSearchParams }) {
  const now = useTime();
  const { data: run, error } = useAnswer<RunDetail>(`/api/runs/${id}`);
  const progress = useAnswer<ProgressOverTime>(`/api/runs/${id}/progress`, chartMs);
  if (run === null) return <Waiting error={error} />;
  const live = standing.running?.run === id ? standing.running : null;
  const counts = live?.counts ?? run.counts;
  const showItems = (state: string) => go(`${link("runs", id)}${state === "" ? "" : `?state=${state}`}`);
  return (
    <div class="view">
      <p class="trail">
        <a href="#/runs">Runs</a>
      </p>
      <header class="head">
        <div>
          <h1>
            <Words text={run.job} /> <span class="quiet">run {id}</span>
          </h1>
          <p class="quiet">
            <span class={`run-state ${run.alive ? "alive" : run.state}`}>{runStateWords(run)}</span> · started{" "}
            <Time at={run.startedAt} now={now} />
            {run.beganBy?.schedule !== undefined && (
              <>
                {" "}
                by schedule <Words text={run.beganBy.schedule} />
              </>
            )}{" "}
            · <Words text={below(standing.workspace, run.manifest)} />
          </p>
        </div>
        <RunActions run={run} />
      </header>
      <section class="panel" aria-label="Progress">
        <div class="live-figure">
          <p class="figure">
            {number(counts.archived ?? 0)}
            <span class="quiet"> of {number(wantedItems(counts))} archived</span>
          </p>
          {live !== null && <p class="quiet">end: {endWords(live, now)}</p>}
        </div>
        {live !== null && <ReasonNote live={live} />}
        <Progress counts={counts} label={`Progress of run ${id}`} large />
        <StateCountList counts={counts} />
        {isFollowed(run) && (
          <p class="quiet">A later run of this job followed. The gallery has the files of both.</p>
        )}
      </section>
      {run.stops.length > 0 && (
        <section class="panel warn" aria-label="Why it ended">
          {run.stops.map((reason) => (
            <Clamped text={reason} key={reason} />
          ))}
        </section>
      )}
      <Figures run={run} live={live} now={now} workspace={standing.workspace} />
      <NewestFiles run={id} />
      {progress.data !== null && <RunCharts progress={progress.data} run={run} now={standing.now} />}
      <Trouble run={run} onState={showItems} />
      <ItemTable run={id} counts={counts} state={query.get("state") ?? ""} onState={showItems} />
    </div>
  );
}

function RunActions({ run }: { run: RunDetail }) {
  const { run: id, job, alive, canResume, counts, state, awaiting } = run;
  const waits = !alive && awaiting > 0;
  const failed = counts.failed ?? 0;
  const open = wantedItems(counts) - (counts.archived ?? 0);
  const openWords = `${counted(open, "item")} of ${job} ${open === 1 ? "is" : "are"} not archived`;
  return (
    <div class="actions">
      {alive && (
        <button
          type="button"
          onClick={() =>
            propose({
              title: `Pause run ${id}`,
              words:
                "The run stops now. Tasks at the service go on there, and Resume collects them before it submits the rest.",
              act: { do: "pause", run: id },
              price: null,
              verb: "Pause",
            })
          }
        >
          Pause
        </button>
      )}
      {(alive || (canResume && state !== "cancelled")) && (
        <button
          type="button"
          onClick={() =>
            propose({
              title: `Cancel run ${id}`,
              words: `Nothing more is submitted, for good. What is paid for is ${alive ? "still collected" : "collected by Resume"}. ${openWords}${alive ? " yet" : ""}.`,
              act: { do: "cancel", run: id },
              price: null,
              verb: "Cancel the run",
              isGrave: true,
            })
          }
        >
          Cancel
        </button>
      )}
      {waits && (
        <a class="button main" href={link("decide", "approval")}>
          Approve {counted(awaiting, "item")}…
        </a>
      )}
      {goesOn(run) && <NextStep run={run} />}
      {!alive && canResume && (
        <button
          type="button"
          class={waits || goesOn(run) ? "" : "main"}
          onClick={() =>
            propose({
              title: `Resume run ${id}`,
              words: `${openWords}. The run goes on where it stopped; nothing archived is paid twice.`,
              act: { do: "resume", run: id, price: 0 },
              price: "asked",
              verb: "Resume",
            })
          }
        >
          Resume
        </button>
      )}
      {failed > 0 && <RetryButton run={id} failed={failed} />}
      {(counts.archived ?? 0) > 0 && (
        <>
          <a class="button" href={`${link("gallery")}?run=${id}`}>
            Gallery
          </a>
          <ZipButton body={{ run: id }} words="Download ZIP" />
          <ZipButton body={{ run: id, final: true }} words="Final set" />
        </>
      )}
    </div>
  );
}

/** `failed` is null if not all of them are known. */
export function RetryButton({ run, failed }: { run: number; failed: number | null }) {
  return (
    <button
      type="button"
      onClick={() =>
        propose({
          title: `Submit what failed in run ${run} again`,
          words: `${failed === null ? "All failed items are" : failed === 1 ? "The failed item is" : `${number(failed)} failed items are`} submitted again. An item fails again if its prompt or its input was the reason.`,
          act: { do: "retry", run, price: 0 },
          price: "asked",
          verb: "Submit again",
        })
      }
    >
      Submit {failed === null ? "all failed items" : counted(failed, "failed item")} again
    </button>
  );
}

export function ZipButton({ body, words }: { body: object; words: string }) {
  const [isBusy, setBusy] = useState(false);
  const load = async () => {
    setBusy(true);
    try {
      const { src, name, note } = await post<ZipReady>("/api/zip", body);
      const anchor = document.createElement("a");
      anchor.href = src;
      anchor.download = name;
      anchor.click();
      if (note !== null) showNote(note);
    } catch (error) {
      tellError(error);
    }
    setBusy(false);
  };
  return (
    <button type="button" disabled={isBusy} onClick={() => void load()}>
      <Icon name="download" /> {isBusy ? "Preparing…" : words}
    </button>
  );
}

interface FiguresProps {
  run: RunDetail;
  live: LiveRun | null;
  now: number;
  workspace: string;
}

/** A path in the workspace without the way to it. */
function below(workspace: string, path: string): string {
  const isBelow = path.startsWith(workspace) && /[\\/]/.test(path.charAt(workspace.length));
  return isBelow ? path.slice(workspace.length + 1) : path;
}

function Figures({ run, live, now, workspace }: FiguresProps) {
  const { forecast, requests, startedAt, endedAt, cap } = run;
  const { spent, pending, lost } = run.credits;
  const took = Math.max(
    1_000,
    Math.floor(((endedAt === null ? now : msOf(endedAt)) - msOf(startedAt)) / 1_000) * 1_000,
  );
  const isOver = endedAt !== null || !run.alive;
  return (
    <section class="figures" aria-label="Figures">
      <div class="panel">
        <h2>Credits</h2>
        <p class="figure">{number(spent)}</p>
        <p class="quiet">
          {pending > 0 ? `${number(pending)} more pending` : "nothing pending"}
          {lost > 0 && ` · up to ${number(lost)} lost`}
          {cap !== null && ` · cap ${number(cap)}`}
        </p>
        {cap !== null && (
          <meter
            min={0}
            max={Math.max(1, cap)}
            value={spent + pending + lost}
            aria-label="Credits of the cap"
          />
        )}
      </div>
      <div class="panel">
        <h2>Forecast and {isOver ? "result" : "so far"}</h2>
        <table class="compare">
          <thead>
            <tr>
              <td />
              <th scope="col">forecast</th>
              <th scope="col">{isOver ? "actual" : "so far"}</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">requests</th>
              <td>{forecast === null ? "none" : `about ${number(forecast.requests)}`}</td>
              <td>{isOver ? number(requests) : "counted at the end"}</td>
            </tr>
            <tr>
              <th scope="row">time</th>
              <td>{forecast === null ? "none" : `about ${duration(forecast.ms)}`}</td>
              <td>{endedAt === null && !run.alive ? "not ended" : duration(took)}</td>
            </tr>
          </tbody>
        </table>
      </div>
      {live !== null && (
        <div class="panel">
          <h2>Quota</h2>
          <div class="gauges">
            <QuotaGauge label="This minute" window={live.quota.minute} />
            <QuotaGauge label="24 hours" window={live.quota.day} />
          </div>
        </div>
      )}
      <div class="panel">
        <h2>Files</h2>
        <p class="path">
          <Words text={below(workspace, run.folder)} />
        </p>
        {run.edition !== "" && (
          <p class="quiet">
            edition <Words text={run.edition} />
          </p>
        )}
      </div>
    </section>
  );
}

function RunCharts({ progress, run, now }: { progress: ProgressOverTime; run: RunDetail; now: number }) {
  const { stepMs, startedAt, archived, credits: spent, requests, forecast } = progress;
  const lastStep = Math.max(startedAt, ...[...archived, ...spent, ...requests].map(({ at }) => at));
  const isOpen = run.alive;
  const until = isOpen
    ? Math.ceil(now / stepMs) * stepMs
    : run.endedAt === null
      ? lastStep + stepMs
      : msOf(run.endedAt);
  const sum = (amounts: readonly { amount: number }[]) =>
    amounts.reduce((all, { amount }) => all + amount, 0);
  if (archived.length + spent.length + requests.length === 0) return null;
  const to = Math.max(until, lastStep + stepMs, isOpen && forecast !== null ? forecast.endsAt : 0);
  const shape = { from: startedAt, to, stepMs, level: null, forecast: null } as const;
  return (
    <section class="charts" aria-label="Over time">
      <Chart
        label={forecast === null ? "Items archived" : "Items archived (dashed: forecast)"}
        words={counted(sum(archived), "item")}
        data={{
          ...shape,
          kind: "sum",
          amounts: archived,
          forecast: forecast === null ? null : { at: forecast.endsAt, amount: forecast.items },
        }}
      />
      <Chart
        label={run.cap === null ? "Credits spent" : "Credits spent (dashed: cap)"}
        words={credits(sum(spent))}
        data={{ ...shape, kind: "sum", amounts: spent, level: run.cap }}
      />
      {requests.length > 0 && (
        <Chart
          label={`API requests, per ${duration(stepMs)}`}
          words={counted(sum(requests), "request")}
          data={{ ...shape, kind: "steps", amounts: requests }}
        />
      )}
    </section>
  );
}

function Trouble({ run: { trouble }, onState }: { run: RunDetail; onState: (state: string) => void }) {
  if (trouble.length === 0) return null;
  return (
    <section class="panel" aria-label="Trouble">
      <h2>What went wrong, and how often</h2>
      <ul class="trouble">
        {trouble.map(({ state, kind, note, items, rowIds }) => (
          <li key={`${state} ${kind} ${note}`}>
            <button type="button" class="link" onClick={() => onState(state)}>
              {number(items)} × <StateBadge state={state} />
            </button>
            <div>
              {kind !== null && <b>{kind}: </b>}
              <Clamped text={note ?? "no reason is known"} />
              <p class="quiet">
                <Words text={rowIds.join(", ")} />
                {items > rowIds.length && ` and ${number(items - rowIds.length)} more`}
              </p>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
