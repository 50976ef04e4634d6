import { isAbsolute, relative, sep } from "node:path";

/** Whether an absolute path lies outside a folder. Resolve links first. */
export function leaves(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way);
}

/**
 * Whether a name is one that bulkgen gives a file below a folder: relative, with `/` between its parts, none of which leads up.
 * What is read from a database or an index that may have come from somebody else is checked by this.
 */
export function isBelow(name: string): boolean {
  const parts = name.split("/");
  return parts.every((part) => part !== "" && part !== "." && part !== "..") && !/[\\\p{Cc}]/u.test(name);
}
