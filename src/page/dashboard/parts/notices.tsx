import { useEffect } from "preact/hooks";
import { exitNameOf } from "../../../core/exit.js";
import type { StartedCommand } from "../../../documents/page.js";
import { ago } from "../../parts/amounts.js";
import { Icon } from "../../parts/icon.js";
import { visible } from "../../parts/visible.js";
import { dismiss, type Notice, useDoing } from "../server/commands.js";
import { after } from "../system.js";
import { Words } from "./words.js";

/** What the commands that were started here say. */
export function Notices() {
  const { notices } = useDoing();
  return (
    <section class="notices" aria-label="Notices" aria-live="polite">
      {notices
        .filter(({ isHidden }) => !isHidden)
        .map((notice) => (
          <NoticeCard key={notice.key} notice={notice} />
        ))}
    </section>
  );
}

const shownMs = 7_000;

function NoticeCard({ notice: { key, command, error, note } }: { notice: Notice }) {
  const exit = command?.exit ?? null;
  const goesAway = command !== null && outcomeOf(command) !== "failed";
  // An ending is shown as long as a beginning.
  useEffect(() => (goesAway ? after(shownMs, () => dismiss(key)) : undefined), [goesAway, exit, key]);
  return (
    <div class={`notice ${error !== null ? "failed" : note !== null ? "waiting" : outcomeOf(command)}`}>
      <div>
        {command !== null && (
          <p class="line">
            <Words text={command.line} />
          </p>
        )}
        {/* A long message scrolls, and not by mouse alone. */}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
        <p dir="auto" tabIndex={0}>
          {visible(error ?? note ?? messageOf(command))}
        </p>
      </div>
      <button type="button" class="icon" aria-label="Dismiss" onClick={() => dismiss(key)}>
        <Icon name="close" />
      </button>
    </div>
  );
}

/** A run that a person has paused, or that waits for a decision, has not failed. */
function outcomeOf(command: StartedCommand | null): "running" | "done" | "waiting" | "failed" {
  if (command === null || command.exit === null) return "running";
  const ended = exitNameOf(command.exit);
  if (ended === "done") return "done";
  return ended === "unfinished" || ended === "held" ? "waiting" : "failed";
}

function messageOf(command: StartedCommand | null): string {
  if (command === null) return "";
  if (command.message !== "") return command.message;
  if (command.exit === null) return "working…";
  return command.exit === 0 ? "done" : `ended with exit code ${command.exit}`;
}

export function RecentCommands({ commands, now }: { commands: StartedCommand[]; now: number }) {
  if (commands.length === 0)
    return <p class="quiet">Commands that you start here are listed with how they ended.</p>;
  return (
    <ol class="commands">
      {commands.map((command) => (
        <li key={command.id}>
          <p class="line">
            <i class={`dot ${outcomeOf(command)}`} />
            <Words text={command.line} />
          </p>
          <p class="quiet">
            <Words text={messageOf(command)} /> · {ago(command.startedAt, now)}
          </p>
        </li>
      ))}
    </ol>
  );
}
