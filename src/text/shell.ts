/** A word as it can be pasted into a POSIX shell or a crontab. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** What to type after a command so that it is about the sandbox: ` --sandbox`, or nothing. */
export function sandboxFlag(options: { sandbox?: boolean | undefined } | undefined): "" | " --sandbox" {
  return options?.sandbox ? " --sandbox" : "";
}
