import { isAbsolute, relative, sep } from "node:path";

/** Whether a path, made absolute, lies outside of a folder. Links must be followed before. */
export function leaves(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way);
}
