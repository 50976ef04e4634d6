/**
 * UTC ms of a time that the service tells; NaN if it is none. Where it names no zone, UTC is meant: JavaScript would take
 * it for the time of this machine's zone.
 */
export function serviceTime(text: string): number {
  const isOpen = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.]*$/.test(text);
  return Date.parse(isOpen ? `${text}Z` : text);
}
