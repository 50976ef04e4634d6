import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LiveGallery } from "../../src/cli/output/live-gallery.js";
import { openLiveGallery } from "../../src/cli/output/live-gallery.js";
import type { ItemState } from "../../src/core/item.js";
import { media } from "../archive/media.js";
import { galleryData } from "../report/gallery-data.js";
import { type ArchivedPlace, archivedPlace } from "../upkeep/archived-place.js";

let place: ArchivedPlace;
let gallery: LiveGallery;
let said: string[];
beforeEach(async () => {
  place = await archivedPlace();
  said = [];
  gallery = openLiveGallery(place.workspace, { clock: place.clock, cwd: place.workspace.root }, (line) =>
    said.push(line),
  );
});
afterEach(() => place.close());

/** The files on the page, once there are so many of them. */
async function shown(files: number): Promise<string[]> {
  for (;;) {
    try {
      const { cards } = galleryData(readFileSync(join(place.folder, "gallery.html"), "utf8"));
      if (cards.length === files) return cards.map(({ rowId }) => rowId);
    } catch {
      // It is not there yet.
    }
    await new Promise(setImmediate);
  }
}

const progress = (archived: number) =>
  gallery.progress({ counts: { archived, failed: 0, held: 0 } as Record<ItemState, number> });

test("the page is written at once, again when something has changed and time has passed, and at the end", async () => {
  await place.archive("a", [await media.png()]);
  gallery.begin(place.run);
  expect(await shown(1)).toEqual(["a"]);
  await place.archive("b", [await media.png()]);
  progress(2);
  // It rests first: its file is still the old one after many turns.
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  expect(await shown(1)).toEqual(["a"]);
  place.clock.advance(5_001);
  expect(await shown(2)).toEqual(["a", "b"]);
  await place.archive("c", [await media.png()]);
  progress(3);
  await gallery.ended();
  expect(await shown(3)).toEqual(["a", "b", "c"]);
  expect(said).toEqual(["gallery: outputs/demo/gallery.html"]);
});

test("a last writing that takes long says how far it is: the summary is there, and the command seems to hang", async () => {
  for (const id of ["a", "b", "c"]) await place.archive(id, [await media.png()]);
  let now = 0;
  const slow = {
    now: () => 0,
    monotonic: () => (now += 4_000),
    sleep: () => new Promise<void>(() => {}),
    alarm: () => () => {},
  };
  gallery = openLiveGallery(place.workspace, { clock: slow, cwd: place.workspace.root }, (line) =>
    said.push(line),
  );
  gallery.begin(place.run);
  await shown(3);
  await gallery.ended();
  expect(said).toEqual(["writing the gallery: 2 of 3 files", "gallery: outputs/demo/gallery.html"]);
});

test("what keeps the page from being written is said once, and the run does not hear of it", async () => {
  rmSync(place.workspace.stateFile);
  gallery.begin({ id: 77 });
  await gallery.ended();
  expect(said).toHaveLength(1);
  expect(said[0]).toContain("the gallery could not be written: ");
});
