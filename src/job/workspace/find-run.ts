import { EarlyExit } from "../../core/exit.js";
import type { Run, Store } from "../../core/ports/store.js";
import type { Holder } from "./holder.js";

/** The run of that number; without one, the run that a process carries on, else the newest that is unfinished. */
export async function runMeant(store: Store, which: number | undefined, holder: Holder | null): Promise<Run> {
  const number = which ?? holder?.run ?? null;
  const run = number === null ? await unfinishedOrNewest(store) : await store.run(number);
  if (run) return run;
  throw new EarlyExit(
    "usage",
    number === null
      ? "no run in this workspace yet; begin with `bulkgen run`"
      : `no run ${number} in this workspace; \`bulkgen status --all\` lists them`,
  );
}

async function unfinishedOrNewest(store: Store): Promise<Run | null> {
  return (await store.run("unfinished")) ?? store.run("newest");
}
