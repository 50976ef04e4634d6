import type { TargetedEvent } from "preact";
import { useState } from "preact/hooks";
import type {
  JobQuestion,
  JobWay,
  LiveRun,
  ModelEntry,
  SheetCheck,
  StartChoices,
  StateCounts,
} from "../../../documents/page.js";
import { forecastText } from "../../../report/forecast.js";
import { orderedStates, stateWords } from "../../../report/state-words.js";
import { counted, credits, number } from "../../parts/amounts.js";
import { visible } from "../../parts/visible.js";
import { Words } from "../parts/words.js";
import { go, link } from "../route.js";
import type { Checked } from "../server/check.js";
import { type Proposal, propose } from "../server/commands.js";
import { ScheduleDialog } from "./schedule-dialog.js";

interface PanelProps {
  choices: StartChoices;
  setChoices: (choices: StartChoices) => void;
  checked: Checked;
  /** Whether the sheet is still the one that is shown; otherwise it says so, and shows it anew. */
  isAsShown: () => Promise<boolean>;
  models: readonly ModelEntry[];
  running: LiveRun | null;
}

/** What is set for the run, what it costs, and the buttons that start it. */
export function StartPanel({ choices, setChoices, checked, isAsShown, models, running }: PanelProps) {
  const [isScheduling, setScheduling] = useState(false);
  const { check, error, isBusy } = checked;
  const canStart = check?.ready === true && !isBusy && running === null;
  const start = async (chosen: StartChoices, way: StartWay) => {
    if (await isAsShown()) propose(startOf(chosen, way));
  };
  return (
    <aside class="panel start-panel" aria-label="Start this sheet">
      <Price checked={checked} />
      <div class="start-actions">
        {check?.question ? (
          <JobQuestionButtons
            question={check.question}
            disabled={isBusy || running !== null}
            onStart={(way) => void start({ ...choices, job: way.job }, way)}
          />
        ) : (
          <button
            type="button"
            class="main"
            disabled={!canStart}
            onClick={() => check !== null && void start(choices, check)}
          >
            Run…
          </button>
        )}
        <button type="button" disabled={error !== null} onClick={() => setScheduling(true)}>
          Save as a schedule…
        </button>
      </div>
      {check !== null && !check.ready && check.problemCount > 0 && (
        <p class="quiet small">Fix the problems first, or leave out the rows that have them (below).</p>
      )}
      {check !== null && check.due === 0 && check.problemCount === 0 && (
        <NothingToMake existing={check.existing} />
      )}
      {running !== null && (
        <p class="quiet small">
          Run {running.run} is in progress. This one can be started when it has ended.
        </p>
      )}
      <Choices choices={choices} setChoices={setChoices} models={models} />
      {check !== null && (
        <div>
          <h2 class="sub">The command</h2>
          <p class="code">
            <Words text={check.line} />
          </p>
        </div>
      )}
      {isScheduling && <ScheduleDialog choices={choices} onClose={() => setScheduling(false)} />}
    </aside>
  );
}

type StartWay = Omit<JobWay, "ready">;

/** A sheet whose items may be paid for already continues their job, or makes and pays for all of them again. */
function JobQuestionButtons({
  question: { found, continues, again },
  disabled,
  onStart,
}: {
  question: JobQuestion;
  disabled: boolean;
  onStart: (way: JobWay) => void;
}) {
  return (
    <>
      <p dir="auto">{visible(found)}.</p>
      {continues !== null && (
        <button
          type="button"
          class="main"
          disabled={disabled || !continues.ready || continues.due === 0}
          onClick={() => onStart(continues)}
        >
          Continue {visible(continues.job)} ({number(continues.due)} new, {credits(continues.credits.within)})
        </button>
      )}
      {continues !== null && continues.due === 0 && (
        <p class="quiet small">Everything in it is made in {visible(continues.job)}: there is nothing new.</p>
      )}
      {again !== null && (
        <button type="button" disabled={disabled} onClick={() => onStart(again)}>
          Make all again ({credits(again.credits.within)})
        </button>
      )}
    </>
  );
}

function NothingToMake({ existing }: { existing: StateCounts }) {
  const states = orderedStates.filter((state) => (existing[state] ?? 0) > 0);
  if (states.every((state) => state === "archived"))
    return <p class="quiet small">Everything in it is archived: there is nothing to make.</p>;
  const counts = states.map((state) => `${number(existing[state] ?? 0)} ${stateWords[state]}`).join(", ");
  const [toDecide] = (["failed", "held"] as const).filter((state) => (existing[state] ?? 0) > 0);
  return (
    <p class="quiet small">
      There is nothing new to make: {counts}.
      {toDecide !== undefined && (
        <>
          {" "}
          <a href={link("decide", toDecide)}>Decide</a> what becomes of the {stateWords[toDecide]} items.
        </>
      )}
    </p>
  );
}

