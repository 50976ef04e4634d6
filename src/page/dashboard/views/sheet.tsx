import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type {
  CellChange,
  DroppedSheet,
  ModelEntry,
  SheetProblem,
  Standing,
  StartChoices,
} from "../../../documents/page.js";
import { counted, number } from "../../parts/amounts.js";
import { visible } from "../../parts/visible.js";
import { Waiting } from "../parts/empty.js";
import { Words } from "../parts/words.js";
import { link, readdress } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { useCheck } from "../server/check.js";
import { get, post, withQuery } from "../server/client.js";
import { tellError } from "../server/commands.js";
import { type CellPlace, cellKey, SheetGrid } from "./sheet-grid.js";
import { Problems } from "./sheet-problems.js";
import { StartPanel } from "./start-panel.js";

/** What was set for a sheet, until the page is loaded again. */
const kept = new Map<string, StartChoices>();

/** A sheet before it is started. Its first change may make a copy of the file, which is shown from then on. */
export function SheetView({ file, standing }: { file: string; standing: Standing }) {
  const [choices, setChosen] = useState<StartChoices>(() => kept.get(file) ?? { file });
  const [timesRead, setTimesRead] = useState(0);
  const choose = (to: (before: StartChoices) => StartChoices) =>
    setChosen((before) => {
      const chosen = to(before);
      kept.set(chosen.file, chosen);
      return chosen;
    });
  const readAgain = () => setTimesRead((times) => times + 1);
  return (
    <OpenSheet
      key={timesRead}
      choices={choices}
      setChoices={(chosen) => choose(() => chosen)}
      onSheet={(sheet) => {
        choose((before) => ({ ...before, sheet }));
        readAgain();
      }}
      onCopy={(copy) => {
        // A copy has no other sheets.
        choose(({ sheet: _, ...others }) => ({ ...others, file: copy }));
        readdress(link("sheet", copy));
      }}
      onRefused={readAgain}
      standing={standing}
    />
  );
}

interface OpenProps {
  choices: StartChoices;
  setChoices: (choices: StartChoices) => void;
  /** Another sheet of the workbook is chosen. */
  onSheet: (sheet: string) => void;
  onCopy: (file: string) => void;
  /** A change was not saved, so what is shown may not be what the file says. */
  onRefused: () => void;
  standing: Standing;
}

/** The rows of a sheet with their problems, its cost, and its settings. */
function OpenSheet({ choices, setChoices, onSheet, onCopy, onRefused, standing }: OpenProps) {
  const { sheet, error, named, edits, version, isSaving, change } = useSavedChanges(
    choices,
    onCopy,
    onRefused,
  );
  const models = useAnswer<ModelEntry[]>("/api/models", null);
  const [place, setPlace] = useState<CellPlace | null>(null);
  const checked = useCheck(choices, version);
  const problems = checked.check?.problems ?? [];
  const byCell = useMemo(() => placed(problems), [problems]);
  if (sheet === null) return <Waiting error={error} />;
  const knownModels = models.data ?? [];
  /** What is run is the file, so somebody who agrees to its price must have seen it as it is. */
  const isAsShown = async () => {
    try {
      const query = { file: sheet.file, sheet: named };
      if ((await get<DroppedSheet>(withQuery("/api/sheet", query))).version === sheet.version) return true;
      tellError(new Error(`${sheet.file} has changed since this page read it. It is shown as it is now.`));
      onRefused();
    } catch (reason) {
      tellError(reason);
    }
    return false;
  };
  return (
    <div class="view sheet-view">
      <p class="trail">
        <a href="#/start">Start</a>
      </p>
      <header class="head">
        <div>
          <h1>
            <Words text={sheet.file} />
          </h1>
          <p class="quiet" aria-live="polite">
            {counted(sheet.rows, "row")}
            {checked.check !== null && ` · ${problemWords(checked.check.problemCount)}`}
            {checked.isBusy && " · checking…"}
            {!sheet.editable && sheet.trouble === null && " · change it in an editor"}
          </p>
        </div>
      </header>
      {sheet.sheets.length > 1 && (
        <label class="sheet-choice">
          Sheet
          <select
            value={named ?? (sheet.trouble === null ? sheet.sheets[0] : "")}
            onChange={(event) => onSheet(event.currentTarget.value)}
          >
            {named === null && sheet.trouble !== null && <option value="">choose one…</option>}
            {sheet.sheets.map((name) => (
              <option key={name} value={name}>
                {visible(name)}
              </option>
            ))}
          </select>
        </label>
      )}
      {sheet.trouble !== null && (
        <p class="alert" role="alert" dir="auto">
          {visible(sheet.trouble)}
        </p>
      )}
      <datalist id="models">
        {knownModels.map(({ id, name, credits }) => (
          <option key={id} value={id}>
            {name}, {number(credits)} credits
          </option>
        ))}
      </datalist>
      <div class="sheet-columns">
        <div class="sheet-left">
          {sheet.columns.length > 0 && (
            <SheetGrid
              sheet={sheet}
              named={named}
              problems={byCell}
              edits={edits}
              place={place}
              onPlace={setPlace}
              onEdit={(row, column, value) => change([{ row, column, value }])}
            />
          )}
          <Problems
            problems={problems}
            total={checked.check?.problemCount ?? 0}
            editable={sheet.editable}
            columns={sheet.columns}
            place={place}
            onPlace={setPlace}
            onFix={change}
            onSkipHeadings={() => setChoices({ ...choices, skipHeadings: true })}
          />
        </div>
        <StartPanel
          choices={choices}
          setChoices={setChoices}
          checked={{ ...checked, isBusy: checked.isBusy || isSaving }}
          isAsShown={isAsShown}
          models={knownModels}
          running={standing.running}
        />
      </div>
    </div>
  );
}

