import type { Machine } from "../../machine.js";
import { progressLine, waitingLine } from "../../report/progress.js";
import type { Progress } from "../../run/loop.js";
import { cutToWidth } from "../../text/terminal.js";

/**
 * Progress of a run on stderr. On a terminal it is one line that is redrawn twice a second, so that its times move.
 * Elsewhere a line is printed when something has changed. Updates may come faster than either: the latest one waits for
 * the next line, and none is lost.
 */
export interface Display {
  progress(progress: Progress): void;
  /** A request waits for a free slot of the quota. */
  waiting(what: "minute" | "day" | "service", until: number): void;
  /** What the command waits for, in words. */
  status(line: string): void;
  /** A line of its own. */
  say(line: string): void;
  /** Shows the last state and ends the progress line, before the summary, a question or an error. */
  end(): void;
}

/** A line whose text depends on the time. */
type MovingLine = () => string;

/** The least time (ms) between two lines where they are not rewritten. */
const quietMs = 5_000;
const rewriteMs = 100;
const redrawMs = 500;

export function openDisplay(quiet: boolean, { stderr, clock }: Machine): Display {
  const terminal = stderr.isTTY === true;
  const leastMs = terminal ? rewriteMs : quietMs;
  /** The newest line, and the one that was drawn last. They differ while an update waits. */
  let newest: MovingLine | null = null;
  let drawn: MovingLine | null = null;
  let shown = "";
  let shownAt = Number.NEGATIVE_INFINITY;
  let beganAt: number | null = null;
  let timer: AbortController | null = null;

  const width = () => (terminal ? Math.max(20, (stderr.columns ?? 80) - 1) : Number.POSITIVE_INFINITY);
  const clear = () => {
    if (terminal && shown !== "") stderr.write("\r\u001b[K");
  };
  const show = (line: string) => {
    shownAt = clock.monotonic();
    if (line === shown) return;
    clear();
    stderr.write(terminal ? cutToWidth(line, width()) : `${line}\n`);
    shown = line;
  };
  const draw = () => {
    if (newest === null) return;
    drawn = newest;
    show(newest());
  };
  const stopTimer = () => {
    timer?.abort();
    timer = null;
  };
  const startTimer = () => {
    if (timer !== null || newest === null || (!terminal && newest === drawn)) return;
    const started = new AbortController();
    timer = started;
    const ms = terminal ? redrawMs : shownAt + quietMs - clock.monotonic();
    void clock.sleep(ms, started.signal).then(() => {
      if (started.signal.aborted) return;
      timer = null;
      draw();
      startTimer();
    });
  };
  const update = (line: MovingLine) => {
    if (quiet) return;
    newest = line;
    // That time passes is no news where each line is printed for good.
    if (!terminal && drawn !== null && drawn() === line()) drawn = line;
    else if (clock.monotonic() - shownAt >= leastMs) draw();
    startTimer();
  };

  return {
    progress(progress) {
      beganAt ??= clock.monotonic();
      const start = beganAt;
      update(() =>
        progressLine({ ...progress, now: clock.now(), elapsedMs: clock.monotonic() - start }, width()),
      );
    },
    waiting: (what, until) => update(() => waitingLine(what, until, clock.now())),
    status(line) {
      if (quiet) return;
      newest = null;
      if (clock.monotonic() - shownAt >= leastMs) show(line);
    },
    say(line) {
      if (quiet) return;
      clear();
      stderr.write(`${line}\n`);
      shown = "";
      // A run redraws its line below; what was waited for before it is over.
      if (beganAt === null) newest = null;
    },
    end() {
      stopTimer();
      if (newest !== drawn) draw();
      if (terminal && shown !== "") stderr.write("\n");
      newest = null;
      drawn = null;
      shown = "";
    },
  };
}
