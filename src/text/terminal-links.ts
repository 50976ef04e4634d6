import type { Environment } from "./environment.js";

/** Terminals that take links, recognised by the environment variables that they set. Unknown terminals get none. */

const linkingPrograms = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"];
const linkingTerminals = ["xterm-kitty", "xterm-ghostty", "alacritty", "foot", "foot-extra"];
/** VTE crashed on links before 0.50. */
const linkingVte = 5_000;

/** Whether the terminal takes links to files (OSC 8). */
export function takesLinks(environment: Environment): boolean {
  if (isBehindAnother(environment)) return false;
  const { TERM = "", TERM_PROGRAM = "", KITTY_WINDOW_ID, WT_SESSION, VTE_VERSION } = environment;
  if (KITTY_WINDOW_ID || WT_SESSION || Number(VTE_VERSION) >= linkingVte) return true;
  return linkingPrograms.includes(TERM_PROGRAM) || linkingTerminals.includes(TERM);
}

/**
 * Over SSH the files are on another machine than the terminal. tmux and screen may pass on what they do not know or not,
 * and the log of a CI service has no terminal.
 */
function isBehindAnother({ TERM = "", TMUX, STY, CI, SSH_CONNECTION, SSH_TTY }: Environment): boolean {
  return Boolean(TMUX || STY || CI || SSH_CONNECTION || SSH_TTY) || /^(dumb|screen|tmux|linux)/.test(TERM);
}
