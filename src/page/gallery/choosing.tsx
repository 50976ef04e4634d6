import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { Icon, IconButton, type IconName } from "../parts/icon.js";
import { brief } from "../parts/visible.js";
import type { FileChoice } from "./choices.js";
import { kindOf } from "./media/preview.js";
import type { GalleryView } from "./view.js";

interface ChoiceWords {
  name: string;
  key: string;
  icon: IconName;
  /** Of a file. */
  chosen: string;
}

const words: Readonly<Record<FileChoice, ChoiceWords>> = {
  pick: { name: "Pick", key: "P", icon: "decide", chosen: "picked" },
  reject: { name: "Reject", key: "X", icon: "close", chosen: "rejected" },
  redo: { name: "Redo", key: "R", icon: "redo", chosen: "to redo" },
};
const choices = Object.entries(words) as [FileChoice, ChoiceWords][];

/** Whether anything can be chosen about a card: nothing on a page for a client. */
export function canChoose(view: GalleryView, card: GalleryCard): boolean {
  return !view.page.isForClient && card.name !== "";
}

interface ChoiceProps {
  view: GalleryView;
  card: GalleryCard;
  hasWords?: boolean;
  tabIndex?: number;
  /** The key that picks it, if that is not P. */
  pickKey?: string;
}

/** Buttons for the choices about a card. */
export function ChoiceButtons({ view, card, hasWords = false, tabIndex = 0, pickKey = "P" }: ChoiceProps) {
  if (!canChoose(view, card)) return null;
  const current = view.choices.choiceFor(card);
  return (
    <>
      {choices.map(([choice, { name, key, icon }]) => (
        <IconButton
          key={choice}
          name={icon}
          class={`tool ${choice}`}
          label={`${name} (${key})`}
          title={`${name} (${choice === "pick" ? pickKey : key})`}
          tabIndex={tabIndex}
          aria-pressed={current === choice}
          onClick={() => view.toggle(card, choice)}
        >
          {hasWords && <span>{name}</span>}
        </IconButton>
      ))}
    </>
  );
}

interface MarksProps {
  view: GalleryView;
  card: GalleryCard;
  isMarked?: boolean;
}

/** What tells a card from others at a glance. */
export function Marks({ view, card, isMarked = false }: MarksProps) {
  const { edition, variant, isEarlier, state } = card;
  const current = view.choices.choiceFor(card);
  const marks: [string, string][] = [];
  if (isMarked) marks.push(["compared", "A"]);
  if (current !== null) marks.push([current, words[current].chosen]);
  if (state === "failed" || state === "held") marks.push([state, state]);
  if (state === "waiting" && current === null) marks.push(["waiting", "to approve"]);
  if (state === "approved" && current === null) marks.push(["approved", "approved"]);
  if (edition !== "") marks.push(["edition", `edition ${brief(edition.replace(/^#/, ""), 24)}`]);
  if (variant > 1) marks.push(["variant", `v${variant}`]);
  if (isEarlier) marks.push(["earlier", "earlier"]);
  return (
    <div class="marks">
      {marks.map(([kind, word]) => (
        <span key={kind} class={`mark ${kind}`}>
          {kind === current && <Icon name={words[current].icon} />}
          {word}
        </span>
      ))}
    </div>
  );
}

/** What a card is, for those who do not see it. */
export function labelOf(view: GalleryView, card: GalleryCard): string {
  const { rowId, file, state, variant, isEarlier } = card;
  const current = view.choices.choiceFor(card);
  return [
    brief(rowId, 120),
    file === null ? state : kindOf(file),
    ...(variant > 1 ? [`variant ${variant}`] : []),
    ...(isEarlier ? ["earlier version"] : []),
    ...(current === null ? [] : [words[current].chosen]),
  ].join(", ");
}
