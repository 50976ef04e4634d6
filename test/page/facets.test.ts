import { expect, test } from "vitest";
import { facetsOf } from "../../src/page/gallery/facets.js";
import type { GalleryCard } from "../../src/upkeep/archive/gallery.js";

function card(model: string, columns: Record<string, string>): GalleryCard {
  return { model, columns, params: {}, edition: "", variant: 1 } as unknown as GalleryCard;
}

test("a job's steps can be filtered by, though each has a model of its own", () => {
  const cards = [
    card("aurora", { shot: "1", place: "harbour", step: "frame" }),
    card("reel", { shot: "1", place: "harbour", step: "clip" }),
    card("aurora", { shot: "2", place: "kitchen", step: "frame" }),
  ];
  // The place says of each card what its shot says.
  expect(facetsOf(cards).map(({ label, values }) => [label, values])).toEqual([
    ["step", ["clip", "frame"]],
    ["model", ["aurora", "reel"]],
    ["shot", ["1", "2"]],
  ]);
});
