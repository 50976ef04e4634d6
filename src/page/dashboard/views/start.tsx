import { useRef, useState } from "preact/hooks";
import type { SheetEntry, Standing } from "../../../dashboard/shapes.js";
import { Icon } from "../../parts/icon.js";
import { Trouble } from "../parts/empty.js";
import { Time, useTime } from "../parts/time.js";
import { Words } from "../parts/words.js";
import { link } from "../route.js";
import { useAnswer } from "../server/answer.js";
import { openDropped, sheetEndings } from "../server/sheets.js";

/** Where work starts: a sheet is dropped or chosen. */
export function StartView({ standing }: { standing: Standing }) {
  const now = useTime();
  const { data, error } = useAnswer<SheetEntry[]>("/api/sheets", null);
  const chooser = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const open = async (files: FileList | null) => {
    setBusy(true);
    await openDropped(files);
    setBusy(false);
  };
  return (
    <div class="view narrow">
      <h1>Start</h1>
      <section class="drop" aria-label="Open a sheet">
        <Icon name="upload" />
        <h2>Drop a sheet here</h2>
        <p class="quiet">
          CSV, XLSX, JSON or YAML, with a row for each picture, clip or sound. Nothing is spent before you
          have seen the price and agreed to it.
        </p>
        <button type="button" class="main" disabled={isBusy} onClick={() => chooser.current?.click()}>
          {isBusy ? "Reading…" : "Choose a file"}
        </button>
        <input
          ref={chooser}
          type="file"
          class="unseen"
          tabIndex={-1}
          aria-label="Sheet"
          accept={sheetEndings}
          onChange={(event) => {
            const input = event.currentTarget;
            void open(input.files).then(() => {
              input.value = "";
            });
          }}
        />
        {standing.sandbox && (
          <p class="quiet small">
            This is the sandbox: everything works as at the service, and no real credits are spent.
          </p>
        )}
      </section>
      {error !== null && <Trouble error={error} />}
      {data !== null && data.length > 0 && (
        <section aria-label="Sheets of this workspace">
          <h2>Sheets of this workspace</h2>
          <ul class="sheets">
            {data.map(({ file, usedAt }) => (
              <li key={file}>
                <a href={link("sheet", file)}>
                  <Icon name="file" />
                  <Words text={file} />
                  <span class="quiet">
                    <Time at={usedAt} now={now} />
                  </span>
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}
