/** What to do where the system does not let something be written, by its code; `what` is a file or a folder. */
export function madeWritable(code: string | undefined, what: string): string {
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
      return `free some space for ${what}`;
    case "ENOTDIR":
    case "EEXIST":
      return `see that no file lies in the way of ${what}`;
    default:
      return `make ${what} writable`;
  }
}
