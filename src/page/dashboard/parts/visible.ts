/**
 * Text from outside: a prompt, a name, a message of the service. It is always a text node, has its own direction
 * without affecting the text around it, and its control characters are shown or removed.
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
