import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";

/**
 * Loaded before the built command as `failpoints.ts` is: leaves out every sync of one file (`unsynced.js?file=NAME`), which
 * the trace of such a run must show.
 */
const name = new URL(import.meta.url).searchParams.get("file");
const leaveOut = { sync: async () => {}, datasync: async () => {} };
const { open } = files;
Object.assign(files, {
  async open(...args: Parameters<typeof open>) {
    const handle = await open(...args);
    if (basename(String(args[0])) === name) Object.assign(handle, leaveOut);
    return handle;
  },
});
syncBuiltinESMExports();