function startOf(
  choices: StartChoices,
  { job, due, existing: { archived = 0 }, forecast, line, credits: money }: StartWay,
): Proposal {
  const rest =
    archived === 0
      ? ""
      : ` ${counted(archived, "item")} of it ${archived === 1 ? "is archived already and costs" : "are archived already and cost"} nothing.`;
  const { needed, within, inDoubt, after } = money;
  const isCapped = within < needed;
  const most = isCapped ? ` ${capWords(money)}` : "";
  const time = forecast === null ? "" : ` Forecast: ${forecastText(forecast)}.`;
  const doubt = inDoubt === 0 ? "" : ` ${doubtWords(inDoubt)}`;
  const left = after === null ? "" : ` After it, about ${credits(after)} ${after === 1 ? "is" : "are"} left.`;
  return {
    title: `Run ${visible(job)}`,
    words: `This makes ${isCapped ? "up to " : ""}${counted(due, "item")} of the sheet.${most}${rest}${time}${left}${doubt}`,
    act: { do: "start", choices, price: 0 },
    price: within,
    line,
    verb: "Run",
    onDone: () => go("#/runs"),
  };
}

/** With a cap, a run makes what it allows, and stops. */
function capWords({ needed, within }: SheetCheck["credits"]): string {
  return `All of it would cost ${credits(needed)}; the caps allow ${number(within)}.`;
}

/** A request without an answer is sent again if it proves not to have been charged. */
function doubtWords(inDoubt: number): string {
  return `Up to ${credits(inDoubt)} more if requests in doubt were not charged.`;
}

