/** Characters without width that come with text copied from a chat or a web page; `trim` leaves them. */
const invisible = /^[\s\u200b\u2060\ufeff]+|[\s\u200b\u2060\ufeff]+$/g;
const edge = /^[\u200b\u2060]|[\u200b\u2060]$/;

/** The text without spaces and invisible characters around it. */
export function trimmedText(text: string): string {
  const plain = text.trim();
  return edge.test(plain) ? plain.replaceAll(invisible, "") : plain;
}
