import { useState } from "preact/hooks";
import type { JobStage, PageJob, ServedStanding, WordOnJob } from "../../api/served-page.js";
import { counted, credits, number } from "../parts/amounts.js";
import { Dialog } from "../parts/dialog.js";
import { Stamp } from "../parts/service/stamp.js";
import { brief, visible } from "../parts/visible.js";

const stageWords: Readonly<Record<JobStage, string>> = {
  queued: "waiting",
  submitting: "being sent",
  accepted: "with the provider",
  made: "being fetched",
  unknown: "unknown",
  decided: "done",
};

/** How many jobs are in each stage, and the newest of them. */
export function Jobs({ standing: { stages, failed, newest, now } }: { standing: ServedStanding }) {
  return (
    <section class="panel" aria-labelledby="jobs">
      <div class="head">
        <h2 id="jobs">Jobs</h2>
      </div>
      <dl class="stages">
        {(Object.keys(stageWords) as JobStage[]).map((stage) => (
          <div key={stage} class={stage === "unknown" && stages[stage] > 0 ? "problem" : ""}>
            <dt>{stageWords[stage]}</dt>
            <dd>{number(stage === "decided" ? stages.decided - failed : stages[stage])}</dd>
          </div>
        ))}
        <div>
          <dt>failed</dt>
          <dd>{number(failed)}</dd>
        </div>
      </dl>
      {newest.length === 0 ? (
        <p class="empty">No job yet. Give a client the base URL above and one of the keys below.</p>
      ) : (
        <table class="jobs">
          <thead>
            <tr>
              <th>Job</th>
              <th>Model</th>
              <th>Key</th>
              <th>Stage</th>
              <th class="number">Credits</th>
              <th>Taken</th>
            </tr>
          </thead>
          <tbody>
            {newest.map((job) => (
              <JobRow key={job.id} job={job} now={now} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function JobRow({ job, now }: { job: PageJob; now: number }) {
  const { stage, outcome, error, note } = job;
  const word = outcome ?? stageWords[stage];
  const more = error ?? note;
  const kind = { completed: "active", failed: "past_due" }[word] ?? (stage === "unknown" ? "past_due" : "");
  return (
    <tr>
      <th scope="row" class="wide">
        <Prompt job={job} />
        {more !== null && <span class="quiet under words">{brief(more, 300)}</span>}
      </th>
      <td data-label="Model">{job.model}</td>
      <td data-label="Key" class="words">
        {visible(job.key)}
      </td>
      <td data-label="Stage">
        <span class={`badge ${kind}`}>{word}</span>
      </td>
      <td class="number" data-label="Credits">
        {number(job.credits)}
      </td>
      <td data-label="Taken">
        <Stamp at={job.queuedAt} now={now} />
      </td>
    </tr>
  );
}

function Prompt({ job: { prompt, id } }: { job: PageJob }) {
  return (
    <>
      <span class="words" dir="auto">
        {prompt === null ? "no prompt" : brief(prompt, 90)}
      </span>
      <span class="code under quiet">{id}</span>
    </>
  );
}

interface UnknownProps {
  standing: ServedStanding;
  /** Resolves with whether it was done. */
  resolve: (id: string, word: WordOnJob) => Promise<boolean>;
  /** Why what was asked for last was refused. */
  refused: string | null;
}

/** Jobs of which nobody knows whether the provider has them, with what to do. */
export function UnknownJobs({ standing, resolve, refused }: UnknownProps) {
  const { unknown, stages, now } = standing;
  if (unknown.length === 0 && refused === null) return null;
  const left = stages.unknown - unknown.length;
  return (
    <section class="panel" aria-labelledby="unknown">
      <div class="head">
        <h2 id="unknown">{counted(stages.unknown, "unknown job")}</h2>
      </div>
      <p class="prose">
        The provider’s answer was lost, so nobody knows whether it has taken the job. The job is not sent
        again by itself, because it could be paid for twice. Look at the provider’s own page for what was sent
        at that time. If it is there, give the id that it has there. If it is not, the job fails, and its
        credits are given back.
      </p>
      {refused !== null && (
        <p class="refused" role="alert">
          {refused}
        </p>
      )}
      <ul class="unknowns">
        {unknown.map((job) => (
          <UnknownJob key={job.id} job={job} now={now} resolve={resolve} />
        ))}
      </ul>
      {left > 0 && <p class="quiet">{number(left)} more are shown when these are settled.</p>}
    </section>
  );
}

interface UnknownJobProps {
  job: PageJob;
  now: number;
  resolve: UnknownProps["resolve"];
}

function UnknownJob({ job, now, resolve }: UnknownJobProps) {
  const [ref, setRef] = useState("");
  const [isAsked, setAsked] = useState(false);
  const { id, model, provider, key, note, submittedAt, queuedAt } = job;
  const name = job.prompt === null ? id : brief(job.prompt, 90);
  const find = async (event: Event) => {
    event.preventDefault();
    await resolve(id, { kind: "found", ref });
  };
  return (
    <li aria-label={name}>
      <p>
        <Prompt job={job} />
      </p>
      <p class="quiet words">
        {model} at {provider}, for {visible(key)}, {credits(job.credits)}, sent{" "}
        <Stamp at={submittedAt ?? queuedAt} now={now} /> (
        <span class="code">{new Date(submittedAt ?? queuedAt).toISOString().slice(0, 19)}Z</span>)
      </p>
      {note !== null && <p class="quiet words">{brief(note, 300)}</p>}
      <div class="ways">
        <form class="create" onSubmit={(event) => void find(event)}>
          <input
            aria-label={`The id at the provider of ${name}`}
            placeholder="Its id at the provider"
            required
            maxLength={1_000}
            autocomplete="off"
            spellcheck={false}
            value={ref}
            onInput={({ currentTarget }) => setRef(currentTarget.value)}
          />
          <button type="submit">It is there</button>
        </form>
        <button type="button" onClick={() => void resolve(id, { kind: "failed" })}>
          It is not there: failed
        </button>
        <button type="button" class="grave" onClick={() => setAsked(true)}>
          Send it again
        </button>
      </div>
      {isAsked && (
        <Dialog title="Send it again?" onClose={() => setAsked(false)}>
          <p class="prose">
            If {provider} has “{name}” after all, it makes it twice and you pay for it twice. Send it again
            only if you accept that.
          </p>
          <footer>
            <button type="button" onClick={() => setAsked(false)}>
              Leave it
            </button>
            <button
              type="button"
              class="grave"
              onClick={() => {
                setAsked(false);
                void resolve(id, { kind: "again" });
              }}
            >
              Send it again
            </button>
          </footer>
        </Dialog>
      )}
    </li>
  );
}
