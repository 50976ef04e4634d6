import { posix } from "node:path";

/** The files that a text links to, with the names listed below each: tests, or broken runners. Paths from the root. */
export function proofsIn(text: string, folder: string): ReadonlyMap<string, readonly string[]> {
  const proofs = new Map<string, string[]>();
  let last = "";
  for (const line of text.split("\n")) {
    for (const [, target = ""] of line.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
      last = posix.join(folder, target);
      proofs.set(last, proofs.get(last) ?? []);
    }
    const name = /^ {2}- (.*)$/.exec(line)?.[1];
    if (name !== undefined) proofs.get(last)?.push(name);
  }
  return proofs;
}
