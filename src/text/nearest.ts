import { distance as editDistance } from "fastest-levenshtein";

/** The candidate that a person most likely meant; undefined when more than about a third of the letters differ from each. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = slips(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  if (best === undefined) return undefined;
  return bestDistance <= Math.max(1, Math.round(Math.max(word.length, best.length) / 3)) ? best : undefined;
}

/** Letters in another order, as in `rnu`, are one slip of the fingers. */
function slips(word: string, candidate: string): number {
  return [...word].sort().join("") === [...candidate].sort().join("") && word !== candidate
    ? 1
    : editDistance(word, candidate);
}
