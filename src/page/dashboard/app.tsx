import { useEffect, useRef, useState } from "preact/hooks";
import { wantedItems } from "../../core/item.js";
import type { Standing } from "../../documents/page.js";
import { number } from "../parts/amounts.js";
import { Dialog } from "../parts/dialog.js";
import { Icon, type IconName } from "../parts/icon.js";
import { visible } from "../parts/visible.js";
import { lazy } from "./lazy.js";
import { DropAnywhere } from "./parts/drop.js";
import { Beginning, Unreadable } from "./parts/empty.js";
import { LiveCard } from "./parts/live.js";
import { Notices, RecentCommands } from "./parts/notices.js";
import { ProposalDialog } from "./parts/proposal.js";
import { useTime } from "./parts/time.js";
import { Words } from "./parts/words.js";
import { link, useRoute, type ViewRoute } from "./route.js";
import { useDoing } from "./server/commands.js";
import { type Connection, tryAgain, useConnection } from "./server/standing.js";
import { DecideView } from "./views/decide.js";
import { GalleryView } from "./views/gallery.js";
import { ItemView } from "./views/item.js";
import { RunView } from "./views/run.js";
import { RunsView } from "./views/runs.js";
import { SchedulesView } from "./views/schedules.js";
import { StartView } from "./views/start.js";

const SheetView = lazy(async () => (await import("./views/sheet.js")).SheetView);

/** The page: navigation, the view that the address names, and what is shown whatever the view is. */
export function App() {
  const route = useRoute();
  const connection = useConnection();
  const { proposal } = useDoing();
  const main = useRef<HTMLElement>(null);
  const place = route.parts.join("/");
  const isFirst = useRef(true);
  // Another place is read from its top.
  useEffect(() => {
    if (!isFirst.current) {
      main.current?.scrollTo(0, 0);
      main.current?.focus({ preventScroll: true });
    }
    isFirst.current = false;
  }, [place]);
  const { standing, state } = connection;
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Navigation route={route} standing={standing} />
      <main ref={main} id="main" tabIndex={-1} data-scroller>
        {state === "token" ? (
          <Hint title="This page needs its link">
            <p>Open the link that `bulkgen dashboard` printed.</p>
          </Hint>
        ) : (
          <>
            <Gone connection={connection} />
            {standing === null ? (
              state === "connecting" && <p class="starting">Reading the workspace…</p>
            ) : (
              <View route={route} standing={standing} key={place} />
            )}
          </>
        )}
      </main>
      <Announcement standing={standing} />
      <Notices />
      <DropAnywhere />
      {proposal !== null && <ProposalDialog proposal={proposal} key={proposal.title} />}
    </>
  );
}

/** The progress of a run for those who hear the page: every tenth of it, and in the title. */
function Announcement({ standing }: { standing: Standing | null }) {
  const live = standing?.running ?? null;
  const total = live === null ? 0 : wantedItems(live.counts);
  const done = live?.counts.archived ?? 0;
  const title =
    standing === null
      ? "bulkgen"
      : live === null
        ? `${visible(folderName(standing.workspace))} · bulkgen`
        : `${number(done)}/${number(total)} · bulkgen`;
  useEffect(() => {
    document.title = title;
  }, [title]);
  const tenths = total === 0 ? 0 : Math.floor((done / total) * 10) * 10;
  return (
    <p class="unseen" aria-live="polite">
      {live !== null && `run ${live.run} in progress, ${tenths} % archived`}
    </p>
  );
}

function View({ route: { parts, query }, standing }: { route: ViewRoute; standing: Standing }) {
  const [name = "runs", argument = ""] = parts;
  const id = Number(argument);
  const needsRuns = ["runs", "items", "decide", "gallery"].includes(name);
  if (standing.problem !== null && needsRuns)
    return (
      <div class="view">
        <h1>{sections.find((section) => section.name === name)?.words ?? "Item"}</h1>
        {standing.isNew ? (
          <Beginning folder={standing.workspace} />
        ) : (
          <Unreadable problem={standing.problem} />
        )}
      </div>
    );
  switch (name) {
    case "runs":
      return Number.isInteger(id) && id > 0 ? (
        <RunView id={id} standing={standing} query={query} />
      ) : (
        <RunsView standing={standing} />
      );
    case "items":
      return <ItemView id={id} standing={standing} />;
    case "start":
      return <StartView standing={standing} />;
    case "sheet":
      return <SheetView file={argument} standing={standing} key={String(query)} />;
    case "decide":
      return <DecideView what={argument} standing={standing} />;
    case "gallery":
      return <GalleryView query={query} />;
    case "schedules":
      return <SchedulesView />;
    default:
      return (
        <Hint title="There is nothing here">
          <p>
            The address names no view. <a href="#/runs">See the runs</a>
          </p>
        </Hint>
      );
  }
}

