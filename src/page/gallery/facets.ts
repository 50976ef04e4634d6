import type { GalleryCard } from "../../upkeep/archive/gallery.js";

/** What cards can be filtered by, and put on an axis by. */
export interface Facet {
  key: string;
  label: string;
  /** Null for a card without it. */
  of(card: GalleryCard): string | null;
  /** More than one, in order. */
  values: readonly string[];
}

/** A facet with more values is left out: use the search for them. */
const valuesMax = 200;

export function facetsOf(cards: readonly GalleryCard[]): Facet[] {
  const params = new Set(cards.flatMap((card) => Object.keys(card.params)));
  const columns = new Set(cards.flatMap((card) => Object.keys(card.columns)));
  const own = (values: Readonly<Record<string, string>>, key: string) =>
    Object.hasOwn(values, key) ? (values[key] ?? null) : null;
  const ofColumn = (key: string) => ({
    key: `c.${key}`,
    label: key,
    of: (card: GalleryCard) => own(card.columns, key),
  });
  // Each step may have a model of its own, and is asked for by its name.
  const first = columns.delete("step") ? ["step"] : [];
  const all: Omit<Facet, "values">[] = [
    ...first.map(ofColumn),
    { key: "model", label: "model", of: ({ model }) => model },
    ...[...columns].map(ofColumn),
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
