import type { ComponentChildren } from "preact";
import { Icon } from "../../parts/icon.js";

interface TurningProps {
  /** Which one of how many is shown, from 0. */
  index: number;
  count: number;
  onTurn: (by: 1 | -1) => void;
  children: ComponentChildren;
}

/** What is shown of several, between the buttons for the previous and the next. */
export function Turning({ index, count, onTurn, children }: TurningProps) {
  return (
    <div class="desk-stage">
      <button
        type="button"
        class="turn"
        aria-label="Previous"
        disabled={index <= 0}
        onClick={() => onTurn(-1)}
      >
        <Icon name="left" />
      </button>
      {children}
      <button
        type="button"
        class="turn"
        aria-label="Next"
        disabled={index >= count - 1}
        onClick={() => onTurn(1)}
      >
        <Icon name="right" />
      </button>
    </div>
  );
}
