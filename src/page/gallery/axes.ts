import { rowIdOf } from "../../core/variant.js";
import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { labelOf } from "./card.js";
import { el } from "./dom.js";
import { preview, unload } from "./media.js";
import { brief, visible } from "./text.js";
import type { Facet, GalleryView } from "./view.js";

/** A sheet with more columns or rows is too large to look at. */
const axisMax = 60;
/** A cell shows this many files, and counts the rest. */
const cellMax = 8;

/** A contact sheet with what differs from column to column, and from row to row. */
export class AxesSheet {
  readonly element = el("div", { class: "axes" });
  private x: Facet | null = null;
  private y: Facet | null = null;
  private readonly table = el("div", {
    class: "axes-table",
    tabindex: 0,
    role: "region",
    "aria-label": "Contact sheet",
  });
  private refreshers: (() => void)[] = [];
  private readonly facets: readonly Facet[];

  constructor(
    private readonly view: GalleryView,
    private readonly actions: { open(card: GalleryCard): void; showCell(): void },
  ) {
    this.facets = [...view.facets, rowFacet(view.cards)].filter(
      ({ values }) => values.length > 1 && values.length <= axisMax,
    );
    const [x, y] = fullestPair(this.facets, view.cards);
    this.x = x;
    this.y = y;
    view.on("choices", () => {
      for (const refresh of this.refreshers) refresh();
    });
  }

  get isPossible(): boolean {
    return this.facets.length > 1;
  }

  get hash(): Record<string, string> {
    return { x: this.x?.key ?? "", y: this.y?.key ?? "" };
  }

  setAxes(x: string | null, y: string | null): void {
    const named = (key: string | null) => this.facets.find((facet) => facet.key === key);
    this.x = named(x) ?? this.x;
    this.y = named(y) ?? this.y;
  }

  close(): void {
    unload(this.element);
    this.refreshers = [];
    this.element.replaceChildren();
  }

  render(changed: () => void): void {
    const choice = (label: string, current: Facet | null, set: (facet: Facet) => void) => {
      const options = this.facets.map(({ key, label: name }) =>
        el("option", { value: key, selected: key === current?.key }, brief(name, 40)),
      );
      const select = el(
        "select",
        {
          change: () => {
            const facet = this.facets.find(({ key }) => key === select.value);
            if (facet) set(facet);
            changed();
            this.fill();
          },
        },
        ...options,
      );
      return el("label", { class: "facet" }, el("span", {}, label), select);
    };
    const swap = el(
      "button",
      {
        type: "button",
        class: "plain",
        click: () => {
          [this.x, this.y] = [this.y, this.x];
          changed();
          this.render(changed);
        },
      },
      "Swap",
    );
    this.element.replaceChildren(
      el(
        "div",
        { class: "axes-choice" },
        choice("Across", this.x, (facet) => {
          this.x = facet;
        }),
        choice("Down", this.y, (facet) => {
          this.y = facet;
        }),
        swap,
      ),
      this.table,
    );
    this.fill();
  }

  private fill(): void {
    unload(this.table);
    this.refreshers = [];
    const { x, y } = this;
    if (x === null || y === null) return;
    const cells = new Map<string, Map<string, GalleryCard[]>>();
    for (const card of this.view.shown) {
      const across = x.of(card);
      const down = y.of(card);
      if (across === null || down === null) continue;
      const row = cells.get(down) ?? new Map<string, GalleryCard[]>();
      cells.set(down, row);
      const cell = row.get(across) ?? [];
      row.set(across, cell);
      cell.push(card);
    }
    const columns = x.values.filter((value) => [...cells.values()].some((row) => row.has(value)));
    const rows = y.values.filter((value) => cells.has(value));
    if (rows.length === 0) {
      this.table.replaceChildren(el("p", { class: "nothing" }, "No file has both."));
      return;
    }
    const head = (text: string, scope: string) =>
      el(
        "th",
        { scope, dir: "auto", title: visible(text.slice(0, 300)) },
        el("span", {}, brief(text, 60) || "(empty)"),
      );
    const table = el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el(
            "td",
            { class: "corner" },
            el("span", { dir: "auto" }, `${brief(y.label, 24)} ↓  ${brief(x.label, 24)} →`),
          ),
          ...columns.map((value) => head(value, "col")),
        ),
      ),
      el(
        "tbody",
        {},
        ...rows.map((down) =>
          el(
            "tr",
            {},
            head(down, "row"),
            ...columns.map((across) =>
              el("td", {}, this.cell(cells.get(down)?.get(across) ?? [], across, down)),
            ),
          ),
        ),
      ),
    );
    this.table.replaceChildren(table);
  }

  private cell(cards: readonly GalleryCard[], across: string, down: string): HTMLElement {
    const shown = cards.slice(0, cards.length > cellMax + 1 ? cellMax : cellMax + 1);
    const rest = cards.length - shown.length;
    const made = shown.map((card) => this.small(card));
    const more = el(
      "button",
      { type: "button", class: "more", click: () => this.narrowTo(across, down) },
      `${rest} more`,
    );
    return el("div", { class: `cell of-${Math.min(4, shown.length)}` }, ...made, ...(rest > 0 ? [more] : []));
  }

  private small(card: GalleryCard): HTMLElement {
    const button = el(
      "button",
      { type: "button", class: "small", click: () => this.actions.open(card) },
      preview(card),
    );
    const refresh = () => {
      const current = this.view.choices.choiceFor(card);
      for (const choice of ["pick", "reject", "redo"] as const)
        button.classList.toggle(choice, current === choice);
      button.setAttribute("aria-label", labelOf(card, current));
    };
    refresh();
    this.refreshers.push(refresh);
    return button;
  }

  /** Shows all of a cell as a grid. Rows of the sheet are no facet of the filter, so on that axis nothing is narrowed. */
  private narrowTo(across: string, down: string): void {
    for (const [facet, value] of [
      [this.x, across],
      [this.y, down],
    ] as const) {
      if (facet === null) continue;
      if (this.view.facets.some(({ key }) => key === facet.key)) this.view.setValue(facet.key, value);
    }
    this.actions.showCell();
  }
}

function rowFacet(cards: readonly GalleryCard[]): Facet {
  const nameOf = (card: GalleryCard) => `${card.rowNumber} · ${rowIdOf(card)}`;
  const values = new Set<string>();
  for (const card of cards) if (values.size <= axisMax) values.add(nameOf(card));
  return { key: "row", label: "row", of: nameOf, values: [...values] };
}

/** The two facets whose sheet has the most filled cells and the fewest empty ones. */
function fullestPair(facets: readonly Facet[], cards: readonly GalleryCard[]): [Facet | null, Facet | null] {
  let best: [Facet | null, Facet | null] = [facets[0] ?? null, facets[1] ?? null];
  let bestScore = 0;
  for (const [at, one] of facets.entries()) {
    for (const other of facets.slice(at + 1)) {
      if (one.key === "row" || other.key === "row") continue;
      const filled = new Set<string>();
      for (const card of cards) {
        const [a, b] = [one.of(card), other.of(card)];
        if (a !== null && b !== null) filled.add(JSON.stringify([a, b]));
      }
      const score = filled.size ** 2 / (one.values.length * other.values.length);
      if (score <= bestScore) continue;
      bestScore = score;
      best = one.values.length <= other.values.length ? [one, other] : [other, one];
    }
  }
  return best;
}
