import { render } from "preact";
import type { GalleryPage } from "../../upkeep/archive/gallery.js";
import { Gallery } from "./app.js";
import { GalleryView } from "./view.js";
import "./gallery.css";

/** The gallery's page. It is bundled into one script, and written into each gallery with its data. */
const view = new GalleryView(JSON.parse(document.getElementById("data")?.textContent ?? "") as GalleryPage);
view.readHash(location.hash);
const page = document.getElementById("page");
if (page !== null) render(<Gallery view={view} />, page);
