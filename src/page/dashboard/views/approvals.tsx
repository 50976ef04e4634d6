import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import type { ItemStory, StartedCommand, WaitingPage } from "../../../documents/page.js";
import { credits, number } from "../../parts/amounts.js";
import { onKeys } from "../../parts/keys.js";
import { visible } from "../../parts/visible.js";
import { Empty, Waiting } from "../parts/empty.js";
import { FileStrip, Medium, Thumbnail } from "../parts/media.js";
import { Turning } from "../parts/turning.js";
import { Clamped, Words } from "../parts/words.js";
import { link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { performNow, propose, useDoing } from "../server/commands.js";
import { NextSteps } from "./next-step.js";

type WaitingItem = WaitingPage["items"][number];
type Decision = "approved" | "rejected" | "again";

interface Mark {
  decision: Decision;
  /** The command that carries it out; null until it has been started. */
  command: number | null;
}

/** One picture after the other, large, with a key for each decision. `commands` are those started here, with their ends. */
export function ApprovalDesk({ commands }: { commands: readonly StartedCommand[] }) {
  const { data, error } = useAnswer<WaitingPage>("/api/waiting?what=approval");
  const [shown, setShown] = useState<number | null>(null);
  const { proposal, waiting } = useDoing();
  const items = data?.items ?? [];
  const { decided, decide, again } = useDecisions(items, commands, setShown);
  const open = items.filter(({ id }) => !decided.has(id));
  const current = items.find(({ id }) => id === shown) ?? open[0] ?? items[0];
  const index = current === undefined ? -1 : items.indexOf(current);
  const move = (by: number) => {
    const to = items[index + by];
    if (to !== undefined) setShown(to.id);
  };
  useLayoutEffect(() => {
    if (proposal !== null) return;
    return onKeys({
      a: () => decide(current, "approved"),
      x: () => decide(current, "rejected"),
      r: () => again(current),
      ArrowLeft: () => move(-1),
      ArrowRight: () => move(1),
    });
  });
  if (data === null) return <Waiting error={error} />;
  if (current === undefined)
    return (
      <Empty title="Nothing waits for approval">
        <NextSteps />
        <p>A step with `approve` in a job file waits here until somebody has looked at what was made.</p>
      </Empty>
    );
  const decision = decided.get(current.id)?.decision ?? null;
  return (
    <section class="desk" aria-label="Approval">
      <Turning index={index} count={items.length} onTurn={move}>
        <ApprovalFiles item={current} key={current.id} />
      </Turning>
      <aside class="desk-side" aria-label="About this item">
        <p class="quiet" aria-live="polite">
          {number(index + 1)} of {number(data.total)}
          {waiting > 0 && ` · ${number(waiting)} to save`}
        </p>
        <h2>
          <a href={link("items", current.id)}>
            <Words text={current.rowId} />
          </a>
        </h2>
        <p class="quiet">
          <Words text={current.job} />
          {current.run !== null && ` run ${current.run}`} · row {number(current.rowNumber)} ·{" "}
          <Words text={current.model} /> · {credits(current.price)}
        </p>
        {current.prompt !== null && <Clamped text={current.prompt} />}
        {decision !== null && <p class={`decision ${decision}`}>{decisionWords[decision]}</p>}
        <div class="decisions">
          <button
            type="button"
            class="main"
            disabled={decision !== null}
            onClick={() => decide(current, "approved")}
          >
            Approve <kbd>A</kbd>
          </button>
          <button type="button" disabled={decision !== null} onClick={() => decide(current, "rejected")}>
            Reject <kbd>X</kbd>
          </button>
          <button type="button" disabled={decision !== null} onClick={() => again(current)}>
            Make it again… <kbd>R</kbd>
          </button>
        </div>
        <p class="quiet small">
          What is approved is taken by the steps that wait for it. What is rejected stays in the archive, and
          nothing is made from it. Approving and rejecting cost nothing by themselves.
        </p>
        {open.length === 0 && <NextSteps />}
        {current.run !== null && open.length > 0 && (
          <p class="quiet small">
            When you are done, <a href={link("runs", current.run)}>resume run {current.run}</a>: it makes what
            waited. A run in progress goes on by itself.
          </p>
        )}
      </aside>
      {items.length > 1 && (
        <fieldset class="strip" aria-label="All that wait">
          {items.map((item) => (
            <button
              type="button"
              key={item.id}
              class={decided.get(item.id)?.decision ?? ""}
              aria-pressed={item === current}
              aria-label={visible(item.rowId)}
              onClick={() => setShown(item.id)}
            >
              {item.src !== null && item.mime !== null && (
                <Thumbnail src={item.src} thumbnail={item.thumbnail} mime={item.mime} name="" />
              )}
            </button>
          ))}
        </fieldset>
      )}
    </section>
  );
}

/** What has been decided here about items that the server still lists. After each decision, `show` gets the next item that waits. */
function useDecisions(
  items: readonly WaitingItem[],
  commands: readonly StartedCommand[],
  show: (id: number) => void,
) {
  const [decided, setDecided] = useState<ReadonlyMap<number, Mark>>(new Map());
  const mark = (item: WaitingItem, decision: Decision | null, command: number | null = null) =>
    setDecided((before) => {
      const after = new Map(before);
      if (decision === null) after.delete(item.id);
      else after.set(item.id, { decision, command });
      return after;
    });
  const failed = commands.filter(({ exit }) => exit !== null && exit !== 0).map(({ id }) => id);
  // A command that has failed has decided nothing about an item that still waits, even if it failed much later.
  useEffect(() => {
    setDecided((before) => {
      const after = new Map([...before].filter(([, { command }]) => !failed.some((id) => id === command)));
      return after.size === before.size ? before : after;
    });
  }, [failed.join(), decided]);
  const goOn = (item: WaitingItem) => {
    const place = items.indexOf(item);
    const next = [...items.slice(place + 1), ...items.slice(0, place)].find(({ id }) => !decided.has(id));
    if (next !== undefined) show(next.id);
  };
  const decide = (item: WaitingItem | undefined, decision: "approved" | "rejected") => {
    if (item === undefined || decided.has(item.id)) return;
    mark(item, decision);
    goOn(item);
    void performNow({ do: decision === "approved" ? "approve" : "reject", items: [item.name] }).then(
      (command) => mark(item, command === null ? null : decision, command?.id),
    );
  };
  const again = (item: WaitingItem | undefined) => {
    if (item === undefined || decided.has(item.id)) return;
    propose({
      title: `Reject ${visible(item.rowId)} and make it again`,
      words:
        "This version is rejected. The item is submitted and paid for once more, and the new version waits for approval again.",
      act: { do: "reject again", items: [item.name], price: 0 },
      price: "asked",
      verb: "Make it again",
      onDone: ({ id }) => {
        mark(item, "again", id);
        goOn(item);
      },
    });
  };
  return { decided, decide, again };
}

const decisionWords: Readonly<Record<Decision, string>> = {
  approved: "approved",
  rejected: "rejected",
  again: "rejected, made again",
};

/** The first file at once; the others when the story is there. */
function ApprovalFiles({ item }: { item: WaitingItem }) {
  const { data } = useAnswer<ItemStory>(item.files > 1 ? `/api/items/${item.id}` : null);
  const [shown, setShown] = useState(0);
  const files = data?.files ?? [];
  const file = files[shown];
  const src = file?.src ?? item.src;
  const mime = file?.mime ?? item.mime;
  return (
    <div class="desk-files">
      {src === null || mime === null ? (
        <p class="missing">There is no file.</p>
      ) : (
        <Medium src={src} mime={mime} name={visible(item.rowId)} />
      )}
      <FileStrip files={files} shown={shown} onShow={setShown} isSmall />
    </div>
  );
}
