import { CommanderError } from "commander";
import { EarlyExit, type ExitName, exitCode } from "../../core/exit.js";
import { stackWithModules } from "./stack.js";

/** Sets the code that the process ends with. */
export function endWith(exit: ExitName): void {
  process.exitCode = exitCode(exit);
}

/**
 * Runs a command to its end and turns whatever it throws into one clear message and the documented exit code. What is
 * not foreseen is a defect: it is shown with its stack, so that it can be reported.
 */
export async function ended(command: () => Promise<unknown>): Promise<void> {
  try {
    await command();
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed its message; help and version are no errors.
      process.exitCode = error.exitCode === 0 ? 0 : exitCode("usage");
      return;
    }
    if (error instanceof EarlyExit) {
      if (error.problems) {
        const { problemsText } = await import("../../report/problem-text.js");
        process.stderr.write(`${problemsText(error.problems, process.cwd())}\n`);
      }
      process.stderr.write(`bulkgen: ${error.message}\n`);
      endWith(error.exit);
      return;
    }
    const { message, stack } = error instanceof Error ? error : new Error(String(error));
    const exit = exitOf(error);
    const text = exit === "crash" ? stackWithModules(stack ?? message) : await refusal(error, message);
    process.stderr.write(`bulkgen: ${text}\n`);
    endWith(exit);
  }
}

/** What the system refuses, or SQLite on its behalf; `ERR_…` and any other code of SQLite mean a defect of ours. */
const refusals = /^(E[A-Z0-9]+|SQLITE_(BUSY|CANTOPEN|CORRUPT|FULL|IOERR|NOTADB|PERM|READONLY)\w*)$/;

/** The exit that something thrown leads to. What the system or a newer database refuses was foreseen. */
export function exitOf(error: unknown): ExitName {
  if (error instanceof EarlyExit) return error.exit;
  const { name, code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  return name === "NewerDatabase" || refusals.test(code ?? "") ? "usage" : "crash";
}

/** What is refused, and what to do about it; a newer database's own words say that already. */
async function refusal(error: unknown, message: string): Promise<string> {
  const { wayOut } = await import("../../store/way-out.js");
  const todo = (error as Error).name === "NewerDatabase" ? null : wayOut(error);
  return todo === null ? message : `${message}; ${todo}`;
}
