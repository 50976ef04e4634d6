import type { Standing, WaitingPage } from "../../../documents/page.js";
import { counted, number } from "../../parts/amounts.js";
import { Empty, Waiting } from "../parts/empty.js";
import { EvidenceList, Resolve } from "../parts/resolve.js";
import { Clamped, Words } from "../parts/words.js";
import { link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { propose } from "../server/commands.js";
import { ApprovalDesk } from "./approvals.js";
import { RetryButton } from "./run.js";

/** What waits for a person: approvals, held items, failed items. */
export function DecideView({ what, standing }: { what: string; standing: Standing }) {
  const { waiting } = standing;
  const tabs = [
    { name: "approval", words: "Approvals", amount: waiting.approval },
    { name: "held", words: "Held", amount: waiting.held },
    { name: "failed", words: "Failed", amount: waiting.failed },
  ];
  const shown = tabs.find(({ name }) => name === what) ?? tabs.find(({ amount }) => amount > 0) ?? tabs[0];
  return (
    <div class={shown?.name === "approval" ? "view desk-view" : "view"}>
      <header class="head">
        <h1>Decide</h1>
        <nav class="tabs" aria-label="What waits for you">
          {tabs.map(({ name, words, amount }) => (
            <a
              key={name}
              href={link("decide", name)}
              aria-current={shown?.name === name ? "page" : undefined}
            >
              {words} <span class="quiet">{number(amount)}</span>
            </a>
          ))}
        </nav>
      </header>
      {shown?.name === "approval" && <ApprovalDesk commands={standing.commands} />}
      {shown?.name === "held" && <HeldItems />}
      {shown?.name === "failed" && <FailedItems />}
    </div>
  );
}

function HeldItems() {
  const { data, error } = useAnswer<WaitingPage>("/api/waiting?what=held");
  if (data === null) return <Waiting error={error} />;
  if (data.items.length === 0)
    return (
      <Empty title="Nothing is held">
        <p>
          An item is held when its request was charged, or may have been, and what it made cannot be fetched.
          You decide about it here.
        </p>
      </Empty>
    );
  const names = data.items.map(({ name }) => name);
  return (
    <>
      <div class="panel intro">
        <p>{heldWords(data)}</p>
        {data.items.length > 1 && data.items.length === data.total && (
          <div class="actions">
            <button
              type="button"
              onClick={() =>
                propose({
                  title: `Submit all ${number(names.length)} again`,
                  words:
                    "All held items are submitted and paid for again. Those whose first request was charged are paid for twice.",
                  act: { do: "resubmit", items: names, price: 0 },
                  price: "asked",
                  verb: "Submit all again",
                })
              }
            >
              Submit all again…
            </button>
            <button
              type="button"
              onClick={() =>
                propose({
                  title: `Skip all ${number(names.length)}`,
                  words: "All held items are dropped without a file.",
                  act: { do: "skip", items: names },
                  price: null,
                  verb: "Skip all",
                  isGrave: true,
                })
              }
            >
              Skip all…
            </button>
          </div>
        )}
      </div>
      <ul class="cards">
        {data.items.map((item) => (
          <li key={item.id} class="panel">
            <ItemHead item={item} />
            {item.note !== null && <Clamped text={item.note} />}
            {item.prompt !== null && (
              <div class="quiet">
                <Clamped text={item.prompt} />
              </div>
            )}
            <EvidenceList evidence={item.evidence} />
            <Resolve rowId={item.rowId} name={item.name} hasTask={item.evidence?.taskId != null} />
          </li>
        ))}
      </ul>
      <More page={data} />
    </>
  );
}

function heldWords({ items, total }: WaitingPage): string {
  const known = items.filter(({ evidence }) => evidence?.taskId != null).length;
  if (known === total)
    return "What is listed here was paid for, and bulkgen has no file of it. Fetch it again first: that costs nothing.";
  const [atNoCost, tasks] =
    known === 0
      ? ["", "its tasks"]
      : ["Fetch again what has a task: that costs nothing. ", "the other tasks"];
  return `What is listed here was charged, or may have been, and bulkgen has no file of it. ${atNoCost}Look for ${tasks} at the service: adopt what it made, submit again what it did not make.`;
}

function ItemHead({ item }: { item: WaitingPage["items"][number] }) {
  return (
    <header>
      <h2>
        <a href={link("items", item.id)}>
          <Words text={item.rowId} />
        </a>
      </h2>
      <p class="quiet">
        <Words text={item.job} />
        {item.run !== null && ` run ${item.run}`} · row {number(item.rowNumber)} · <Words text={item.model} />
      </p>
    </header>
  );
}

function FailedItems() {
  const { data, error } = useAnswer<WaitingPage>("/api/waiting?what=failed");
  if (data === null) return <Waiting error={error} />;
  if (data.items.length === 0)
    return (
      <Empty title="Nothing has failed">
        <p>Items that the service could not make are listed here with the reason.</p>
      </Empty>
    );
  const runs = new Map<number | null, WaitingPage["items"]>();
  for (const item of data.items) {
    const ofRun = runs.get(item.run);
    if (ofRun === undefined) runs.set(item.run, [item]);
    else ofRun.push(item);
  }
  // The runs follow each other, so only the last of them may have more.
  const cutRun = data.total > data.items.length ? data.items.at(-1)?.run : undefined;
  return (
    <>
      {[...runs].map(([run, items]) => (
        <section key={run} class="panel" aria-label={`Failed in run ${run}`}>
          <header class="head">
            <h2>
              {run === null ? (
                "Without a run"
              ) : (
                <a href={link("runs", run)}>
                  <Words text={items[0]?.job ?? ""} /> run {run}
                </a>
              )}{" "}
              <span class="quiet">
                {run === cutRun && "the first "}
                {counted(items.length, "failed item")}
              </span>
            </h2>
            {run !== null && (
              <RetryButton run={run} failed={data.total > data.items.length ? null : items.length} />
            )}
          </header>
          <ul class="failures">
            {items.map(({ id, rowId, rowNumber, prompt, note, failureKind, model }) => (
              <li key={id}>
                <div>
                  <a href={link("items", id)}>
                    <Words text={rowId} />
                  </a>
                  <p class="quiet">
                    row {number(rowNumber)} · <Words text={model} />
                  </p>
                </div>
                <div class="quiet">
                  <Clamped text={prompt ?? ""} />
                </div>
                <div>
                  {failureKind !== null && <span class="tag">{failureKind}</span>}
                  <Clamped text={note ?? "no reason is known"} />
                </div>
              </li>
            ))}
          </ul>
        </section>
      ))}
      <More page={data} />
    </>
  );
}

function More({ page: { items, total } }: { page: WaitingPage }) {
  const more = total - items.length;
  if (more <= 0) return null;
  return (
    <p class="none">
      {number(more)} more {more === 1 ? "comes" : "come"} up when these are decided.
    </p>
  );
}
