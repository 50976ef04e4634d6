import type { Environment } from "./environment.js";

/** What a terminal can do besides text, judged by the variables that it sets. One that is not known can do nothing. */

const linkingPrograms = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"];
const linkingTerminals = ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "foot-extra"];
const sixelTerminals = ["foot", "foot-extra", "mlterm"];
/** Konsole shows sixel pictures from 22.04 on. */
const sixelKonsole = 220_400;
/** VTE crashed on links before 0.50. */
const linkingVte = 5_000;

/** Whether it takes links to files (OSC 8). */
export function takesLinks(environment: Environment): boolean {
  if (isBehindAnother(environment)) return false;
  const { TERM = "", TERM_PROGRAM = "", KITTY_WINDOW_ID, WT_SESSION, VTE_VERSION } = environment;
  if (KITTY_WINDOW_ID || WT_SESSION || Number(VTE_VERSION) >= linkingVte) return true;
  return linkingPrograms.includes(TERM_PROGRAM) || linkingTerminals.includes(TERM);
}

/** The protocol by which it shows pictures; null if it shows none. */
export function pictureProtocol(environment: Environment): "kitty" | "iterm2" | "sixel" | null {
  if (isBehindAnother(environment)) return null;
  const { TERM = "", TERM_PROGRAM, KITTY_WINDOW_ID, KONSOLE_VERSION } = environment;
  if (KITTY_WINDOW_ID || TERM === "xterm-kitty" || TERM === "xterm-ghostty") return "kitty";
  if (TERM_PROGRAM === "iTerm.app") return "iterm2";
  return sixelTerminals.includes(TERM) || Number(KONSOLE_VERSION) >= sixelKonsole ? "sixel" : null;
}

/**
 * Over SSH the files are on another machine than the terminal. tmux and screen may pass on what they do not know or not,
 * and the log of a CI service has no terminal.
 */
function isBehindAnother({ TERM = "", TMUX, STY, CI, SSH_CONNECTION, SSH_TTY }: Environment): boolean {
  return Boolean(TMUX || STY || CI || SSH_CONNECTION || SSH_TTY) || /^(dumb|screen|tmux|linux)/.test(TERM);
}
