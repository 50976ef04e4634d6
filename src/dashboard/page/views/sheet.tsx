import { useMemo, useState } from "preact/hooks";
import type {
  CellChange,
  DroppedSheet,
  ModelEntry,
  SheetProblem,
  Standing,
  StartChoices,
} from "../../shapes.js";
import { counted, number } from "../parts/amounts.js";
import { Waiting } from "../parts/empty.js";
import { visible } from "../parts/visible.js";
import { Words } from "../parts/words.js";
import { goInstead, link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { useCheck } from "../server/check.js";
import { post, withQuery } from "../server/client.js";
import { tellError } from "../server/commands.js";
import { type CellPlace, cellKey, SheetGrid } from "./sheet-grid.js";
import { Problems } from "./sheet-problems.js";
import { StartPanel } from "./start-panel.js";

/** What was set for a sheet, until the page is loaded again. */
const kept = new Map<string, { choices: StartChoices; place: CellPlace | null }>();

/** A sheet before it is started: its rows with their problems, its cost, and its settings. */
export function SheetView({ file, standing }: { file: string; standing: Standing }) {
  const [choices, setChosen] = useState<StartChoices>(() => kept.get(file)?.choices ?? { file });
  const { sheet: named = null } = choices;
  const asked = { file, sheet: named };
  const { data: sheet, error, again } = useAnswer<DroppedSheet>(withQuery("/api/sheet", asked), null);
  const models = useAnswer<ModelEntry[]>("/api/models", null);
  const [edits, setEdits] = useState<ReadonlyMap<string, string>>(new Map());
  const [version, setVersion] = useState(0);
  const [place, setPlace] = useState<CellPlace | null>(() => kept.get(file)?.place ?? null);
  const setChoices = (chosen: StartChoices) => {
    setChosen(chosen);
    kept.set(file, { choices: chosen, place });
  };
  const checked = useCheck(choices, version);
  const problems = checked.check?.problems ?? [];
  const byCell = useMemo(() => placed(problems), [problems]);
  const change = async (changes: CellChange[]) => {
    setEdits((before) => {
      const next = new Map(before);
      for (const { row, column, value } of changes) next.set(cellKey(row, column), value);
      return next;
    });
    try {
      const saved = await post<DroppedSheet>(withQuery("/api/sheet/cells", asked), changes);
      if (saved.file !== file) {
        // The sheet was copied before it was changed; its settings move to the copy, which has no other sheets.
        const { sheet: _, ...others } = choices;
        kept.set(saved.file, { choices: { ...others, file: saved.file }, place });
        goInstead(link("sheet", saved.file));
      } else {
        again();
        setVersion((number) => number + 1);
      }
    } catch (reason) {
      tellError(reason);
      setEdits((before) => {
        const next = new Map(before);
        for (const { row, column } of changes) next.delete(cellKey(row, column));
        return next;
      });
    }
  };
  if (sheet === null) return <Waiting error={error} />;
  const knownModels = models.data ?? [];
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
            onChange={(event) => {
              setEdits(new Map());
              setPlace(null);
              setChoices({ ...choices, sheet: event.currentTarget.value });
            }}
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
              onEdit={(row, column, value) => void change([{ row, column, value }])}
            />
          )}
          <Problems
            problems={problems}
            total={checked.check?.problemCount ?? 0}
            editable={sheet.editable}
            columns={sheet.columns}
            place={place}
            onPlace={setPlace}
            onFix={(changes) => void change(changes)}
          />
        </div>
        <StartPanel
          choices={choices}
          setChoices={setChoices}
          checked={checked}
          models={knownModels}
          running={standing.running}
        />
      </div>
    </div>
  );
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
