import { isAbsolute, relative, sep } from "node:path";

/** Whether an absolute path lies outside a folder. Resolve links first. */
export function leaves(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way);
}
