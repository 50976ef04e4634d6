/** Spaces, and characters without width that come with text copied from a chat or a web page; `trim` leaves those. */
const blank = /[\s\u200b\u2060]/;
const edge = /^[\u200b\u2060]|[\u200b\u2060]$/;

/** The text without spaces and invisible characters around it. */
export function trimmedText(text: string): string {
  const plain = text.trim();
  if (!edge.test(plain)) return plain;
  let [start, end] = [0, plain.length];
  while (start < end && blank.test(plain.charAt(start))) start++;
  while (end > start && blank.test(plain.charAt(end - 1))) end--;
  return plain.slice(start, end);
}
