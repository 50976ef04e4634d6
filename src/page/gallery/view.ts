import type { GalleryCard, GalleryPage } from "../../upkeep/archive/gallery.js";
import { type Axes, axesOf } from "./axes.js";
import { Choices, type FileChoice } from "./choices.js";
import { type Facet, facetsOf } from "./facets.js";

export const stateNames = {
  all: "All",
  files: "Files",
  picked: "Picked",
  rejected: "Rejected",
  redo: "To redo",
  waiting: "Waiting for approval",
  failed: "Failed",
  held: "Held",
  earlier: "Earlier versions",
} as const;
export type StateName = keyof typeof stateNames;

export interface CardFilter {
  text: string;
  state: StateName;
  /** By key of a facet. */
  values: ReadonlyMap<string, string>;
}

export const noFilter: CardFilter = { text: "", state: "all", values: new Map() };

/** The steps of the size control. */
export const sizes = [112, 150, 200, 260, 340, 460] as const;

/** What lies over the cards, besides the large view and the comparison. */
type Sheet = "review" | "help";

/** What is shown: the cards that pass the filter, what is open, and the choices. */
export class GalleryView {
  readonly choices: Choices;
  readonly facets: readonly Facet[];
  readonly cards: readonly GalleryCard[];
  readonly axes: Axes;
  filter: CardFilter = noFilter;
  /** The cards that pass the filter, in order. */
  shown: readonly GalleryCard[];
  /** Changes with all that the numbers of the filters depend on. */
  revision = 0;
  way: "grid" | "sheet" = "grid";
  /** A step of `sizes`. */
  size = innerWidth < 600 ? 1 : 3;
  /** The card that has the focus, or had it last. */
  current: GalleryCard | null = null;
  /** The grid is to give the current card the focus; until then it stays the current one, whatever has the focus. */
  isFocusAsked = false;
  /** The card that was marked as the first of two to compare. */
  marked: GalleryCard | null = null;
  large: GalleryCard | null = null;
  compared: readonly [GalleryCard, GalleryCard] | null = null;
  /** Two pictures or clips are compared one over the other. */
  isOver = false;
  sheet: Sheet | null = null;
  /** A line that goes away by itself. */
  said: { text: string; number: number } | null = null;
  private readonly searched = new Map<GalleryCard, string>();
  private readonly numbers: ReadonlyMap<GalleryCard, number>;
  private changed: () => void = () => {};

  constructor(readonly page: GalleryPage) {
    this.cards = page.cards;
    this.shown = page.cards;
    this.choices = new Choices(page);
    this.facets = facetsOf(page.cards);
    this.axes = axesOf(this.facets, page.cards);
    this.numbers = new Map(page.cards.map((card, number) => [card, number]));
  }

  /** Calls back after each change. */
  follow(changed: () => void): void {
    this.changed = changed;
  }

  update(change: Partial<Pick<GalleryView, "way" | "size" | "current" | "isOver" | "said">>): void {
    Object.assign(this, change);
    this.changed();
  }

  setFilter(change: Partial<CardFilter>): void {
    this.filter = { ...this.filter, ...change };
    this.shown = this.cards.filter((card) => this.passes(card));
    this.revision++;
    this.changed();
  }

  setValue(key: string, value: string | null): void {
    const values = new Map(this.filter.values);
    if (value === null) values.delete(key);
    else values.set(key, value);
    this.setFilter({ values });
  }

  /** Shows all cards with these values as a grid; what is no facet of the filter narrows nothing. */
  narrowTo(wanted: ReadonlyMap<string, string>): void {
    const known = [...wanted].filter(([key]) => this.facets.some((facet) => facet.key === key));
    this.way = "grid";
    this.setFilter({ values: new Map([...this.filter.values, ...known]) });
  }

  setAxes(x: Facet | null, y: Facet | null): void {
    Object.assign(this.axes, { x, y });
    this.changed();
  }

  choose(card: GalleryCard, choice: Parameters<Choices["choose"]>[1]): void {
    if (card.name === "") this.say("Only files can be chosen");
    else {
      this.choices.choose(card, choice);
      this.revision++;
      this.changed();
    }
  }

  /** Takes the choice back if it is the current one. */
  toggle(card: GalleryCard, choice: FileChoice): void {
    this.choose(card, this.choices.of(card) === choice ? null : choice);
  }

  forgetChoices(): void {
    this.choices.clear();
    this.revision++;
    this.show(null);
  }

  /** The card of the grid that keys act on. */
  get focused(): GalleryCard | null {
    return this.shown[this.focusedAt] ?? null;
  }

  /** Its place among what is shown. */
  get focusedAt(): number {
    return Math.max(0, this.current === null ? 0 : this.shown.indexOf(this.current));
  }

  /** The card has the focus. */
  hasFocus(card: GalleryCard): void {
    if (!this.isFocusAsked && card !== this.current) this.update({ current: card });
  }

  focusOn(card: GalleryCard | undefined): void {
    if (card !== undefined) this.backTo(card);
    this.changed();
  }

  show(sheet: Sheet | null): void {
    this.sheet = sheet;
    this.said = null;
    this.changed();
  }

