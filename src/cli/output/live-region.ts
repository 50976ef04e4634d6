import { createLogUpdate } from "log-update";
import type { OutputStream } from "../../machine.js";
import { textWidth } from "../../text/terminal.js";

/** The last lines of a terminal, which are drawn again when they change. */
export interface LiveRegion {
  show(lines: readonly string[]): void;
  /** Writes lines above the region, to this stream or to another one of the same terminal. */
  above(text: string, stream: OutputStream): void;
  clear(): void;
}

/** While they are off, a character that a terminal draws wider than expected cannot begin another line. */
const lineWraps = { off: "\u001b[?7l", on: "\u001b[?7h" };

/** Draws with log-update, which writes only the lines that have changed, and each picture at once. */
export function openLiveRegion(stream: OutputStream): LiveRegion {
  let written = "";
  const page = {
    isTTY: true,
    // Lines are made to fit, so nothing has to be wrapped.
    columns: Number.POSITIVE_INFINITY,
    get rows() {
      return stream.rows;
    },
    write(text: string) {
      written += text;
      return true;
    },
  };
  const update = createLogUpdate(page as unknown as NodeJS.WritableStream, { showCursor: true });
  let shown: readonly string[] = [];
  let columns = stream.columns;

  /** Lines that were drawn on a wider terminal take more rows of it now. */
  const erase = () => {
    if (stream.columns === columns) return update.clear();
    const width = stream.columns ?? Number.POSITIVE_INFINITY;
    const rows = shown.reduce((sum, line) => sum + Math.max(1, Math.ceil(textWidth(line) / width)), 0);
    if (shown.length > 0) written += `\r${"\u001b[A".repeat(rows)}\u001b[J`;
    update.done();
  };
  const draw = () => {
    columns = stream.columns;
    if (shown.length > 0) update(shown.join("\n"));
  };
  const flush = (to: OutputStream) => {
    if (written !== "") to.write(lineWraps.off + written + lineWraps.on);
    written = "";
  };

  return {
    show(lines) {
      if (stream.columns !== columns) erase();
      shown = lines;
      draw();
      flush(stream);
    },
    above(text, to) {
      erase();
      flush(stream);
      to.write(text.endsWith("\n") ? text : `${text}\n`);
      draw();
      flush(stream);
    },
    clear() {
      erase();
      shown = [];
      flush(stream);
    },
  };
}
