import type { Machine } from "../../machine.js";
import { progressLine, waitingLine } from "../../report/progress.js";
import type { Progress } from "../../run/loop.js";

/** Progress of a run on stderr: one line, rewritten on a terminal, printed now and then elsewhere. */
export interface Display {
  progress(progress: Progress): void;
  /** A request waits for a free slot of the quota. */
  waiting(what: "minute" | "day" | "service", until: number): void;
  /** What the command waits for, in words. */
  status(line: string): void;
  /** A line of its own. */
  say(line: string): void;
  /** Ends the progress line before the summary. */
  end(): void;
}

/** Milliseconds between two lines where they are not rewritten. */
const quietMs = 5_000;
const rewriteMs = 100;

export function openDisplay(quiet: boolean, { stderr, clock }: Machine): Display {
  const terminal = stderr.isTTY === true;
  let shown = "";
  let shownAt = Number.NEGATIVE_INFINITY;
  const clear = () => {
    if (terminal && shown !== "") stderr.write("\r\u001b[K");
  };
  const show = (line: string, at: number) => {
    clear();
    const fitting = terminal ? line.slice(0, Math.max(20, (stderr.columns ?? 80) - 1)) : line;
    stderr.write(terminal ? fitting : `${line}\n`);
    shown = line;
    shownAt = at;
  };
  const update = (line: string) => {
    if (quiet || line === shown) return;
    const now = clock.monotonic();
    if (now - shownAt >= (terminal ? rewriteMs : quietMs)) show(line, now);
  };
  return {
    progress: (progress) => update(progressLine({ ...progress, now: clock.now() })),
    status: (line) => update(line),
    waiting: (what, until) => update(waitingLine(what, until, clock.now())),
    say(line) {
      if (quiet) return;
      clear();
      stderr.write(`${line}\n`);
      shown = "";
    },
    end() {
      if (terminal && shown !== "") stderr.write("\n");
      shown = "";
    },
  };
}
