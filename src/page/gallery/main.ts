import { count, fileSize } from "../../text/amounts.js";
import type { GalleryCard, GalleryPage } from "../../upkeep/archive/gallery.js";
import { AxesSheet } from "./axes.js";
import { FilterBar } from "./bar.js";
import { Compare } from "./compare.js";
import { Dialog, toast } from "./dialog.js";
import { el, icon } from "./dom.js";
import { Grid, sizeSteps } from "./grid.js";
import { Large } from "./large.js";
import { isSounding, stopSound, toggleSound } from "./media.js";
import { Review } from "./review.js";
import { visible } from "./text.js";
import { GalleryView } from "./view.js";
import "./gallery.css";

/** The gallery's page. It is compiled and bundled into one script, and written into each gallery with its data. */
const page = JSON.parse(document.getElementById("data")?.textContent ?? "") as GalleryPage;
const view = new GalleryView(page);
view.readHash(location.hash);

const grid = new Grid(view, { open: (card) => large.open(card), compare: compareWith });
const sheet = new AxesSheet(view, { open: (card) => large.open(card), showCell: () => showAs("grid") });
const large = new Large(view, { compare: (a, b) => compare.open(a, b), closed: backTo });
const compare = new Compare(view, (card) => {
  if (large.current === null) backTo(card);
});
const help = new Dialog("sheet help", "Keyboard");
const review = page.isForClient ? null : new Review(view);
const filters = new FilterBar(view);

let shownAs: "grid" | "sheet" = "grid";
let focused: GalleryCard | null = null;

const nothing = el("p", { class: "nothing" });
const main = el("main", {}, grid.element, sheet.element, nothing);
const wayButtons = { grid: wayButton("grid", "Grid"), sheet: wayButton("sheet", "X/Y") };
const size = el("input", {
  type: "range",
  class: "size",
  min: 0,
  max: sizeSteps - 1,
  value: grid.step,
  "aria-label": "Size of the cards",
  title: "Size",
  input: () => {
    grid.step = size.valueAsNumber;
  },
});

document.body.append(
  el(
    "header",
    { class: "head" },
    el(
      "div",
      { class: "title-line" },
      el(
        "div",
        { class: "title" },
        el("h1", { dir: "auto" }, visible(page.job)),
        el("p", { class: "quiet" }, factsOf()),
      ),
      el(
        "div",
        { class: "controls" },
        ...(sheet.isPossible
          ? [
              el(
                "div",
                { class: "ways", role: "group", "aria-label": "View" },
                wayButtons.grid,
                wayButtons.sheet,
              ),
            ]
          : []),
        size,
        el(
          "button",
          {
            type: "button",
            class: "plain help-button",
            "aria-label": "Keyboard shortcuts",
            title: "Keyboard (?)",
            click: showHelp,
          },
          "?",
        ),
        review?.button ?? null,
      ),
    ),
    page.cards.length === 0 ? null : filters.element,
  ),
  main,
);

view.on("shown", () => {
  // Keeps the current card in view, if it is still there.
  grid.restart(focused);
  showNothing();
  if (shownAs === "sheet") sheet.render(keepAddress);
  keepAddress();
});
readView();
showNothing();
addEventListener("hashchange", () => {
  view.readHash(location.hash);
  readView();
});
addEventListener("keydown", onKey);

function wayButton(way: "grid" | "sheet", label: string): HTMLButtonElement {
  const click = () => showAs(way);
  return el("button", { type: "button", class: "way", click }, icon(way === "grid" ? "grid" : "axes"), label);
}

function factsOf(): string {
  const files = page.cards.flatMap(({ file }) => file ?? []);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const has = (state: string) => page.cards.filter((card) => card.state === state).length;
  return [
    count(files.length, "file"),
    ...["failed", "held"].flatMap((state) => (has(state) === 0 ? [] : [`${has(state)} ${state}`])),
    fileSize(bytes),
    new Date(page.madeAt).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }),
  ].join(" · ");
}

