/** What to do where the system does not let something be written, by its code; `what` is a file or a folder, or `it`. */
export function madeWritable(code: string | undefined, what: string): string {
  return code === "ENOSPC" || code === "EDQUOT" ? `free some space for ${what}` : `make ${what} writable`;
}
