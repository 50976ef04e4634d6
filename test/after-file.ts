/**
 * What is to be done when the tests of a file have ended. Modules are kept from file to file, so that a hook at the top
 * of one would be there for the first file alone: they leave their work here, and `setup.ts`, which runs for each file,
 * has it done, the last first.
 */
const works: (() => unknown)[] = [];

export function afterThisFile(work: () => unknown): void {
  works.push(work);
}

export async function leaveFile(): Promise<void> {
  for (const work of works.splice(0).toReversed()) await work();
}
