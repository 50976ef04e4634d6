import { createInterface } from "node:readline/promises";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";

/** The question, and the words for the message when it cannot be asked. */
export interface YesQuestion {
  would: string;
  question: string;
  done: string;
}

/** Asks for a yes. Throws EarlyExit without a terminal to ask on. */
export async function confirmed(
  flags: { yes?: boolean },
  machine: Machine,
  interrupt: AbortSignal,
  { would, question, done }: YesQuestion,
): Promise<boolean> {
  if (flags.yes) return true;
  if (!machine.stdin.isTTY) {
    throw new EarlyExit(
      "usage",
      `${would}, and there is no terminal to ask on. Add --yes to agree. Nothing was ${done}.`,
    );
  }
  const answer = await answerTo(`${question} [y/N]`, { machine, interrupt, done });
  return /^y(es)?$/i.test(answer ?? "");
}

/** The line that the user types; null for a closed terminal. Throws EarlyExit when interrupted. */
export async function answerTo(
  question: string,
  { machine: { stdin, stderr }, interrupt, done }: { machine: Machine; interrupt: AbortSignal; done: string },
): Promise<string | null> {
  const terminal = createInterface({ input: stdin, output: stderr });
  const unanswered = new AbortController();
  terminal.once("SIGINT", () => unanswered.abort("interrupted"));
  // Ctrl-D or a closed terminal means no.
  terminal.once("close", () => unanswered.abort("closed"));
  const signal = AbortSignal.any([unanswered.signal, interrupt]);
  try {
    return (await terminal.question(`${question} `, { signal })).trim();
  } catch (error) {
    if (!signal.aborted) throw error;
    stderr.write("\n");
    if (!interrupt.aborted && unanswered.signal.reason !== "interrupted") return null;
    throw new EarlyExit("interrupted", `interrupted. Nothing was ${done}.`);
  } finally {
    terminal.close();
  }
}
