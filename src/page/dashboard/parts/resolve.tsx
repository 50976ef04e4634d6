import { useState } from "preact/hooks";
import type { WaitingPage } from "../../../dashboard/shapes.js";
import { localTime } from "../../../text/times.js";
import { visible } from "../../parts/visible.js";
import { propose } from "../server/commands.js";
import { Words } from "./words.js";

/** What is known of a held item's request, and what a person can do about it. */

export function EvidenceList({ evidence }: { evidence: WaitingPage["items"][number]["evidence"] }) {
  if (evidence === null) return <p class="quiet">Nothing is known of a request.</p>;
  const { sentAt, status, bodySha256, taskId, externalTaskId } = evidence;
  return (
    <dl class="facts small">
      <div>
        <dt>POST sent</dt>
        <dd>{localTime(sentAt)}</dd>
      </div>
      <div>
        <dt>answer</dt>
        <dd>{status ?? "none"}</dd>
      </div>
      <div>
        <dt>body (SHA-256)</dt>
        <dd class="code">{bodySha256}</dd>
      </div>
      {taskId !== null && (
        <div>
          <dt>task</dt>
          <dd class="code">
            <Words text={taskId} />
          </dd>
        </div>
      )}
      {externalTaskId !== null && (
        <div>
          <dt>provider's task</dt>
          <dd class="code">
            <Words text={externalTaskId} />
          </dd>
        </div>
      )}
    </dl>
  );
}

interface ResolveProps {
  rowId: string;
  name: string;
  /** Its task is known, so its files can be fetched. */
  hasTask: boolean;
}

export function Resolve({ rowId, name, hasTask }: ResolveProps) {
  const [task, setTask] = useState("");
  const shown = visible(rowId);
  return (
    <div class="resolve">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (task.trim() === "") return;
          propose({
            title: `Adopt a task for ${shown}`,
            words: `The service has made this item as task ${visible(task.trim())}: it is collected, and not paid again.`,
            act: { do: "adopt", items: [name], task: task.trim(), price: 0 },
            price: "asked",
            verb: "Adopt the task",
          });
        }}
      >
        <label>
          Task id at the service
          <input
            value={task}
            onInput={(event) => setTask(event.currentTarget.value)}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <button type="submit" disabled={task.trim() === ""}>
          Adopt…
        </button>
      </form>
      <div class="actions">
        <button
          type="button"
          onClick={() =>
            propose({
              title: `Submit ${shown} again`,
              words:
                "The item is submitted and paid for again. If its first request was charged, it is paid for twice.",
              act: { do: "resubmit", items: [name], price: 0 },
              price: "asked",
              verb: "Submit again",
            })
          }
        >
          Submit again…
        </button>
        {hasTask && (
          <button
            type="button"
            onClick={() =>
              propose({
                title: `Fetch ${shown} again`,
                words: "The files of its task are fetched once more, and not paid again.",
                act: { do: "refetch", items: [name], price: 0 },
                price: "asked",
                verb: "Fetch again",
              })
            }
          >
            Fetch again…
          </button>
        )}
        {hasTask && (
          <button
            type="button"
            onClick={() =>
              propose({
                title: `Keep what came for ${shown}`,
                words:
                  "The files of its task are kept as they are, although they failed their check, and marked as not proven.",
                act: { do: "accept", items: [name], price: 0 },
                price: "asked",
                verb: "Keep it",
              })
            }
          >
            Keep what came…
          </button>
        )}
        <button
          type="button"
          onClick={() =>
            propose({
              title: `Skip ${shown}`,
              words:
                "The item is dropped without a file. What it may have cost stays in the account's record.",
              act: { do: "skip", items: [name] },
              price: null,
              verb: "Skip it",
              isGrave: true,
            })
          }
        >
          Skip…
        </button>
      </div>
    </div>
  );
}
