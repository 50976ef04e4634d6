import { useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks";
import { count, fileSize } from "../../text/amounts.js";
import type { GalleryPage } from "../../upkeep/archive/gallery.js";
import { Icon } from "../parts/icon.js";
import { onKeys } from "../parts/keys.js";
import { visible } from "../parts/visible.js";
import { Compare } from "./compare.js";
import { ContactSheet } from "./contact-sheet.js";
import { Filters } from "./filters.js";
import { Grid, type GridControl } from "./grid.js";
import { Help } from "./help.js";
import { Large } from "./large.js";
import { Said } from "./overlay.js";
import { choicesInWords, Review } from "./review.js";
import { shortcuts } from "./shortcuts.js";
import { type GalleryView, sizes } from "./view.js";

export function Gallery({ view }: { view: GalleryView }) {
  const [, again] = useReducer((changes: number) => changes + 1, 0);
  const grid = useRef<GridControl>(null);
  const search = useRef<HTMLInputElement>(null);
  const { page, revision, axes, large, compared, sheet } = view;
  useLayoutEffect(() => view.follow(() => again(undefined)), []);
  useLayoutEffect(() => {
    const read = () => view.readHash(location.hash);
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  useLayoutEffect(() => {
    const focusSearch = () => {
      search.current?.focus();
      search.current?.select();
    };
    return onKeys(shortcuts(view, grid, focusSearch), { inDialogs: true, onPlayers: true });
  });
  const { hash } = view;
  useLayoutEffect(
    () => history.replaceState(null, "", hash === "" ? location.pathname + location.search : `#${hash}`),
    [hash],
  );
  // These count all cards.
  const facts = useMemo(() => factsOf(page), []);
  const filters = useMemo(
    () => <Filters view={view} search={search} onLeave={() => grid.current?.move(0)} />,
    [revision],
  );
  const contactSheet = useMemo(() => <ContactSheet view={view} />, [revision, axes.x, axes.y]);
  const isOpen = large !== null || compared !== null || sheet !== null;
  return (
    <>
      <header class="head">
        <div class="title-line">
          <div class="title">
            <h1 dir="auto">{visible(page.job)}</h1>
            <p class="quiet">{facts}</p>
          </div>
          <Controls view={view} onResize={(size) => grid.current?.resize(size)} />
        </div>
        {page.cards.length > 0 && filters}
      </header>
      <main>
        {view.way === "grid" ? <Grid view={view} control={grid} /> : contactSheet}
        {view.shown.length === 0 && (
          <p class="nothing">
            {page.cards.length === 0 ? "Nothing is archived yet." : "Nothing passes these filters."}
          </p>
        )}
      </main>
      {large !== null && <Large view={view} card={large} />}
      {compared !== null && <Compare view={view} pair={compared} />}
      {sheet === "review" && <Review view={view} />}
      {sheet === "help" && <Help view={view} />}
      {!isOpen && <Said view={view} />}
    </>
  );
}

function Controls({ view, onResize }: { view: GalleryView; onResize: (size: number) => void }) {
  const chosen = choicesInWords(view);
  return (
    <div class="controls">
      {view.axes.facets.length > 1 && (
        // biome-ignore lint/a11y/useSemanticElements: it is no form
        <div class="ways" role="group" aria-label="View">
          {(["grid", "sheet"] as const).map((way) => (
            <button
              type="button"
              key={way}
              class="way"
              aria-pressed={view.way === way}
              onClick={() => view.update({ way })}
            >
              <Icon name={way === "grid" ? "gallery" : "axes"} />
              {way === "grid" ? "Grid" : "X/Y"}
            </button>
          ))}
        </div>
      )}
      {view.way === "grid" && (
        <input
          type="range"
          class="size"
          min={0}
          max={sizes.length - 1}
          value={view.size}
          aria-label="Size of the cards"
          title="Size"
          onInput={({ currentTarget: { valueAsNumber } }) => onResize(valueAsNumber)}
        />
      )}
      <button
        type="button"
        class="help-button"
        aria-label="Keyboard shortcuts"
        title="Keyboard (?)"
        onClick={() => view.show("help")}
      >
        ?
      </button>
      {!view.page.isForClient && (
        <button
          type="button"
          class={chosen === "" ? "review-button" : "review-button main"}
          onClick={() => view.show("review")}
        >
          {chosen || "Your choices"}
        </button>
      )}
    </div>
  );
}

function factsOf({ cards, madeAt }: GalleryPage): string {
  const files = cards.flatMap(({ file }) => file ?? []);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const has = (state: string) => cards.filter((card) => card.state === state).length;
  return [
    count(files.length, "file"),
    ...["failed", "held"].flatMap((state) => (has(state) === 0 ? [] : [`${has(state)} ${state}`])),
    fileSize(bytes),
    new Date(madeAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }),
  ].join(" · ");
}
