/**
 * Texts come from manifests and from the service. What would hide, reorder or overlay other text is shown as what it is;
 * what is copied is the text itself.
 */
export function visible(text: string): string {
  return (
    text
      .replace(
        /[\u202a-\u202e\u2066-\u2069]/g,
        (mark) => `⟨U+${mark.charCodeAt(0).toString(16).toUpperCase()}⟩`,
      )
      .replace(/\r\n?/g, "\n")
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is replaced
      .replace(/[\u0000-\u0008\u000b-\u001f]/g, (control) =>
        String.fromCharCode(0x2400 + control.charCodeAt(0)),
      )
      .replace(/[\u007f-\u009f]/g, "\u2421")
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

/** A relative address: names may hold `#`, `?`, `%` and look like a scheme. */
export function address(path: string): string {
  return `./${path.split("/").map(segment).join("/")}`;
}

function segment(name: string): string {
  // Half a surrogate pair has no address; such a file cannot be on a disk either.
  return encodeURIComponent(name.replace(/\p{Surrogate}/gu, "\ufffd"));
}

/** Puts a text on the clipboard, also where a page from the disk has no access to it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  // Everything outside of an open dialog is inert.
  const place = document.querySelector("dialog[open]") ?? document.body;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  place.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isCopied;
}
