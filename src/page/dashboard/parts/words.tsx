import { useState } from "preact/hooks";
import { visible } from "../../parts/visible.js";

/** Text on one line, or with its own line breaks; the style of its place truncates it. */
export function Words({ text, class: name = "" }: { text: string; class?: string }) {
  return (
    <span class={`words ${name}`} dir="auto">
      {visible(text.length > shortMax ? `${text.slice(0, shortMax)}…` : text)}
    </span>
  );
}

/** More than anyone reads in a row of a list. */
const shortMax = 600;

/** Longer than this, a text is cut until somebody wants to see all of it. */
const clampedMax = 420;

export function Clamped({ text }: { text: string }) {
  const [isOpen, setOpen] = useState(false);
  const lines = text.split("\n").length;
  if (text.length <= clampedMax && lines <= 8)
    return (
      <p class="prose" dir="auto">
        {visible(text)}
      </p>
    );
  const first = text.split("\n").slice(0, 8).join("\n");
  return (
    <div>
      <p class={isOpen ? "prose long" : "prose"} dir="auto">
        {visible(isOpen ? text : `${first.slice(0, clampedMax)}…`)}
      </p>
      <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Show less" : `Show all ${text.length.toLocaleString("en-US")} characters`}
      </button>
    </div>
  );
}
