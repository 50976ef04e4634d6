import type { AccountAnswer, ShownTask } from "../../api/service-page.js";
import { credits } from "../parts/amounts.js";
import { Stamp } from "../parts/service/stamp.js";
import { FirstCommand } from "./connect.js";

/** The newest tasks with what came of them, and the way to those before. */
export function Tasks({ answer }: { answer: AccountAnswer }) {
  const { tasks, older, account, firstCommand, now } = answer;
  return (
    <section class="panel" aria-labelledby="tasks">
      <div class="head">
        <h2 id="tasks">Recent tasks</h2>
      </div>
      {tasks.length === 0 ? (
        <FirstCommand command={firstCommand} />
      ) : (
        <ul class="tasks">
          {tasks.map((task) => (
            <Task key={task.id} task={task} now={now} />
          ))}
        </ul>
      )}
      {older !== null && (
        <p class="more">
          <a href={`/dashboard?${new URLSearchParams({ user: account.id, before: String(older) })}`}>
            Older tasks
          </a>
        </p>
      )}
    </section>
  );
}

function Task({ task, now }: { task: ShownTask; now: number }) {
  const { id, category, prompt, model, params } = task;
  return (
    <li class="task">
      <div class={`preview ${category}`}>
        <Preview task={task} />
      </div>
      <div class="about">
        <p class="prompt" title={prompt ?? ""} dir="auto">
          {prompt ?? <span class="quiet">no prompt</span>}
        </p>
        <p class="quiet">
          <span class="model">{model}</span> · {credits(task.credits)} ·{" "}
          <Stamp at={task.createdAt} now={now} />
        </p>
        {params.length > 0 && (
          <details>
            <summary>Details</summary>
            <dl>
              <dt>task</dt>
              <dd>{id}</dd>
              {params.map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name}=`}>{value}</dd>])}
            </dl>
          </details>
        )}
      </div>
    </li>
  );
}

function Preview({ task }: { task: ShownTask }) {
  const { status, error, outputs } = task;
  if (status === "processing") return <p class="waiting">processing</p>;
  if (status === "failed")
    return (
      <p class="failed">
        <strong>failed</strong> {error}
      </p>
    );
  return (
    <>
      {outputs.map((path, index) => (
        <Output key={index} task={task} path={path} label={`Output ${index + 1} of ${task.model}`} />
      ))}
    </>
  );
}

function Output({
  task: { category, prompt },
  path,
  label,
}: {
  task: ShownTask;
  path: string;
  label: string;
}) {
  if (category === "video")
    // biome-ignore lint/a11y/useMediaCaption: what the sandbox makes has no captions
    return <video controls playsInline preload="metadata" src={path} aria-label={label} />;
  // biome-ignore lint/a11y/useMediaCaption: what the sandbox makes has no captions
  if (category === "audio") return <audio controls preload="metadata" src={path} aria-label={label} />;
  return (
    <a href={path}>
      <img src={path} alt={prompt ?? label} loading="lazy" />
    </a>
  );
}
