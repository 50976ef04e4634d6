import { useMemo, useState } from "preact/hooks";
import type { StartChoices } from "../../../dashboard/shapes.js";
import { Dialog } from "../../parts/dialog.js";
import { visible } from "../../parts/visible.js";
import { type CronPreset, cronOf, cronWords, presetWords, runWords, weekdays } from "../parts/cron.js";
import { go } from "../route.js";
import { perform } from "../server/commands.js";

/** Saves a sheet as a schedule: its name, and when it is run. */
export function ScheduleDialog({ choices, onClose }: { choices: StartChoices; onClose: () => void }) {
  const [name, setName] = useState(() => nameFor(choices.file));
  const [preset, setPreset] = useState<CronPreset>("daily");
  const [time, setTime] = useState("06:00");
  const [weekday, setWeekday] = useState(1);
  const [own, setOwn] = useState("0 6 * * *");
  const [zone, setZone] = useState(() => Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const zones = useMemo(
    () => ["UTC", ...Intl.supportedValuesOf("timeZone").filter((each) => each !== "UTC")],
    [],
  );
  const cron = preset === "own" ? own.trim() : cronOf(preset, time, weekday);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      const { exit, message } = await perform({ do: "schedule", choices, name: name.trim(), cron, zone });
      if (exit === null || exit === 0) {
        onClose();
        go("#/schedules");
        return;
      }
      setError(message);
    } catch (reason) {
      setError(reason instanceof Error ? reason.message : String(reason));
    }
    setBusy(false);
  };
  return (
    <Dialog title="Save as a schedule" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label>
          Name
          <input data-first value={name} required onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <div class="form-row">
          <label>
            When
            <select value={preset} onChange={(event) => setPreset(event.currentTarget.value as CronPreset)}>
              {Object.entries(presetWords).map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          </label>
          {preset === "weekly" && (
            <label>
              Day
              <select
                value={String(weekday)}
                onChange={(event) => setWeekday(Number(event.currentTarget.value))}
              >
                {weekdays.map((day, index) => (
                  <option key={day} value={String(index)}>
                    {day}
                  </option>
                ))}
              </select>
            </label>
          )}
          {preset === "own" ? (
            <label>
              Cron expression
              <input
                class="code"
                value={own}
                required
                onInput={(event) => setOwn(event.currentTarget.value)}
              />
            </label>
          ) : (
            <label>
              {preset === "hourly" ? "At the minute of" : "Time"}
              <input
                type="time"
                value={time}
                required
                onInput={(event) => setTime(event.currentTarget.value)}
              />
            </label>
          )}
        </div>
        <label>
          Time zone
          <select value={zone} onChange={(event) => setZone(event.currentTarget.value)}>
            {[...new Set([zone, ...zones])].map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <p>
          It is run <b>{cronWords(cron)}</b>, in the time of {zone}. {runWords(choices)} Nothing runs it
          before <code>bulkgen schedule start</code> is open in this folder.
        </p>
        {error !== null && (
          <p class="alert" role="alert" dir="auto">
            {visible(error)}
          </p>
        )}
        <footer>
          <button type="button" onClick={onClose}>
            Back
          </button>
          <button type="submit" class="main" disabled={isBusy || name.trim() === ""}>
            {isBusy ? "Saving…" : "Save the schedule"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function nameFor(file: string): string {
  const base = file.split("/").at(-1) ?? file;
  return base.replace(/\.[^.]+$/, "");
}
