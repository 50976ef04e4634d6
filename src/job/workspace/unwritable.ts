import { EarlyExit } from "../../core/exit.js";
import { wayOut } from "../../store/open.js";

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

/** A database that cannot be used any more ends the run in good order; any other error is a defect. Throws in any case. */
export function endRefused(error: unknown): never {
  const todo = wayOut(error);
  if (todo === null) throw error;
  throw new EarlyExit(
    "unfinished",
    `the run cannot go on (${(error as Error).message}). What was answered is on record. To go on: ${todo}; then \`bulkgen resume\`.`,
  );
}
