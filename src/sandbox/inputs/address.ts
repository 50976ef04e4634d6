/**
 * Which addresses the sandbox takes as inputs: https, http on this machine only, and, where a folder was given for
 * them, local paths. The path itself is judged when the file is opened.
 */
const scheme = /^([a-z][a-z0-9+.-]*):/i;

/** What is wrong with a media field's value, to be read after the field's name; null when nothing is. */
export function inputProblem(value: string, localInputs: boolean): string | null {
  if (!scheme.test(value)) {
    return localInputs ? null : "is to be a URL: https://…";
  }
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url) return "is not a URL that can be read.";
  if (url.protocol === "https:") return null;
  if (url.protocol === "http:")
    return isLoopback(url.hostname) ? null : "is to be https, or http on this machine.";
  return `may not have the scheme ${url.protocol}`;
}

/** Whether a host name of a URL means this machine. */
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** Whether a media field's value is a path and not a URL. */
export function isLocalPath(value: string): boolean {
  return !scheme.test(value);
}
