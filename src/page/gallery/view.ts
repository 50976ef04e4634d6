import type { GalleryCard, GalleryPage } from "../../upkeep/archive/gallery.js";
import { Choices } from "./choices.js";

/** What cards can be filtered by, and put on an axis by. */
export interface Facet {
  key: string;
  label: string;
  /** Null for a card without it. */
  of(card: GalleryCard): string | null;
  /** More than one, in order. */
  values: readonly string[];
}

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

/** A facet with more values is left out: use the search for them. */
const valuesMax = 200;

type Change = "shown" | "choices" | "marked";

/** The cards, which of them are shown, and the choices. */
export class GalleryView {
  readonly choices: Choices;
  readonly facets: readonly Facet[];
  readonly cards: readonly GalleryCard[];
  filter: CardFilter = noFilter;
  /** The cards that pass the filter, in order. */
  shown: readonly GalleryCard[];
  /** The card that was marked as the first of two to compare. */
  marked: GalleryCard | null = null;
  private readonly searched = new Map<GalleryCard, string>();
  private readonly listeners = new Map<Change, (() => void)[]>();

  constructor(readonly page: GalleryPage) {
    this.cards = page.cards;
    this.shown = page.cards;
    this.choices = new Choices(page);
    this.facets = facetsOf(page.cards);
  }

  on(change: Change, act: () => void): void {
    this.listeners.set(change, [...(this.listeners.get(change) ?? []), act]);
  }

  tell(change: Change): void {
    for (const act of this.listeners.get(change) ?? []) act();
  }

  setFilter(change: Partial<CardFilter>): void {
    this.filter = { ...this.filter, ...change };
    this.shown = this.cards.filter((card) => this.passes(card));
    this.tell("shown");
  }

  setValue(key: string, value: string | null): void {
    const values = new Map(this.filter.values);
    if (value === null) values.delete(key);
    else values.set(key, value);
    this.setFilter({ values });
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

  choose(card: GalleryCard, choice: Parameters<Choices["choose"]>[1]): void {
    this.choices.choose(card, choice);
    this.tell("choices");
  }

  mark(card: GalleryCard | null): void {
    this.marked = card;
    this.tell("marked");
  }

  /** The other files of a card's row. */
  siblings(card: GalleryCard): GalleryCard[] {
    return this.cards.filter((other) => other !== card && other.row === card.row && other.file !== null);
  }

  /** The filter as written in the address of the page, so that a reload keeps it. */
  get hash(): string {
    const { text, state, values } = this.filter;
    const said = new URLSearchParams();
    if (text !== "") said.set("q", text);
    if (state !== "all") said.set("state", state);
    for (const [key, value] of values) said.set(`f.${key}`, value);
    return String(said);
  }

  readHash(hash: string): void {
    const said = new URLSearchParams(hash.replace(/^#/, ""));
    const state = Object.keys(stateNames).find((name) => name === said.get("state")) as StateName | undefined;
    const values = this.facets.flatMap(({ key, values: known }) => {
      const value = said.get(`f.${key}`);
      return value !== null && known.includes(value) ? [[key, value] as const] : [];
    });
    this.setFilter({ text: said.get("q") ?? "", state: state ?? "all", values: new Map(values) });
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

function facetsOf(cards: readonly GalleryCard[]): Facet[] {
  const params = new Set(cards.flatMap((card) => Object.keys(card.params)));
  const columns = new Set(cards.flatMap((card) => Object.keys(card.columns)));
  const own = (values: Readonly<Record<string, string>>, key: string) =>
    Object.hasOwn(values, key) ? (values[key] ?? null) : null;
  const all: Omit<Facet, "values">[] = [
    { key: "model", label: "model", of: ({ model }) => model },
    ...[...columns].map((key) => ({
      key: `c.${key}`,
      label: key,
      of: (card: GalleryCard) => own(card.columns, key),
    })),
    ...[...params].map((key) => ({
      key: `p.${key}`,
      label: key,
      of: (card: GalleryCard) => own(card.params, key),
    })),
    { key: "edition", label: "edition", of: ({ edition }) => edition.replace(/^#/, "") || "1" },
    { key: "variant", label: "variant", of: ({ variant }) => String(variant) },
  ];
  const partings = new Set<string>();
  return all.flatMap((facet) => {
    const values = new Map<string, number>();
    const parting: number[] = [];
    for (const card of cards) {
      const value = facet.of(card);
      if (value !== null && !values.has(value)) values.set(value, values.size);
      if (values.size > valuesMax) return [];
      parting.push(value === null ? -1 : (values.get(value) ?? -1));
    }
    // If several columns group the cards in the same way, such as the texts of each row, the first is enough.
    const isColumn = facet.key.startsWith("c.");
    if (values.size < 2 || (isColumn && partings.has(String(parting)))) return [];
    partings.add(String(parting));
    return [{ ...facet, values: [...values.keys()].sort(inOrder) }];
  });
}

const inOrder = new Intl.Collator(undefined, { numeric: true }).compare;