function Price({ checked: { check, error, isBusy } }: { checked: Checked }) {
  if (error !== null)
    return (
      <p class="alert" role="alert" dir="auto">
        {visible(error)}
      </p>
    );
  if (check === null) return <p class="quiet">Working out the price…</p>;
  const {
    credits: money,
    due,
    existing,
    forecast,
    requests,
    models,
    blockers,
    warnings,
    notes,
    question,
  } = check;
  const { archived = 0 } = existing;
  return (
    <div class={isBusy ? "price-box busy" : "price-box"} aria-live="polite">
      {question === null && (
        <p class="figure">
          {number(money.within)} <span class="quiet">{money.within === 1 ? "credit" : "credits"}</span>
        </p>
      )}
      {question === null && (
        <p class="quiet">
          {counted(due, "item")} to make
          {archived > 0 && `, ${number(archived)} archived already`}
          {money.balance !== null &&
            ` · balance ${number(money.balance)}, then ${number(money.after ?? money.balance)}`}
        </p>
      )}
      {money.within < money.needed && <p>{capWords(money)}</p>}
      {money.inDoubt > 0 && <p>{doubtWords(money.inDoubt)}</p>}
      {forecast !== null && <p>{forecastText(forecast)}</p>}
      {requests.plan !== null && (
        <p class="quiet">
          plan {requests.plan}
          {requests.perMinute !== null && `: ${number(requests.perMinute)} requests a minute`}
          {requests.perDay !== null && `, ${number(requests.perDay)} a day`}
          {requests.perMinute !== null && "; each check of the sheet uses 2 of them"}
        </p>
      )}
      {blockers.map((text) => (
        <p class="alert" key={text} dir="auto">
          {visible(text)}
        </p>
      ))}
      <Remarks texts={warnings} name="caution" />
      <Remarks texts={notes} name="quiet" />
      {models.length > 1 && (
        <details>
          <summary>By model</summary>
          <table class="price">
            <tbody>
              {models.map(({ model, items, credits: cost }) => (
                <tr key={model}>
                  <td>
                    <Words text={model} />
                  </td>
                  <td class="amount quiet">{number(items)}</td>
                  <td class="amount">{number(cost)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      )}
    </div>
  );
}

/** The first remarks, and the others behind a line. */
function Remarks({ texts, name }: { texts: readonly string[]; name: string }) {
  const remark = (text: string) => (
    <p class={name} key={text} dir="auto">
      {visible(text)}
    </p>
  );
  const rest = texts.slice(remarksMax);
  return (
    <>
      {texts.slice(0, remarksMax).map(remark)}
      {rest.length > 0 && (
        <details>
          <summary class="quiet">{number(rest.length)} more</summary>
          <div class="price-box">{rest.map(remark)}</div>
        </details>
      )}
    </>
  );
}

const remarksMax = 2;

function Choices({ choices, setChoices, models }: Pick<PanelProps, "choices" | "setChoices" | "models">) {
  const { model = "", prompt = "", maxCredits, edition = "" } = choices;
  const set = <Name extends keyof StartChoices>(name: Name, value: StartChoices[Name] | undefined) => {
    const { [name]: _, ...rest } = choices;
    setChoices(
      (value === undefined || value === "" || value === false
        ? rest
        : { ...rest, [name]: value }) as StartChoices,
    );
  };
  const flags = [
    ["skipInvalid", "Skip rows with problems"],
    ["skipHeadings", "Leave out headings and totals"],
    ["repair", "Repair values that are nearly right"],
    ["canary", "Make one item of each kind first"],
    ["fresh", "Make everything again, as a new edition"],
  ] as const;
  const known = models.find(({ id }) => id === model);
  return (
    <div class="choices">
      <h2 class="sub">Defaults for empty cells</h2>
      <label>
        Model
        <input
          list="models"
          placeholder="from the sheet"
          {...useTyped(model, (text) => set("model", text.trim()))}
        />
      </label>
      {known !== undefined && (
        <p class="quiet small">
          <Words text={known.name} />, {known.category}, {credits(known.credits)}
        </p>
      )}
      <label>
        Prompt
        <textarea
          rows={2}
          placeholder="from the sheet; {{column}} stands for a cell"
          {...useTyped(prompt, (text) => set("prompt", text))}
        />
      </label>
      <Params
        params={choices.params ?? {}}
        onChange={(params) => set("params", Object.keys(params).length === 0 ? undefined : params)}
      />
      <h2 class="sub">Limits</h2>
      <label>
        Spend at most (credits)
        <input
          type="number"
          min="0"
          step="any"
          inputMode="decimal"
          placeholder="no cap"
          {...useTyped(String(maxCredits ?? ""), (text) =>
            set("maxCredits", text === "" || !(Number(text) >= 0) ? undefined : Number(text)),
          )}
        />
      </label>
      <label>
        Edition
        <input placeholder="none" {...useTyped(edition, (text) => set("edition", text.trim()))} />
      </label>
      <fieldset>
        <legend class="unseen">Options</legend>
        {flags.map(([name, words]) => (
          <label class="tick" key={name}>
            <input
              type="checkbox"
              checked={choices[name] === true}
              onChange={(event) => set(name, event.currentTarget.checked)}
            />
            {words}
          </label>
        ))}
      </fieldset>
    </div>
  );
}

type Field = HTMLInputElement | HTMLTextAreaElement;

/**
 * A field whose text is set once it is left. Until then it keeps what was typed: the page is drawn again several times a
 * second while a run is in progress.
 */
function useTyped(text: string, onSet: (text: string) => void) {
  const [typed, setTyped] = useState<string | null>(null);
  return {
    value: typed ?? text,
    onInput: ({ currentTarget }: TargetedEvent<Field>) => setTyped(currentTarget.value),
    onChange: ({ currentTarget }: TargetedEvent<Field>) => {
      setTyped(null);
      onSet(currentTarget.value);
    },
  };
}

function Params({
  params,
  onChange,
}: {
  params: Record<string, string>;
  onChange: (params: Record<string, string>) => void;
}) {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const add = () => {
    if (name.trim() === "") return;
    onChange({ ...params, [name.trim()]: value });
    setName("");
    setValue("");
  };
  return (
    <fieldset class="params">
      <legend>Parameters</legend>
      {Object.entries(params).map(([key, each]) => (
        <p key={key} class="param">
          <span>
            <b>{visible(key)}</b> {visible(each)}
          </span>
          <button
            type="button"
            class="link"
            onClick={() =>
              onChange(Object.fromEntries(Object.entries(params).filter(([other]) => other !== key)))
            }
          >
            Remove<span class="unseen"> {key}</span>
          </button>
        </p>
      ))}
      <div class="param-new">
        <input
          aria-label="Parameter"
          placeholder="aspect_ratio"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <input
          aria-label="Value of the parameter"
          placeholder="16:9"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") add();
          }}
        />
        <button type="button" disabled={name.trim() === ""} onClick={add}>
          Add
        </button>
      </div>
    </fieldset>
  );
}
