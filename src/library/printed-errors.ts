import { EarlyExit } from "../core/exit.js";
import { problemsText } from "../report/problem-text.js";
import { DatabaseTrouble, NewerDatabase, wayOut } from "../store/open.js";

/**
 * Rethrows an error with the message that the command prints. That of a refused manifest also has its problems. Trouble
 * with a file or a database that a person can remove becomes an EarlyExit, with what to do.
 */
export function rethrowAsPrinted(error: unknown, folder: string): never {
  if (error instanceof EarlyExit && error.problems !== null) {
    const { exit, message, problems, cause } = error;
    const printed = `${message}\n${problemsText(problems, folder)}`;
    throw new EarlyExit(exit, printed, problems, cause === undefined ? undefined : { cause });
  }
  if (!(error instanceof Error) || error instanceof EarlyExit) throw error;
  const todo = wayOut(error);
  if (todo === null) throw error;
  const exit = error instanceof DatabaseTrouble ? "unreachable" : "usage";
  const printed = error instanceof NewerDatabase ? error.message : `${error.message}; ${todo}`;
  throw new EarlyExit(exit, printed, null, { cause: error });
}
