import { useState } from "preact/hooks";

/**
 * Text that somebody else wrote: a prompt, a name, a message of the service. It is only ever a text node, it reads in its
 * own direction without turning what is beside it, and its control characters are seen or dropped.
 */
export function visible(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is made visible
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (character) =>
        String.fromCharCode(0x2400 + character.charCodeAt(0)),
      )
      .replace(/(?![\u200c\u200d])[\p{Cf}\u007f-\u009f]/gu, "")
      .replace(/\p{Cs}/gu, "\ufffd")
      .replace(/(\p{M}{8})\p{M}+/gu, "$1")
  );
}

/** On one line or where it breaks by itself; the style of its place cuts it. */
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
