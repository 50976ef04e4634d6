import { useRef, useState } from "preact/hooks";
import type { GalleryCard } from "../../upkeep/archive/gallery.js";
import { IconButton } from "../parts/icon.js";
import { brief, visible } from "../parts/visible.js";
import { ChoiceButtons, labelOf, Marks } from "./choosing.js";
import { toggleSound } from "./media/player.js";
import { kindOf, Preview } from "./media/preview.js";
import type { GalleryView } from "./view.js";

export const isTouched = matchMedia("(hover: none)").matches;

interface CardProps {
  view: GalleryView;
  card: GalleryCard;
  /** Of what is shown. */
  position: number;
  /** It is the one that Tab reaches. */
  isCurrent: boolean;
  style: Record<string, string>;
}

export function Card({ view, card, position, isCurrent, style }: CardProps) {
  const preview = useRef<HTMLButtonElement>(null);
  // While the page scrolls, cards come and go: without their tools they cost half as much.
  const [hasTools, setTools] = useState(isTouched);
  const showTools = () => setTools(true);
  const { file } = card;
  const isMarked = view.marked === card;
  return (
    <li
      class={`card ${view.choices.choiceFor(card) ?? ""} ${isMarked ? "marked" : ""}`}
      aria-setsize={view.shown.length}
      aria-posinset={position + 1}
      style={style}
      onPointerEnter={showTools}
      onFocusIn={showTools}
    >
      <button
        ref={preview}
        type="button"
        class="flat preview"
        tabIndex={isCurrent ? 0 : -1}
        aria-label={labelOf(view, card)}
        onClick={() => view.open(card)}
        onFocus={() => view.hasFocus(card)}
      >
        <Preview card={card} scrubs />
      </button>
      {file !== null && kindOf(file) === "sound" && (
        <IconButton
          name="play"
          class="tool sound"
          label="Play (Space)"
          tabIndex={-1}
          onClick={() => preview.current !== null && toggleSound(file, preview.current)}
        />
      )}
      <Marks view={view} card={card} isMarked={isMarked} />
      {hasTools && file !== null && (
        <div class="tools">
          <ChoiceButtons view={view} card={card} tabIndex={-1} />
          <IconButton
            name="compare"
            class="tool"
            label="Compare (C)"
            tabIndex={-1}
            aria-pressed={isMarked}
            onClick={() => view.compareWith(card)}
          />
        </div>
      )}
      <div class="caption">
        <div class="name" dir="auto" title={visible(card.rowId.slice(0, 300))}>
          {brief(card.rowId, 120)}
        </div>
        <div class="prompt" dir="auto">
          {brief(card.prompt ?? file?.path ?? "", 160)}
        </div>
      </div>
    </li>
  );
}
