/** The words of a command line, as a shell splits them. */
export function wordsOf(command: string): string[] {
  return [...command.replaceAll("\\\n", " ").matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
}

/** Without what depends on the day, the time of day, or chance. */
export function timeless(text: string): string {
  return text
    .replace(/\w{3} \d{4}-\d\d-\d\d \d\d:\d\d CES?T/g, "<when>")
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "<when>")
    .replace(/, in \d.*$/gm, ", in <time>")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\dZ/g, "<when>")
    .replace(/[\da-f]{8}-[\da-f]{4}-[\da-f-]{22}/g, "<task>")
    .replace(/sandbox-[\da-f]{16}/g, "<external task>");
}
