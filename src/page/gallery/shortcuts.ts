import type { RefObject } from "preact";
import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import type { Keys } from "../parts/keys.js";
import type { GridControl } from "./grid.js";
import { stopSound, togglePlay, toggleSound } from "./media/player.js";
import type { GalleryView } from "./view.js";

type Grid = RefObject<GridControl | null>;

/** What keys do, by what is open. */
export function shortcuts(view: GalleryView, grid: Grid, focusSearch: () => void): Keys {
  if (view.compared !== null) return comparing(view);
  if (view.large !== null) return looking(view, view.large);
  if (view.sheet !== null) return {};
  return walking(view, grid, focusSearch);
}

function choosing(view: GalleryView, card: GalleryCard | null): Keys {
  const choose = (choice: "pick" | "reject" | "redo" | null) => () => {
    if (card === null || view.page.isForClient) return false;
    view.choose(card, choice);
    return true;
  };
  return { p: choose("pick"), x: choose("reject"), r: choose("redo"), u: choose(null) };
}

/** Whether the focus is on a control of its own, which Enter and Space belong to. */
function isOnControl({ target }: KeyboardEvent): boolean {
  return target instanceof HTMLElement && target.matches("button:not(.preview), a, summary");
}

function walking(view: GalleryView, grid: Grid, focusSearch: () => void): Keys {
  const always: Keys = {
    "/": focusSearch,
    "?": () => view.show("help"),
    Escape: () => {
      stopSound();
      view.unmark();
      return false;
    },
  };
  const card = view.focused;
  if (view.way !== "grid" || card === null) return always;
  return {
    ...always,
    ArrowRight: () => grid.current?.move(1),
    ArrowLeft: () => grid.current?.move(-1),
    ArrowDown: () => grid.current?.move(1, "row"),
    ArrowUp: () => grid.current?.move(-1, "row"),
    PageDown: () => grid.current?.move(1, "page"),
    PageUp: () => grid.current?.move(-1, "page"),
    Home: () => grid.current?.move(Number.NEGATIVE_INFINITY),
    End: () => grid.current?.move(Number.POSITIVE_INFINITY),
    Enter: (event) => !isOnControl(event) && view.open(card),
    " ": (event) => !isOnControl(event) && playFocused(view, card),
    "+": () => grid.current?.resize(view.size + 1),
    "=": () => grid.current?.resize(view.size + 1),
    "-": () => grid.current?.resize(view.size - 1),
    c: () => card.file !== null && view.compareWith(card),
    ...choosing(view, card),
  };
}

function playFocused(view: GalleryView, card: GalleryCard): void {
  const button = document.activeElement;
  if (!(button instanceof HTMLElement) || card.file === null) return;
  const clip = button.querySelector("video");
  if (clip !== null) togglePlay(clip);
  else if (card.file.mime.startsWith("audio/")) toggleSound(card.file, button);
  else view.open(card);
}

function looking(view: GalleryView, card: GalleryCard): Keys {
  // A long prompt is scrolled with the arrows.
  const isScrolling = ({ target }: KeyboardEvent) =>
    target instanceof HTMLElement && target.matches(".prompt-text");
  return {
    ArrowRight: () => view.step(1),
    ArrowLeft: () => view.step(-1),
    ArrowDown: (event) => !isScrolling(event) && view.step(1),
    ArrowUp: (event) => !isScrolling(event) && view.step(-1),
    " ": (event) => {
      const media = document.querySelector<HTMLMediaElement>(".stage video, .stage audio");
      if (isOnControl(event)) return false;
      if (media !== null) togglePlay(media);
      return true;
    },
    c: () => {
      if (card.file === null) return;
      const [other] = view.siblings(card);
      if (other !== undefined) return view.compare(card, other);
      view.open(null);
      view.compareWith(card);
    },
    ...choosing(view, card),
  };
}

function comparing(view: GalleryView): Keys {
  const [a, b] = view.compared ?? [];
  const pick = (card: GalleryCard | undefined) => () => {
    if (card === undefined || view.page.isForClient) return false;
    view.toggle(card, "pick");
    return true;
  };
  return {
    ArrowRight: () => view.turnComparison(1),
    ArrowLeft: () => view.turnComparison(-1),
    " ": (event) => {
      if (isOnControl(event)) return false;
      document.querySelector<HTMLButtonElement>(".together button")?.click();
      return true;
    },
    s: () => view.update({ isOver: !view.isOver }),
    "1": pick(a),
    "2": pick(b),
  };
}
