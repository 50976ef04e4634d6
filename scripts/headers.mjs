/** Where this Node's own headers are, which native modules are compiled with. Uses Node's own modules alone. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** The folder; null when it is not here. */
export function headersFolder() {
  const prefix = resolve(process.execPath, "../..");
  // npm's `node` package keeps them in the package of the platform, below itself or beside it.
  const platform = `node-${process.platform}-${process.arch}`;
  const folders = [prefix, join(prefix, "node_modules", platform), join(dirname(prefix), platform)];
  return folders.find(hasOwnHeaders) ?? null;
}

function hasOwnHeaders(folder) {
  const [major, minor] = process.versions.node.split(".");
  let version;
  try {
    version = readFileSync(join(folder, "include", "node", "node_version.h"), "utf8");
  } catch {
    return false;
  }
  return (
    version.includes(`#define NODE_MAJOR_VERSION ${major}\n`) &&
    version.includes(`#define NODE_MINOR_VERSION ${minor}\n`)
  );
}
