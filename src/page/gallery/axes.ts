import { rowIdOf } from "../../core/variant.js";
import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import type { Facet } from "./facets.js";

/** What differs from column to column of the contact sheet, and from row to row. */
export interface Axes {
  readonly facets: readonly Facet[];
  x: Facet | null;
  y: Facet | null;
}

/** A sheet with more columns or rows is too large to look at. */
const axisMax = 60;

export function axesOf(facets: readonly Facet[], cards: readonly GalleryCard[]): Axes {
  const possible = [...facets, rowFacet(cards)].filter(
    ({ values }) => values.length > 1 && values.length <= axisMax,
  );
  const [x, y] = fullestPair(possible, cards);
  return { facets: possible, x, y };
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
