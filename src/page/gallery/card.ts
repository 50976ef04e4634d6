import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import type { FileChoice } from "./choices.js";
import { el, icon, iconButton } from "./dom.js";
import { kindOf, preview, scrubbed, toggleSound, unload } from "./media.js";
import { brief, visible } from "./text.js";
import type { GalleryView } from "./view.js";

export interface CardActions {
  open(card: GalleryCard): void;
  compare(card: GalleryCard): void;
  focused(card: GalleryCard): void;
}

export interface ShownCard {
  element: HTMLLIElement;
  /** What can have the focus. */
  button: HTMLButtonElement;
  /** Shows what was chosen since. */
  refresh(): void;
  close(): void;
}

const choiceNames: Readonly<Record<FileChoice, string>> = {
  pick: "Pick",
  reject: "Reject",
  redo: "Redo",
};
const chosenWords: Readonly<Record<FileChoice, string>> = {
  pick: "picked",
  reject: "rejected",
  redo: "to redo",
};

const isTouched = matchMedia("(hover: none)");

/** A card of the grid, at this position of what is shown. */
export function cardElement(
  view: GalleryView,
  card: GalleryCard,
  position: number,
  actions: CardActions,
): ShownCard {
  const { file } = card;
  const shown = preview(card);
  const button = el(
    "button",
    {
      type: "button",
      class: "preview",
      tabindex: -1,
      click: () => actions.open(card),
      focus: () => actions.focused(card),
    },
    shown,
  );
  const kind = file === null ? null : kindOf(file);
  if (shown instanceof HTMLVideoElement) {
    scrubbed(button, shown);
    button.append(el("span", { class: "kind" }, icon("play")));
  }
  const sound =
    file !== null && kind === "sound"
      ? iconButton("play", "Play (Space)", () => toggleSound(file, button), {
          class: "tool sound",
          tabindex: -1,
        })
      : null;
  const marks = el("div", { class: "marks" });
  const element = el(
    "li",
    { class: "card", "aria-setsize": view.shown.length, "aria-posinset": position + 1 },
    button,
    sound,
    marks,
    el(
      "div",
      { class: "caption" },
      el(
        "div",
        { class: "name", dir: "auto", title: visible(card.rowId.slice(0, 300)) },
        brief(card.rowId, 120),
      ),
      el("div", { class: "prompt", dir: "auto" }, brief(card.prompt ?? file?.path ?? "", 160)),
    ),
  );
  let refreshTools = () => {};
  const addTools = () => {
    if (file === null || element.querySelector(".tools") !== null) return;
    const choosing = choiceButtons(view, () => card);
    for (const each of choosing.buttons) each.tabIndex = -1;
    const compare = iconButton("compare", "Compare (C)", () => actions.compare(card), { tabindex: -1 });
    marks.after(el("div", { class: "tools" }, ...choosing.buttons, compare));
    refreshTools = () => {
      choosing.refresh();
      compare.setAttribute("aria-pressed", String(view.marked === card));
    };
    refreshTools();
  };
  // While the page scrolls, cards come and go: without their tools they cost half as much.
  if (isTouched.matches) addTools();
  for (const event of ["pointerenter", "focusin"]) element.addEventListener(event, addTools);

  const refresh = () => {
    const current = view.choices.choiceFor(card);
    for (const choice of ["pick", "reject", "redo"] as const)
      element.classList.toggle(choice, current === choice);
    const isMarked = view.marked === card;
    element.classList.toggle("marked", isMarked);
    refreshTools();
    marks.replaceChildren(...marksOf(card, current, isMarked));
    button.setAttribute("aria-label", labelOf(card, current));
  };
  refresh();
  return { element, button, refresh, close: () => unload(element) };
}

/** Buttons for the choices about the card that is meant; none on a page for a client. */
export function choiceButtons(
  view: GalleryView,
  cardMeant: () => GalleryCard,
): { buttons: HTMLButtonElement[]; refresh(): void } {
  if (view.page.isForClient || cardMeant().name === "") return { buttons: [], refresh: () => {} };
  const made = (["pick", "reject", "redo"] as const).map((choice) => {
    const label = `${choiceNames[choice]} (${{ pick: "P", reject: "X", redo: "R" }[choice]})`;
    const toggle = () => {
      const card = cardMeant();
      view.choose(card, view.choices.of(card) === choice ? null : choice);
    };
    return { choice, button: iconButton(choice, label, toggle, { class: `tool ${choice}` }) };
  });
  return {
    buttons: made.map(({ button }) => button),
    refresh() {
      const current = view.choices.choiceFor(cardMeant());
      for (const { choice, button } of made) button.setAttribute("aria-pressed", String(current === choice));
    },
  };
}

/** What tells a card from others at a glance. */
export function marksOf(card: GalleryCard, current: FileChoice | null, isMarked = false): HTMLElement[] {
  const { edition, variant, isEarlier, state } = card;
  const words: [string, string][] = [];
  if (isMarked) words.push(["compared", "A"]);
  if (current !== null) words.push([current, chosenWords[current]]);
  if (state === "failed" || state === "held") words.push([state, state]);
  if (state === "waiting" && current === null) words.push(["waiting", "to approve"]);
  if (state === "approved" && current === null) words.push(["approved", "approved"]);
  if (edition !== "") words.push(["plain", `edition ${brief(edition.replace(/^#/, ""), 24)}`]);
  if (variant > 1) words.push(["plain", `v${variant}`]);
  if (isEarlier) words.push(["plain", "earlier"]);
  return words.map(([kind, word]) => {
    const drawn = kind === "pick" || kind === "reject" || kind === "redo" ? icon(kind) : null;
    return el("span", { class: `mark ${kind}` }, drawn, word);
  });
}

export function labelOf(card: GalleryCard, current: FileChoice | null): string {
  const { rowId, file, state, variant, isEarlier } = card;
  return [
    brief(rowId, 120),
    file === null ? state : kindOf(file),
    ...(variant > 1 ? [`variant ${variant}`] : []),
    ...(isEarlier ? ["earlier version"] : []),
    ...(current === null ? [] : [chosenWords[current]]),
  ].join(", ");
}
