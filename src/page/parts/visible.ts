/**
 * Text from outside: a prompt, a name, a message of the service. It is always a text node, and has its own direction
 * without affecting the text around it. What would hide, reorder or overlay other text is shown or removed; what is
 * copied is the text itself.
 */
export function visible(text: string): string {
  return (
    text
      .replace(
        /[\u202a-\u202e\u2066-\u2069]/g,
        (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase()}⟩`,
      )
      .replace(/\r\n?/g, "\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is made visible
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) =>
        String.fromCharCode(0x2400 + control.charCodeAt(0)),
      )
      .replace(/[\u007f-\u009f]/g, "\u2421")
      .replace(/(?![\u200c\u200d])\p{Cf}/gu, "")
      .replace(/\p{Cs}/gu, "\ufffd")
      .replace(/(\p{M}{8})\p{M}+/gu, "$1")
  );
}

/** The beginning of a text on one line. */
export function brief(text: string, charactersMax: number): string {
  const line = visible(text.slice(0, 4 * charactersMax))
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= charactersMax
    ? line
    : `${line.slice(0, charactersMax).replace(/[\ud800-\udbff]$/, "")}…`;
}