function showNothing(): void {
  nothing.hidden = view.shown.length > 0;
  nothing.textContent =
    page.cards.length === 0 ? "Nothing is archived yet." : "Nothing passes these filters.";
}

function showAs(way: "grid" | "sheet"): void {
  shownAs = way;
  for (const [name, button] of Object.entries(wayButtons))
    button.setAttribute("aria-pressed", String(name === way));
  const isGrid = way === "grid";
  grid.element.hidden = !isGrid;
  sheet.element.hidden = isGrid;
  size.hidden = !isGrid;
  if (isGrid) {
    sheet.close();
    grid.restart(focused);
  } else {
    grid.restart(null);
    sheet.render(keepAddress);
  }
  keepAddress();
}

/** Filters and view are in the address, so a reload keeps them. */
function keepAddress(): void {
  const said = new URLSearchParams(view.hash);
  if (shownAs === "sheet")
    for (const [axis, key] of Object.entries({ view: "xy", ...sheet.hash })) said.set(axis, key);
  const hash = String(said);
  history.replaceState(null, "", hash === "" ? location.pathname + location.search : `#${hash}`);
}

function readView(): void {
  const said = new URLSearchParams(location.hash.slice(1));
  sheet.setAxes(said.get("x"), said.get("y"));
  showAs(said.get("view") === "xy" && sheet.isPossible ? "sheet" : "grid");
}

function compareWith(card: GalleryCard): void {
  const { marked } = view;
  if (marked === null) {
    view.mark(card);
    toast("Chosen as A: press C on another file to compare");
    return;
  }
  view.mark(null);
  if (marked !== card) compare.open(marked, card);
}

/** After a dialog, the focus returns to its card. */
function backTo(card: GalleryCard): void {
  focused = card;
  if (shownAs === "grid") grid.focusOnCard(card);
}

function showHelp(): void {
  const keys: [string, string][] = [
    ["← → ↑ ↓", "move; in the large view, the next file"],
    ["Enter", "large view; Esc closes it"],
    ["Space", "play or pause"],
    ...(page.isForClient
      ? []
      : ([
          ["P", "pick"],
          ["X", "reject"],
          ["R", "redo: a new take of it"],
          ["U", "take the choice back"],
        ] as [string, string][])),
    ["C", "compare with another file"],
    ["S", "in a comparison: side by side, or a slider"],
    ["1 2", "in a comparison: pick A, pick B"],
    ["/", "search"],
    ["+ −", "larger or smaller cards"],
    ["?", "this list"],
  ];
  help.show([
    el("div", { class: "sheet-head" }, el("h2", {}, "Keyboard"), help.closeButton()),
    el(
      "dl",
      { class: "keys" },
      ...keys.flatMap(([key, what]) => [
        el("dt", {}, ...key.split(" ").map((one) => el("kbd", {}, one))),
        el("dd", {}, what),
      ]),
    ),
  ]);
}

function onKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const { target } = event;
  const isTyping = target instanceof HTMLInputElement && target.type === "search";
  if (isTyping) {
    if (event.key === "Escape" || event.key === "Enter" || event.key === "ArrowDown") {
      target.blur();
      grid.move(0);
      event.preventDefault();
    }
    return;
  }
  // A slider and a list have their own keys.
  const hasOwnKeys =
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && /^(Arrow|Home|End|Page)/.test(event.key));
  if (hasOwnKeys) return;
  const act = compare.isOpen
    ? comparing[event.key]
    : large.current !== null
      ? looking[event.key]
      : isDialogOpen()
        ? undefined
        : walking[event.key];
  if (act === undefined || act(event) === false) return;
  event.preventDefault();
}

