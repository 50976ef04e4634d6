import type { Machine, OutputStream } from "../../machine.js";
import type { Display } from "./display.js";
import { openLiveDisplay } from "./live-display.js";
import { openPrintedDisplay } from "./printed-display.js";

/** Shows progress on stderr, or on the stream whose content it is. */
export function openDisplay(quiet: boolean, machine: Machine, stream = machine.stderr): Display {
  if (quiet) return silent;
  return isLive(stream, machine.env)
    ? openLiveDisplay(machine, stream)
    : openPrintedDisplay(machine.clock, stream);
}

/** Whether lines can be drawn again. The logs of many CI services look like terminals, and keep every drawing. */
function isLive({ isTTY }: OutputStream, { TERM, CI }: Machine["env"]): boolean {
  return isTTY === true && TERM !== "dumb" && (CI === undefined || CI === "" || CI === "false");
}

const silent: Display = {
  begin() {},
  progress() {},
  waiting() {},
  status() {},
  counting() {},
  say() {},
  beside: (stream) => stream,
  end() {},
};