const sections: { name: string; icon: IconName; words: string; also: string[] }[] = [
  { name: "start", icon: "start", words: "Start", also: ["sheet"] },
  { name: "runs", icon: "runs", words: "Runs", also: ["items"] },
  { name: "decide", icon: "decide", words: "Decide", also: [] },
  { name: "gallery", icon: "gallery", words: "Gallery", also: [] },
  { name: "schedules", icon: "schedules", words: "Schedules", also: [] },
];

function Navigation({ route, standing }: { route: ViewRoute; standing: Standing | null }) {
  const [name = "runs"] = route.parts;
  const [isListOpen, setListOpen] = useState(false);
  const now = useTime();
  const waiting =
    standing === null ? 0 : standing.waiting.held + standing.waiting.failed + standing.waiting.approval;
  const commands = standing?.commands ?? [];
  const busy = commands.filter(({ exit }) => exit === null).length;
  return (
    <div class="side">
      <header class="brand">
        <a href="#/runs" class="logo">
          <Mark />
          bulkgen
        </a>
        {standing?.sandbox === true && <span class="tag">sandbox</span>}
        {standing !== null && (
          <p class="workspace" title={standing.workspace}>
            <Words text={folderName(standing.workspace)} />
          </p>
        )}
      </header>
      <nav aria-label="Sections">
        <ul>
          {sections.map(({ name: own, icon, words, also }) => (
            <li key={own}>
              <a href={link(own)} aria-current={own === name || also.includes(name) ? "page" : undefined}>
                <Icon name={icon} />
                <span>{words}</span>
                {own === "decide" && waiting > 0 && (
                  <b class="badge">
                    {number(waiting)}
                    <span class="unseen"> waiting for you</span>
                  </b>
                )}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      {standing?.running != null && (
        <section aria-label="In progress">
          <LiveCard live={standing.running} now={now} />
        </section>
      )}
      <button type="button" class="commands-button" onClick={() => setListOpen(true)}>
        <Icon name="commands" />
        <span>Recent commands</span>
        {busy > 0 && <b class="badge">{busy}</b>}
      </button>
      {isListOpen && (
        <Dialog title="Recent commands" onClose={() => setListOpen(false)}>
          <RecentCommands commands={commands} now={now} />
        </Dialog>
      )}
    </div>
  );
}

function folderName(path: string): string {
  return path.split(/[\\/]/).findLast((part) => part !== "") ?? path;
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M8 10a2 2 0 012-2h3a2 2 0 012 2v3a2 2 0 01-2 2h-3a2 2 0 01-2-2zM17 10a2 2 0 012-2h3a2 2 0 012 2v3a2 2 0 01-2 2h-3a2 2 0 01-2-2zM8 19a2 2 0 012-2h3a2 2 0 012 2v3a2 2 0 01-2 2h-3a2 2 0 01-2-2z" />
      <path class="faint" d="M17 19a2 2 0 012-2h3a2 2 0 012 2v3a2 2 0 01-2 2h-3a2 2 0 01-2-2z" />
    </svg>
  );
}

function Gone({ connection: { state, standing } }: { connection: Connection }) {
  if (state !== "lost") return null;
  return (
    <div class="gone" role="status">
      <p>
        <b>bulkgen dashboard has ended; start it again.</b>{" "}
        {standing === null
          ? "The page opens by itself when it is back."
          : "What you see is as it was. The page goes on by itself when it is back; a run that was started here goes on anyway."}
      </p>
      <button type="button" onClick={tryAgain}>
        Try now
      </button>
    </div>
  );
}

function Hint({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <div class="hint">
      <h1>{title}</h1>
      {children}
    </div>
  );
}
