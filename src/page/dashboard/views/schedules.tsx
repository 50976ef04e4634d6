import type { ScheduleEntry } from "../../../dashboard/shapes.js";
import { localTime } from "../../../text/times.js";
import { visible } from "../../parts/visible.js";
import { cronWords } from "../parts/cron.js";
import { Empty, Waiting } from "../parts/empty.js";
import { Time, useTime } from "../parts/time.js";
import { Words } from "../parts/words.js";
import { link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { propose } from "../server/commands.js";

/** The schedules of the workspace, with their next and past runs. */
export function SchedulesView() {
  const now = useTime();
  const { data, error } = useAnswer<ScheduleEntry[]>("/api/schedules");
  return (
    <div class="view">
      <header class="head">
        <h1>Schedules</h1>
        <a class="button" href="#/start">
          Schedule a sheet
        </a>
      </header>
      {data === null ? (
        <Waiting error={error} />
      ) : data.length === 0 ? (
        <Empty title="Nothing is scheduled">
          <p>
            Open a sheet and save it as a schedule: it is run by the clock, and only what is new in it is paid
            for.
          </p>
        </Empty>
      ) : (
        <>
          <p class="panel warn">
            This page runs no schedule. What is due is run only while <code>bulkgen schedule start</code> is
            open in this folder; <code>bulkgen schedule print</code> shows how the machine starts it by
            itself.
          </p>
          <ul class="cards">
            {data.map((schedule) => (
              <ScheduleCard key={schedule.name} schedule={schedule} now={now} />
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

function ScheduleCard({ schedule, now }: { schedule: ScheduleEntry; now: number }) {
  const { name, manifest, cron, zone, flags, next, pausedAt, runs } = schedule;
  return (
    <li class="panel">
      <header class="head">
        <div>
          <h2>
            <Words text={name} />
          </h2>
          <p class="quiet">
            {cronWords(cron)} · {zone}
          </p>
        </div>
        {pausedAt === null ? (
          <button
            type="button"
            onClick={() =>
              propose({
                title: `Pause the schedule ${visible(name)}`,
                words:
                  "None of its runs is started until you resume it. A run that has begun is not stopped. What comes due meanwhile is left out.",
                act: { do: "pause schedule", name },
                price: null,
                verb: "Pause it",
              })
            }
          >
            Pause…
          </button>
        ) : (
          <button
            type="button"
            onClick={() =>
              propose({
                title: `Resume the schedule ${visible(name)}`,
                words: "Its runs are started by the clock again. What came due meanwhile is left out.",
                act: { do: "resume schedule", name },
                price: null,
                verb: "Resume it",
              })
            }
          >
            Resume…
          </button>
        )}
        <button
          type="button"
          onClick={() =>
            propose({
              title: `Remove the schedule ${visible(name)}`,
              words: "It is not run by the clock any more. Its past runs and their files stay.",
              act: { do: "unschedule", name },
              price: null,
              verb: "Remove it",
              isGrave: true,
            })
          }
        >
          Remove…
        </button>
      </header>
      <dl class="facts small">
        <div>
          <dt>next</dt>
          <dd>
            {pausedAt !== null ? (
              <>
                paused <Time at={pausedAt} now={now} />
              </>
            ) : next === null ? (
              "never"
            ) : (
              <>
                {localTime(next)}, <Time at={next} now={now} />
              </>
            )}
          </dd>
        </div>
        <div>
          <dt>sheet</dt>
          <dd>
            <a href={link("sheet", manifest)}>
              <Words text={manifest} />
            </a>
          </dd>
        </div>
        {flags.length > 0 && (
          <div>
            <dt>flags</dt>
            <dd class="code">
              <Words text={flags.join(" ")} />
            </dd>
          </div>
        )}
      </dl>
      {runs.length === 0 ? (
        <p class="quiet">It has not run yet.</p>
      ) : (
        <table class="table">
          <caption class="unseen">Past runs</caption>
          <thead>
            <tr>
              <th scope="col">due</th>
              <th scope="col">state</th>
              <th scope="col">run</th>
              <th scope="col">note</th>
            </tr>
          </thead>
          <tbody>
            {runs.map(({ dueAt, state, exit, note, run }) => (
              <tr key={dueAt}>
                <td>{localTime(dueAt)}</td>
                <td>
                  {state}
                  {exit !== null && exit !== 0 && <span class="quiet"> (exit code {exit})</span>}
                </td>
                <td>{run !== null && <a href={link("runs", run)}>run {run}</a>}</td>
                <td>{note !== null && <Words text={note} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </li>
  );
}
