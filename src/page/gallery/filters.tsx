import type { RefObject } from "preact";
import { Icon } from "../parts/icon.js";
import { brief } from "../parts/visible.js";
import type { Facet } from "./facets.js";
import { type GalleryView, noFilter, type StateName, stateNames } from "./view.js";

interface FiltersProps {
  view: GalleryView;
  search: RefObject<HTMLInputElement | null>;
  /** From the search, keys lead to the cards. */
  onLeave: () => void;
}

/** Search, states and values to filter by. Each has the number of its cards that pass all other filters. */
export function Filters({ view, search, onLeave }: FiltersProps) {
  const { text, state, values } = view.filter;
  const isFiltered =
    view.shown.length !== view.cards.length || state !== "all" || text !== "" || values.size > 0;
  return (
    <search class="filters">
      <div class="search">
        <Icon name="search" />
        <input
          ref={search}
          type="search"
          placeholder="Search prompt, id, file"
          aria-label="Search prompt, id and file"
          spellcheck={false}
          value={text}
          onInput={({ currentTarget: { value } }) => view.setFilter({ text: value })}
          onKeyDown={(event) => {
            if (!/^(Escape|Enter|ArrowDown)$/.test(event.key)) return;
            event.preventDefault();
            event.currentTarget.blur();
            onLeave();
          }}
        />
      </div>
      <StateChips view={view} />
      <div class="facets">
        {view.facets.map((facet) => (
          <FacetChoice key={facet.key} view={view} facet={facet} />
        ))}
        {isFiltered && (
          <button type="button" class="link" onClick={() => view.setFilter(noFilter)}>
            Clear filters
          </button>
        )}
        <span class="found" role="status">
          {isFiltered && `${view.shown.length} of ${view.cards.length} shown`}
        </span>
      </div>
    </search>
  );
}

function StateChips({ view }: { view: GalleryView }) {
  const { state } = view.filter;
  const others = view.cards.filter((card) => view.passes(card, ""));
  const chips = (Object.keys(stateNames) as StateName[])
    .map((name) => ({ name, number: others.filter((card) => view.isIn(card, name)).length }))
    .filter(({ name, number }) => {
      if (name === "all" || name === state) return true;
      return (
        view.cards.some((card) => view.isIn(card, name)) && !(name === "files" && number === others.length)
      );
    });
  if (chips.length < 2) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: it is no form
    <div class="chips" role="group" aria-label="State">
      {chips.map(({ name, number }) => (
        <button
          type="button"
          key={name}
          class="chip"
          aria-pressed={name === state}
          onClick={() => view.setFilter({ state: name })}
        >
          <span>{stateNames[name]}</span>
          <span class="number">{number}</span>
        </button>
      ))}
    </div>
  );
}

function FacetChoice({ view, facet }: { view: GalleryView; facet: Facet }) {
  const { key, label } = facet;
  const numbers = new Map<string, number>();
  for (const card of view.cards) {
    const value = view.passes(card, key) ? facet.of(card) : null;
    if (value !== null) numbers.set(value, (numbers.get(value) ?? 0) + 1);
  }
  const current = view.filter.values.get(key);
  return (
    <label class="facet">
      <span dir="auto">{brief(label, 32)}</span>
      <select
        class={current === undefined ? "" : "set"}
        value={current === undefined ? "" : JSON.stringify(current)}
        onChange={({ currentTarget: { value } }) =>
          view.setValue(key, value === "" ? null : JSON.parse(value))
        }
      >
        <option value="">all</option>
        {facet.values.map((value) => (
          <option key={value} value={JSON.stringify(value)}>
            {`${brief(value, 48) || "(empty)"} (${numbers.get(value) ?? 0})`}
          </option>
        ))}
      </select>
    </label>
  );
}