/** A sheet, and the changes that are made to it here: they are saved one after the other. */
function useSavedChanges(choices: StartChoices, onCopy: (file: string) => void, onRefused: () => void) {
  const [asked] = useState({ file: choices.file, sheet: choices.sheet ?? null });
  const { data, error } = useAnswer<DroppedSheet>(withQuery("/api/sheet", asked), null);
  const [saved, setSaved] = useState<DroppedSheet | null>(null);
  const [edits, setEdits] = useState<ReadonlyMap<string, string>>(new Map());
  const [version, setVersion] = useState(0);
  const [isSaving, setSaving] = useState(false);
  /** The sheet as the last change has left it, and the changes that wait. */
  const saving = useRef({ last: data, waiting: 0, isRefused: false, done: Promise.resolve() });
  const sheet = saved ?? data;
  const isGone = useRef(false);
  useEffect(
    () => () => {
      isGone.current = true;
    },
    [],
  );
  const save = async (changes: CellChange[]) => {
    const { last, isRefused } = saving.current;
    const known = last ?? data;
    if (known === null || isRefused) return;
    const { file, version } = known;
    const query = { file, version, sheet: file === asked.file ? asked.sheet : null };
    try {
      saving.current.last = await post<DroppedSheet>(withQuery("/api/sheet/cells", query), changes);
    } catch (reason) {
      saving.current.isRefused = true;
      tellError(reason);
    }
  };
  const ended = () => {
    const { last, waiting, isRefused } = saving.current;
    saving.current.waiting = waiting - 1;
    if (waiting > 1 || isGone.current) return;
    setSaving(false);
    setSaved(last);
    setVersion((number) => number + 1);
    if (last !== null && last.file !== asked.file) onCopy(last.file);
    if (isRefused) onRefused();
  };
  const change = (changes: CellChange[]) => {
    setEdits((before) => {
      const next = new Map(before);
      for (const { row, column, value } of changes) next.set(cellKey(row, column), value);
      return next;
    });
    setSaving(true);
    saving.current.waiting++;
    saving.current.done = saving.current.done.then(() => save(changes)).then(ended);
  };
  const named = sheet?.file === asked.file ? asked.sheet : null;
  return { sheet, error, named, edits, version, isSaving, change };
}

function problemWords(count: number): string {
  return count === 0 ? "no problems" : counted(count, "problem");
}

/** Problems by cell; those of a whole row are at its number. */
function placed(problems: readonly SheetProblem[]): Map<string, SheetProblem[]> {
  const found = new Map<string, SheetProblem[]>();
  for (const problem of problems) {
    if (problem.row === null) continue;
    const key = cellKey(problem.row, problem.column ?? "");
    const known = found.get(key);
    if (known === undefined) found.set(key, [problem]);
    else known.push(problem);
  }
  return found;
}
