import type { ComponentChildren } from "preact";
import { visible } from "../../parts/visible.js";
import { NoServer, ServerRefusal } from "../server/client.js";

/** What a view shows while there is nothing else: it waits, it failed, or there is nothing. */
export function Waiting({ error }: { error: Error | null }) {
  if (error === null) return <p class="starting">Reading…</p>;
  return <Trouble error={error} />;
}

export function Trouble({ error }: { error: Error }) {
  // The page says above that the server has gone.
  if (error instanceof NoServer) return null;
  const isGone = error instanceof ServerRefusal && error.kind === "missing";
  return (
    <div class="hint" role="alert">
      {isGone ? <h1>It is no longer there</h1> : <h2>This cannot be shown</h2>}
      <p dir="auto">{visible(error.message)}</p>
      <p>
        <a href="#/runs">See the runs</a>
      </p>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="hint">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** What a workspace shows whose state cannot be read. */
export function Unreadable({ problem }: { problem: string }) {
  return (
    <Empty title="This workspace cannot be shown">
      <p dir="auto">{visible(problem)}</p>
    </Empty>
  );
}

/** What a workspace shows before there is anything to see: how to begin. */
export function Beginning({ folder }: { folder: string }) {
  return (
    <Empty title="Nothing has been run here yet">
      <p class="path" dir="auto">
        {visible(folder)}
      </p>
      <p>
        Drop a sheet with a row for each picture, clip or sound. You see its price before anything is spent.
      </p>
      <p>
        <a class="button main" href="#/start">
          Start with a sheet
        </a>
      </p>
    </Empty>
  );
}
