import type { Clock } from "../../clock.js";
import type { OutputStream } from "../../machine.js";
import { progressLine, reasonText } from "../../report/progress.js";
import type { Display } from "./display.js";

/** A line whose text depends on the time. */
type MovingLine = () => string;

/** The least time (ms) between two lines. */
const leastMs = 5_000;
/** After this long (ms) a line shows that the run is in progress, although nothing has changed. */
const mostMs = 30_000;

/** Progress where each line stays: in a pipe, a file, or the log of a CI service. */
export function openPrintedDisplay(clock: Clock, stream: OutputStream): Display {
  /** The newest line, and the one that was printed last. They differ while an update waits. */
  let newest: MovingLine | null = null;
  let printed: MovingLine | null = null;
  let shown = "";
  let shownAt = Number.NEGATIVE_INFINITY;
  let beganAt = 0;
  let isRunning = false;
  let timer: AbortController | null = null;

  const show = (line: string) => {
    shownAt = clock.monotonic();
    if (line === shown) return;
    stream.write(`${line}\n`);
    shown = line;
  };
  const print = () => {
    if (newest === null) return;
    printed = newest;
    show(newest());
  };
  /** A line that differs only in its times is no news. */
  const printNews = () => {
    if (newest !== null && printed !== null && printed() === newest()) printed = newest;
    else print();
  };
  const stopTimer = () => {
    timer?.abort();
    timer = null;
  };
  const startTimer = () => {
    stopTimer();
    if (newest === null) return;
    const started = new AbortController();
    timer = started;
    const waits = newest !== printed;
    const ms = shownAt + (waits ? leastMs : mostMs) - clock.monotonic();
    void clock.sleep(ms, started.signal).then(() => {
      if (started.signal.aborted) return;
      if (waits) printNews();
      else print();
      startTimer();
    });
  };
  const update = (line: MovingLine) => {
    const waited = newest !== printed;
    newest = line;
    if (clock.monotonic() - shownAt >= leastMs) printNews();
    if (timer === null || waited !== (newest !== printed)) startTimer();
  };

  const status = (line: string) => {
    newest = null;
    if (clock.monotonic() - shownAt >= leastMs) show(line);
  };

  return {
    begin({ elapsedMs }) {
      beganAt = clock.monotonic() - elapsedMs;
      isRunning = true;
    },
    progress: (progress) =>
      update(() => progressLine({ ...progress, now: clock.now(), elapsedMs: clock.monotonic() - beganAt })),
    waiting: (reason) => update(() => reasonText(reason, clock.now())),
    status,
    counting(line) {
      // Otherwise a command that ends at once would leave only its first count.
      if (shownAt === Number.NEGATIVE_INFINITY) shownAt = clock.monotonic();
      status(line);
    },
    say(line) {
      stream.write(`${line}\n`);
      shown = "";
      // The progress of a run goes on below the line; a wait before the run is over.
      if (!isRunning) newest = null;
    },
    beside: (other) => other,
    end() {
      stopTimer();
      if (newest !== printed) print();
      newest = null;
      printed = null;
      shown = "";
    },
  };
}
