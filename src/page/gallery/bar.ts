import { el, icon } from "./dom.js";
import { brief } from "./text.js";
import { type GalleryView, noFilter, type StateName, stateNames } from "./view.js";

/** Search, states and values to filter by. Each has the number of its cards that pass all other filters. */
export class FilterBar {
  readonly element: HTMLElement;
  private readonly search: HTMLInputElement;
  private readonly states = new Map<StateName, HTMLButtonElement>();
  private readonly selects = new Map<string, HTMLSelectElement>();
  private readonly chips: HTMLElement;
  private readonly clear: HTMLButtonElement;
  private readonly found = el("span", { class: "found", role: "status" });

  constructor(private readonly view: GalleryView) {
    this.search = el("input", {
      type: "search",
      placeholder: "Search prompt, id, file",
      "aria-label": "Search prompt, id and file",
      spellcheck: "false",
      input: () => view.setFilter({ text: this.search.value }),
    });
    this.clear = el(
      "button",
      { type: "button", class: "plain", click: () => view.setFilter(noFilter) },
      "Clear filters",
    );
    for (const [state, name] of Object.entries(stateNames) as [StateName, string][])
      this.states.set(
        state,
        el(
          "button",
          { type: "button", class: "chip", click: () => view.setFilter({ state }) },
          el("span", {}, name),
          el("span", { class: "number" }),
        ),
      );
    for (const { key } of view.facets) {
      const select = el("select", {
        change: () => view.setValue(key, select.value === "" ? null : JSON.parse(select.value)),
      });
      this.selects.set(key, select);
    }
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "State" }, ...this.states.values());
    const facets = view.facets.map(({ key, label }) =>
      el(
        "label",
        { class: "facet" },
        el("span", { dir: "auto" }, brief(label, 32)),
        this.selects.get(key) ?? null,
      ),
    );
    this.element = el(
      "div",
      { class: "filters", role: "search" },
      el("div", { class: "search" }, icon("search"), this.search),
      this.chips,
      el("div", { class: "facets" }, ...facets, this.clear, this.found),
    );
    view.on("shown", () => this.refresh());
    view.on("choices", () => this.refresh());
    this.refresh();
  }

  focusSearch(): void {
    this.search.focus();
    this.search.select();
  }

  private refresh(): void {
    const { view } = this;
    const { text, state, values } = view.filter;
    if (this.search.value !== text) this.search.value = text;
    const others = view.cards.filter((card) => view.passes(card, ""));
    for (const [name, chip] of this.states) {
      const number = others.filter((card) => view.isIn(card, name)).length;
      const isUsed = view.cards.some((card) => view.isIn(card, name));
      const isShown =
        name === "all" || name === state || (isUsed && !(name === "files" && number === others.length));
      chip.hidden = !isShown;
      chip.setAttribute("aria-pressed", String(name === state));
      const label = chip.querySelector(".number");
      if (label) label.textContent = String(number);
    }
    const chips = [...this.states.values()];
    this.chips.hidden = chips.filter(({ hidden }) => !hidden).length < 2;
    for (const facet of view.facets) {
      const numbers = new Map<string, number>();
      for (const card of view.cards) {
        if (!view.passes(card, facet.key)) continue;
        const value = facet.of(card);
        if (value !== null) numbers.set(value, (numbers.get(value) ?? 0) + 1);
      }
      const current = values.get(facet.key);
      const options = facet.values.map((value) => {
        const label = `${brief(value, 48) || "(empty)"} (${numbers.get(value) ?? 0})`;
        return el("option", { value: JSON.stringify(value), selected: value === current }, label);
      });
      const select = this.selects.get(facet.key);
      select?.replaceChildren(el("option", { value: "" }, "all"), ...options);
      select?.classList.toggle("set", current !== undefined);
    }
    const isFiltered =
      view.shown.length !== view.cards.length || state !== "all" || text !== "" || values.size > 0;
    this.clear.hidden = !isFiltered;
    this.found.textContent = isFiltered ? `${view.shown.length} of ${view.cards.length} shown` : "";
  }
}