function isDialogOpen(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

/** What a key does; false where it is left to the browser. */
type Keys = Readonly<Record<string, (event: KeyboardEvent) => unknown>>;

function choosing(current: () => GalleryCard | null): Keys {
  const choose = (choice: "pick" | "reject" | "redo" | null) => () => {
    const card = current();
    if (card === null || page.isForClient) return false;
    if (card.name === "") toast("Only files can be chosen");
    else view.choose(card, choice);
    return true;
  };
  const keys = { p: choose("pick"), x: choose("reject"), r: choose("redo"), u: choose(null) };
  return { ...keys, P: keys.p, X: keys.x, R: keys.r, U: keys.u };
}

/** Whether the focus is on a control of its own, which Enter and Space belong to. */
function isOnControl({ target }: KeyboardEvent): boolean {
  return target instanceof HTMLElement && target.matches("button:not(.preview), a, summary, video, audio");
}

const inGrid = (act: () => void) => () => {
  if (shownAs !== "grid") return false;
  act();
  return true;
};
const compareFocused = () => {
  const card = grid.current;
  if (shownAs !== "grid" || card?.file == null) return false;
  compareWith(card);
  return true;
};
const walking: Keys = {
  ArrowRight: inGrid(() => grid.move(1)),
  ArrowLeft: inGrid(() => grid.move(-1)),
  ArrowDown: inGrid(() => grid.move(1, "row")),
  ArrowUp: inGrid(() => grid.move(-1, "row")),
  PageDown: inGrid(() => grid.move(1, "page")),
  PageUp: inGrid(() => grid.move(-1, "page")),
  Home: inGrid(() => grid.move(Number.NEGATIVE_INFINITY)),
  End: inGrid(() => grid.move(Number.POSITIVE_INFINITY)),
  Enter: (event) => {
    const card = grid.current;
    if (shownAs !== "grid" || card === null || isOnControl(event)) return false;
    large.open(card);
    return true;
  },
  " ": (event) => {
    const card = grid.current;
    if (shownAs !== "grid" || card === null || isOnControl(event)) return false;
    playFocused(card);
    return true;
  },
  "/": () => filters.focusSearch(),
  "?": showHelp,
  "+": inGrid(() => resize(1)),
  "=": inGrid(() => resize(1)),
  "-": inGrid(() => resize(-1)),
  c: compareFocused,
  C: compareFocused,
  Escape: () => {
    stopSound();
    view.mark(null);
    return false;
  },
  ...choosing(() => (shownAs === "grid" ? grid.current : null)),
};

const compareTakes = () => {
  const card = large.current;
  const [other] = card === null ? [] : view.siblings(card);
  if (card?.file == null) return;
  if (other !== undefined) return compare.open(card, other);
  large.close();
  compareWith(card);
};
const looking: Keys = {
  ArrowRight: () => large.step(1),
  ArrowLeft: () => large.step(-1),
  ArrowDown: (event) => !isScrolling(event) && large.step(1),
  ArrowUp: (event) => !isScrolling(event) && large.step(-1),
  " ": (event) => !isOnControl(event) && large.togglePlay(),
  c: compareTakes,
  C: compareTakes,
  ...choosing(() => large.current),
};

const comparing: Keys = {
  ArrowRight: () => compare.turn(1),
  ArrowLeft: () => compare.turn(-1),
  " ": (event) => !isOnControl(event) && compare.togglePlay(),
  s: () => compare.toggleWay(),
  S: () => compare.toggleWay(),
  "1": () => compare.pick(0),
  "2": () => compare.pick(1),
};

/** A long prompt is scrolled with the arrows. */
function isScrolling({ target }: KeyboardEvent): boolean {
  return target instanceof HTMLElement && target.matches(".prompt-text");
}

function playFocused(card: GalleryCard): void {
  const button = document.activeElement;
  if (!(button instanceof HTMLElement) || card.file === null) return;
  const clip = button.querySelector("video");
  if (clip === null) {
    if (card.file.mime.startsWith("audio/")) toggleSound(card.file, button);
    else if (!isSounding(button)) large.open(card);
  } else if (clip.paused) void clip.play().catch(() => {});
  else clip.pause();
}

function resize(by: number): void {
  grid.step += by;
  size.value = String(grid.step);
}
