import type { Reason } from "../../core/reason.js";
import type { OutputStream } from "../../machine.js";
import type { Progress } from "../../run/loop.js";
import type { NewsReader } from "../../store/workspace/news.js";
import type { Opened } from "../../workspace/state.js";

/**
 * Progress on stderr: on a terminal a view that is redrawn, elsewhere a line when something has changed. Updates may come
 * faster than either: the latest one waits for the next drawing, and none is lost.
 */
export interface Display {
  /** From now on progress is that of this run. */
  begin(run: DisplayedRun): void;
  progress(progress: Progress): void;
  /** A request waits for a free slot of the quota. */
  waiting(reason: Reason): void;
  /** What the command waits for, in words. */
  status(line: string): void;
  /** How far a command is that usually ends at once: outside a terminal, a line comes only after some seconds. */
  counting(line: string): void;
  /** A line of its own. */
  say(line: string): void;
  /** Text that others write to this stream, such as the log; a live view stays below it. */
  beside(stream: OutputStream): OutputStream;
  /** Ends the progress, before the summary, a question or an error. */
  end(): void;
}

export interface DisplayedRun {
  id: number;
  sandbox: boolean;
  jobName: string;
  /** Of its files. */
  folder: string;
  /** How long ago (ms) its process began with it. */
  elapsedMs: number;
  news(): Promise<Opened<NewsReader>>;
}
