import type { GalleryPage } from "../../src/upkeep/archive/gallery.js";

/** What a page of the gallery holds. */
export function galleryData(page: string): GalleryPage {
  const [, json = ""] = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page) ?? [];
  return JSON.parse(json);
}
