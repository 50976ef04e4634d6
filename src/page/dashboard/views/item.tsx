import { useState } from "preact/hooks";
import type { ItemStory, ShownFile, Standing } from "../../../documents/page.js";
import { stateWords } from "../../../report/state-words.js";
import { duration, fileSize } from "../../../text/amounts.js";
import { counted, credits, exactTime, number } from "../../parts/amounts.js";
import { visible } from "../../parts/visible.js";
import { Waiting } from "../parts/empty.js";
import { FileStrip, Medium } from "../parts/media.js";
import { EvidenceList, Resolve } from "../parts/resolve.js";
import { StateBadge } from "../parts/states.js";
import { Time, useTime } from "../parts/time.js";
import { Clamped, Words } from "../parts/words.js";
import { link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { type Proposal, performNow, propose } from "../server/commands.js";

/** The whole story of an item, from its row to its files. */
export function ItemView({ id, standing }: { id: number; standing: Standing }) {
  const now = useTime();
  const { data: story, error } = useAnswer<ItemStory>(`/api/items/${id}`);
  if (story === null) return <Waiting error={error} />;
  const { item, files } = story;
  return (
    <div class="view">
      <p class="trail">
        <a href="#/runs">Runs</a>
        {item.run !== null && (
          <>
            {" / "}
            <a href={link("runs", item.run)}>
              <Words text={item.job} /> run {item.run}
            </a>
          </>
        )}
      </p>
      <header class="head">
        <div>
          <h1>
            <Words text={item.rowId} />
          </h1>
          <p class="quiet">
            <StateBadge state={item.state} /> · row {number(item.rowNumber)} · <Words text={item.model} /> ·{" "}
            {credits(item.price)}
            {item.variant > 1 && ` · variant ${item.variant}`}
            {item.picked && " · picked"}
            {item.approval !== null && ` · approval: ${item.approval}`}
          </p>
        </div>
        <ItemActions story={story} />
      </header>
      <div class="story">
        <div>
          {files.length > 0 && <Files files={files} />}
          {item.note !== null && (
            <section class="panel warn" aria-label="Note">
              <h2>{item.failureKind === null ? "Note" : `Reason: ${item.failureKind}`}</h2>
              <Clamped text={item.note} />
            </section>
          )}
          {item.state === "held" && (
            <section class="panel" aria-label="Decide">
              <h2>Decide about this item</h2>
              <EvidenceList evidence={story.evidence} />
              <Resolve rowId={item.rowId} name={story.name} hasTask={story.evidence?.taskId != null} />
            </section>
          )}
          <section class="panel" aria-label="Prompt">
            <h2>Prompt</h2>
            {item.prompt === null ? (
              <p class="quiet">This item has no prompt.</p>
            ) : (
              <Clamped text={item.prompt} />
            )}
          </section>
          <Facts title="Parameters" json={item.params} />
          <Facts title="Inputs" json={item.inputs} />
          <Facts title="Cells of the row" json={item.cells} />
          <Relatives story={story} />
        </div>
        <History story={story} now={now} standing={standing} />
      </div>
    </div>
  );
}

function ItemActions({ story: { item, name, files } }: { story: ItemStory }) {
  const { state, rowId, approval, picked: isPicked } = item;
  if (state === "failed" && item.run !== null)
    return (
      <div class="actions">
        <a class="button" href="#/decide/failed">
          Submit failed items again
        </a>
      </div>
    );
  if (state !== "archived") return null;
  return (
    <div class="actions">
      {approval === "waiting" && (
        <a class="button main" href="#/decide/approval">
          Approve or reject
        </a>
      )}
      {files.length > 0 && (
        <button
          type="button"
          onClick={() => void performNow({ do: isPicked ? "unpick" : "pick", items: [name] })}
        >
          {isPicked ? "Remove the pick" : "Pick"}
        </button>
      )}
      <button type="button" onClick={() => propose(redoOf(rowId, name))}>
        Make it again…
      </button>
    </div>
  );
}

export function redoOf(rowId: string, name: string): Proposal {
  return {
    title: `Make ${visible(rowId)} again`,
    words:
      "The item is submitted once more and paid for once more. The file that is there stays in the archive, as an earlier version.",
    act: { do: "redo", items: [name], price: 0 },
    price: "asked",
    verb: "Make it again",
  };
}

function Files({ files }: { files: ShownFile[] }) {
  const [shown, setShown] = useState(0);
  const file = files[Math.min(shown, files.length - 1)];
  if (file === undefined) return null;
  return (
    <section class="panel stage" aria-label="Files">
      <Medium src={file.src} mime={file.mime} name={`${file.rowId}, file ${file.output}`} />
      <FileStrip files={files} shown={shown} onShow={setShown} />
      <p class="file-facts quiet">
        <a href={file.src} download={file.file.split("/").at(-1)}>
          <Words text={file.file} />
        </a>{" "}
        · {file.mime} · {fileSize(file.bytes)}
      </p>
    </section>
  );
}

/** An object in JSON as a list of names and values. */
function Facts({ title, json }: { title: string; json: string }) {
  const entries = entriesOf(json);
  if (entries.length === 0) return null;
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      <dl class="facts">
        {entries.map(([name, value]) => (
          <div key={name}>
            <dt>
              <Words text={name} />
            </dt>
            <dd>
              <Clamped text={value} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function entriesOf(json: string): [string, string][] {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null) return [];
    // The cells of a row are pairs, in the order of the sheet.
    const pairs = Array.isArray(value) ? (value as [string, unknown][]) : Object.entries(value);
    return pairs
      .filter(([, each]) => each !== null && each !== "")
      .map(([name, each]) => [name, typeof each === "string" ? each : JSON.stringify(each)]);
  } catch {
    return json === "" ? [] : [["", json]];
  }
}

function Relatives({ story: { parents, children } }: { story: ItemStory }) {
  if (parents.length + children.length === 0) return null;
  const list = (relatives: ItemStory["parents"]) => (
    <ul class="relatives">
      {relatives.map(({ id, rowId, state, field }) => (
        <li key={`${id} ${field}`}>
          <a href={link("items", id)}>
            <Words text={rowId} />
          </a>{" "}
          <StateBadge state={state} />{" "}
          <span class="quiet">
            as <Words text={field} />
          </span>
        </li>
      ))}
    </ul>
  );
  return (
    <section class="panel" aria-label="Steps before and after">
      {parents.length > 0 && (
        <>
          <h2>Takes the output of</h2>
          {list(parents)}
        </>
      )}
      {children.length > 0 && (
        <>
          <h2>Its output is taken by</h2>
          {list(children)}
        </>
      )}
    </section>
  );
}

const eventWords: Partial<Record<ItemStory["events"][number]["event"], string>> = {
  released: "its parents are ready",
  dropped: "dropped",
  intended: "request recorded before it is sent",
  waits: "waits for its parents",
  supplied: "the file was supplied",
  accepted: "the service accepted it",
  not_sent: "not sent after all",
  refused: "refused, nothing charged",
  rejected: "rejected as wrong",
  unanswered: "no answer",
  not_charged: "found not charged",
  charged: "found charged",
  undecided: "cannot tell whether it was charged",
  adopted: "a task was adopted",
  resubmit: "a person had it submitted again",
  refetch: "a person had it fetched again",
  skipped: "a person skipped it",
  completed: "the service has finished it",
  task_failed: "the task failed",
  window_passed: "still processing, polled less often",
  saved: "the file was saved",
  url_expired: "the address of the file expired",
  unfetchable: "the file cannot be fetched",
  retry: "to be tried again",
  file_lost: "its file is gone from the archive",
  returned: "back in the sheet",
};

/** Events, and the requests among them, in the order in which they happened. */
function History({
  story: { events, attempts, item },
  now,
  standing,
}: {
  story: ItemStory;
  now: number;
  standing: Standing;
}) {
  const entries = [
    ...events.map((event, index) => ({ at: event.at, rank: index, event, attempt: null })),
    ...attempts.map((attempt, index) => ({
      at: sentAtOf(attempt, events),
      rank: events.length + index,
      event: null,
      attempt,
    })),
  ].sort((a, b) => a.at - b.at || a.rank - b.rank);
  const waits = item.nextAt > standing.now && (item.state === "processing" || item.state === "overdue");
  return (
    <section class="panel history" aria-label="History">
      <h2>From row to file</h2>
      <p class="quiet">
        {counted(attempts.length, "paid request")}
        {waits && item.tries > 0 && `, ${counted(item.tries, "poll")} so far`}
        {waits && `; next poll in ${duration(Math.max(1_000, item.nextAt - now))}`}
      </p>
      <ol>
        {entries.map(({ at, rank, event, attempt }) =>
          event === null ? (
            attempt !== null && <Attempt key={`request ${attempt.number}`} attempt={attempt} now={now} />
          ) : (
            <li key={`event ${rank} ${at}`}>
              <i class={`dot ${event.to}`} />
              <time dateTime={new Date(at).toISOString()}>{exactTime(at)}</time>
              <p>
                <b>{stateWords[event.to]}</b>{" "}
                <span class="quiet">
                  {eventWords[event.event] ?? event.event}
                  {event.run !== null && event.run !== item.run && `, in run ${event.run}`}
                </span>
              </p>
            </li>
          ),
        )}
      </ol>
    </section>
  );
}

/** A request comes after the event that recorded it, however close they are. */
function sentAtOf(
  { number: count, sentAt }: ItemStory["attempts"][number],
  events: ItemStory["events"],
): number {
  const recorded = events.find(({ event, attempt }) => event === "intended" && attempt === count);
  return Math.max(sentAt, recorded?.at ?? 0);
}

function Attempt({ attempt, now }: { attempt: ItemStory["attempts"][number]; now: number }) {
  const {
    number: count,
    sentAt,
    answeredAt,
    status,
    outcome,
    verdict,
    message,
    taskId,
    price,
    charged,
    bodySha256,
  } = attempt;
  return (
    <li class="attempt">
      <i class="dot request" />
      <time dateTime={new Date(sentAt).toISOString()}>{exactTime(sentAt)}</time>
      <div>
        <p>
          <b>POST, request {count}</b>{" "}
          <span class="quiet">
            <Time at={sentAt} now={now} />
          </span>
        </p>
        <dl class="facts small">
          <Fact name="answer" value={status === null ? "none" : String(status)} />
          {answeredAt !== null && <Fact name="answered after" value={duration(answeredAt - sentAt)} />}
          {outcome !== null && <Fact name="outcome" value={outcome.replaceAll("_", " ")} />}
          {verdict !== null && <Fact name="verdict" value={verdict.replaceAll("_", " ")} />}
          {taskId !== null && <Fact name="task" value={taskId} />}
          {attempt.externalTaskId !== null && <Fact name="provider's task" value={attempt.externalTaskId} />}
          <Fact
            name="charged"
            value={charged === null ? `not known, at most ${credits(price)}` : credits(charged)}
          />
          <Fact name="body" value={bodySha256.slice(0, 16)} />
        </dl>
        {message !== null && <Clamped text={message} />}
      </div>
    </li>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Words text={value} />
      </dd>
    </div>
  );
}
