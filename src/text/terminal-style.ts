import type { Environment } from "./environment.js";
import { takesLinks } from "./terminal-links.js";

/** How output may look where it goes. */
export interface TerminalStyle {
  /** Columns of the terminal; null if there is none: then lines are not wrapped. */
  width: number | null;
  colour: boolean;
  /** It takes links to files (OSC 8). Default: it does not. */
  links?: boolean;
}

/** For files, pipes and logs. */
export const plainStyle: TerminalStyle = { width: null, colour: false };

const narrowest = 40;

/** How output to a stream looks: plain unless it is a terminal, and without colour if NO_COLOR is set. */
export function terminalStyle(
  stream: { isTTY?: boolean; columns?: number },
  environment: Environment,
): TerminalStyle {
  if (stream.isTTY !== true) return plainStyle;
  const colour = !environment["NO_COLOR"] && environment["TERM"] !== "dumb";
  const width = Math.max(narrowest, stream.columns ?? 80);
  return { width, colour, ...(takesLinks(environment) ? { links: true } : {}) };
}
