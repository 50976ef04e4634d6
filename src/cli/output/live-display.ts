import { Writable } from "node:stream";
import type { Machine, OutputStream } from "../../machine.js";
import { liveView } from "../../report/live-view.js";
import { reasonText } from "../../report/progress.js";
import type { Progress } from "../../run/loop.js";
import type { News, NewsReader } from "../../store/workspace/news.js";
import { cutToWidth, terminalText } from "../../text/terminal.js";
import { terminalStyle } from "../../text/terminal-style.js";
import type { Opened } from "../../workspace/state.js";
import type { Display, DisplayedRun } from "./display.js";
import type { LiveRegion } from "./live-region.js";

/** Between two drawings (ms): times move, and counts are still easy to follow. */
const redrawMs = 500;
/** The next reading of the news waits this many times as long as the last one took, whatever the size of the run. */
const newsRestTimes = 100;
const noNews: News = { newestFile: null, trouble: [], awaiting: { items: 0, rowIds: [] } };

/** Progress on a terminal: its last lines, which are drawn again twice a second while they change. */
export function openLiveDisplay({ clock, env, cwd }: Machine, stream: OutputStream): Display {
  let region: LiveRegion | "loading" | null = null;
  /** The lines as they are now; null while there is nothing to show. */
  let view: (() => string[]) | null = null;
  let drawn = "";
  let drawnAt = Number.NEGATIVE_INFINITY;
  let timer: AbortController | null = null;
  let run: (DisplayedRun & { reader: Promise<Opened<NewsReader>> | null; beganAt: number }) | null = null;
  let latest: Progress | null = null;
  let news = noNews;
  let readFor: Progress | null = null;
  let isReading = false;
  let readAgainAt = 0;

  const style = () => ({
    ...terminalStyle(stream, env),
    // In the last column some terminals begin the next line.
    width: Math.max(20, (stream.columns ?? 80) - 1),
    height: Math.max(1, (stream.rows ?? 24) - 1),
  });
  const draw = () => {
    if (view === null) return;
    if (region === null) {
      region = "loading";
      void import("./live-region.js").then(({ openLiveRegion }) => {
        region = openLiveRegion(stream);
        draw();
      });
    }
    if (region === "loading") return;
    drawnAt = clock.monotonic();
    const lines = view();
    const text = `${stream.columns}\n${lines.join("\n")}`;
    if (text !== drawn) region.show(lines);
    drawn = text;
  };
  const keepDrawing = () => {
    if (timer !== null) return;
    const started = new AbortController();
    timer = started;
    void clock.sleep(redrawMs, started.signal).then(() => {
      if (started.signal.aborted) return;
      timer = null;
      draw();
      keepDrawing();
    });
  };
  const update = (next: () => string[]) => {
    view = next;
    if (clock.monotonic() - drawnAt >= redrawMs) draw();
    keepDrawing();
  };
  const oneLine = (line: () => string) => update(() => [cutToWidth(line(), style().width)]);

  /** Reads what is new, and draws it. A view without it is better than a run that ends because of it. */
  const readNews = async (shown: NonNullable<typeof run>, progress: Progress) => {
    const now = clock.monotonic();
    if (isReading || progress === readFor || now < readAgainAt) return;
    isReading = true;
    readFor = progress;
    try {
      shown.reader ??= shown.news();
      news = await (await shown.reader).read();
    } catch {}
    isReading = false;
    readAgainAt = now + newsRestTimes * (clock.monotonic() - now);
    if (run === shown) draw();
  };
  const linesOf = (progress: Progress): string[] => {
    if (run === null) return [];
    const { id, sandbox, jobName: job, folder, beganAt } = run;
    const times = { now: clock.now(), elapsedMs: clock.monotonic() - beganAt };
    void readNews(run, progress);
    return liveView({ ...progress, ...news, ...times, run: id, sandbox, job, folder, cwd }, style());
  };
  const clear = () => {
    if (region !== null && region !== "loading") region.clear();
    drawn = "";
  };
  const above = (text: string, to: OutputStream) => {
    if (region === null || region === "loading" || drawn === "") to.write(text);
    else region.above(text, to);
  };

  return {
    begin(begun) {
      run = { ...begun, reader: null, beganAt: clock.monotonic() - begun.elapsedMs };
    },
    progress(progress) {
      latest = progress;
      update(() => linesOf(progress));
    },
    waiting(reason) {
      const progress = latest;
      if (progress === null) oneLine(() => reasonText(reason, clock.now()));
      else update(() => linesOf({ ...progress, reason }));
    },
    status: (line) => oneLine(() => terminalText(line)),
    counting: (line) => oneLine(() => terminalText(line)),
    say(line) {
      // A wait before the run is over.
      if (run === null) {
        view = null;
        clear();
      }
      above(`${line}\n`, stream);
    },
    beside(other) {
      const written = new Writable({
        decodeStrings: false,
        write(text: string | Buffer, _, done) {
          above(text.toString(), other);
          done();
        },
      });
      return Object.assign(written, { isTTY: other.isTTY === true });
    },
    end() {
      timer?.abort();
      timer = null;
      view = null;
      clear();
      void run?.reader?.then((reader) => reader.close()).catch(() => undefined);
      run = null;
      latest = null;
    },
  };
}
