import { EarlyExit } from "../core/exit.js";
import { problemsText } from "../report/problem-text.js";

/** Rethrows an error. The message of a refused manifest also has its problems, as the command prints them. */
export function toldProblems(error: unknown, folder: string): never {
  if (!(error instanceof EarlyExit) || error.problems === null) throw error;
  const { exit, message, problems, cause } = error;
  const told = `${message}\n${problemsText(problems, folder)}`;
  throw new EarlyExit(exit, told, problems, cause === undefined ? undefined : { cause });
}