  open(card: GalleryCard | null): void {
    const before = this.large;
    this.large = card;
    this.said = null;
    if (card === null && before !== null) this.backTo(before);
    this.changed();
  }

  /** Shows the card this many places away, if there is one. */
  step(by: number): void {
    const at = this.large === null ? -1 : this.shown.indexOf(this.large);
    const other = at < 0 ? undefined : this.shown[at + by];
    if (other !== undefined) this.open(other);
  }

  /** Marks the first of two to compare, or compares it with this one. */
  compareWith(card: GalleryCard): void {
    const { marked } = this;
    this.marked = marked === null ? card : null;
    if (marked === null) this.say("Chosen as A: press C on another file to compare");
    else if (marked !== card) this.compare(marked, card);
    else this.changed();
  }

  compare(a: GalleryCard, b: GalleryCard): void {
    this.compared = [a, b];
    this.said = null;
    this.changed();
  }

  /** Shows another file as B: the next take of the row, or the next file shown. */
  turnComparison(by: number): void {
    if (this.compared === null) return;
    const [a, b] = this.compared;
    const takes = this.siblings(a);
    const others = (takes.includes(b) ? takes : this.shown).filter(
      (card) => card !== a && card.file !== null,
    );
    const other = others[(others.indexOf(b) + by + others.length) % others.length];
    if (other !== undefined && other !== b) this.compare(a, other);
  }

  closeComparison(): void {
    const before = this.compared;
    this.compared = null;
    this.said = null;
    if (before !== null && this.large === null) this.backTo(before[0]);
    this.changed();
  }

  unmark(): void {
    this.marked = null;
    this.changed();
  }

  say(text: string): void {
    this.update({ said: { text, number: (this.said?.number ?? 0) + 1 } });
  }

  /** Stays the same whatever is shown. */
  numberOf(card: GalleryCard): number {
    return this.numbers.get(card) ?? -1;
  }

  /** Whether a card passes the filter without the facet of the key `except`, or without the state if that is empty. */
  passes(card: GalleryCard, except?: string): boolean {
    if (except !== "" && !this.isIn(card, this.filter.state)) return false;
    for (const facet of this.facets) {
      const wanted = this.filter.values.get(facet.key);
      if (wanted !== undefined && facet.key !== except && facet.of(card) !== wanted) return false;
    }
    const text = this.filter.text.trim().toLowerCase();
    return text === "" || text.split(/\s+/).every((word) => this.textOf(card).includes(word));
  }

  isIn(card: GalleryCard, state: StateName): boolean {
    const current = this.choices.choiceFor(card);
    switch (state) {
      case "all":
        return true;
      case "files":
        return card.file !== null;
      case "picked":
        return current === "pick";
      case "rejected":
        return current === "reject";
      case "redo":
        return current === "redo";
      case "earlier":
        return card.isEarlier && card.file !== null;
      default:
        return card.state === state;
    }
  }

  /** The other files of a card's row. */
  siblings(card: GalleryCard): GalleryCard[] {
    return this.cards.filter((other) => other !== card && other.row === card.row && other.file !== null);
  }

  /** Filters and view as written in the address of the page, so that a reload keeps them. */
  get hash(): string {
    const { text, state, values } = this.filter;
    const said = new URLSearchParams();
    if (text !== "") said.set("q", text);
    if (state !== "all") said.set("state", state);
    for (const [key, value] of values) said.set(`f.${key}`, value);
    const { x, y } = this.axes;
    const axes = this.way === "sheet" ? { view: "xy", x: x?.key ?? "", y: y?.key ?? "" } : {};
    for (const [axis, key] of Object.entries(axes)) said.set(axis, key);
    return String(said);
  }

  readHash(hash: string): void {
    const said = new URLSearchParams(hash.replace(/^#/, ""));
    const state = Object.keys(stateNames).find((name) => name === said.get("state")) as StateName | undefined;
    const values = this.facets.flatMap(({ key, values: known }) => {
      const value = said.get(`f.${key}`);
      return value !== null && known.includes(value) ? [[key, value] as const] : [];
    });
    const { axes } = this;
    const named = (axis: "x" | "y") => axes.facets.find(({ key }) => key === said.get(axis)) ?? axes[axis];
    Object.assign(axes, { x: named("x"), y: named("y") });
    this.way = said.get("view") === "xy" && axes.facets.length > 1 ? "sheet" : "grid";
    this.setFilter({ text: said.get("q") ?? "", state: state ?? "all", values: new Map(values) });
  }

  /** After a dialog, the focus returns to its card. */
  private backTo(card: GalleryCard): void {
    this.current = card;
    this.isFocusAsked = this.way === "grid";
  }

  private textOf(card: GalleryCard): string {
    const known = this.searched.get(card);
    if (known !== undefined) return known;
    const { rowId, prompt, file, model, params, columns, trouble } = card;
    const values = [...Object.values(params), ...Object.values(columns)];
    const text = [rowId, prompt, file?.path, model, trouble?.reason, ...values].join("\n").toLowerCase();
    this.searched.set(card, text);
    return text;
  }
}
