import type { Machine } from "../../machine.js";
import { galleryPage } from "../../report/gallery/document.js";
import { shownPath } from "../../report/problem-text.js";
import type { Progress } from "../../run/loop.js";
import { writeGallery } from "../../upkeep/archive/gallery.js";
import type { Workspace } from "../../workspace/workspace.js";

/** Writes the gallery of a run's job during the run and at its end. Never throws, because the run matters more. */
export interface LiveGallery {
  begin(run: { id: number }): void;
  progress(progress: Pick<Progress, "counts">): void;
  ended(): Promise<void>;
}

/** The least time (ms) between two writings. */
const leastMs = 5_000;
/**
 * The pause between two writes is this many times as long as a write: at most a fiftieth of the run is spent on them.
 */
const restTimes = 50;
/** How often the last writing says how far it is (ms): it makes the previews of all files that are new. */
const tellMs = 10_000;

export function openLiveGallery(
  workspace: Workspace,
  { clock, cwd }: Pick<Machine, "clock" | "cwd">,
  say: (line: string) => void,
): LiveGallery {
  let run: { id: number } | null = null;
  /** What was last seen of the run, and what the page shows. */
  let seen = "";
  let written = "";
  let writing: Promise<unknown> | null = null;
  let nextAt = Number.NEGATIVE_INFINITY;
  let timer: AbortController | null = null;
  let trouble: string | null = null;

  const write = async (
    { id }: { id: number },
    onProgress: (done: number, all: number) => void = () => {},
  ): Promise<string | null> => {
    written = seen;
    const beganAt = clock.monotonic();
    try {
      const { page } = await writeGallery({
        workspace,
        run: id,
        clock,
        // An interrupted run still ends with a page of what it made.
        signal: new AbortController().signal,
        onProgress,
        only: null,
        prices: false,
        render: galleryPage,
      });
      return page;
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== trouble) say(`the gallery could not be written: ${reason}`);
      trouble = reason;
      return null;
    } finally {
      const took = clock.monotonic() - beganAt;
      nextAt = clock.monotonic() + Math.max(leastMs, restTimes * took);
    }
  };
  const update = () => {
    if (run === null || writing !== null || timer !== null || seen === written) return;
    const waitMs = nextAt - clock.monotonic();
    if (waitMs <= 0) {
      writing = write(run).finally(() => {
        writing = null;
        update();
      });
      return;
    }
    const waiting = new AbortController();
    timer = waiting;
    void clock.sleep(waitMs, waiting.signal).then(() => {
      if (waiting.signal.aborted) return;
      timer = null;
      update();
    });
  };
  return {
    begin(begun) {
      run = begun;
      seen = "begun";
      update();
    },
    progress({ counts: { archived, failed, held } }) {
      seen = `${archived} ${failed} ${held}`;
      update();
    },
    async ended() {
      timer?.abort();
      const last = run;
      run = null;
      await writing;
      if (last === null) return;
      let printedAt = clock.monotonic();
      const page = await write(last, (done, all) => {
        if (clock.monotonic() - printedAt < tellMs) return;
        printedAt = clock.monotonic();
        say(`writing the gallery: ${done} of ${all} files`);
      });
      if (page !== null) say(`gallery: ${shownPath(page, cwd)}`);
    },
  };
}
