/** The command that goes on with a run; `newest` when it need not be named. */
export function resumeCommand(
  { id, options }: { id: number; options: { sandbox: boolean } },
  newest: boolean,
): string {
  return ["bulkgen resume", ...(newest ? [] : [id]), ...(options.sandbox ? ["--sandbox"] : [])].join(" ");
}
