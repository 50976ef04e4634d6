import type { ExitName } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { Flag } from "../../store/schedules.js";

/** One call of a command: what it is handed. */
export interface Call<Flags, Args = unknown> {
  machine: Machine;
  /** Every flag with its value: from the command line, the environment, a settings file or its default. */
  flags: Flags;
  args: Args;
  /** The flags of the command line alone, as they were written. */
  given: readonly Flag[];
}

/** Does the work of a command. Returns the exit when it is not `done`, or the code of a process that it waited for. */
export type Handler<Flags = never, Args = never> = (
  call: Call<Flags, Args>,
) => Promise<ExitName | number | undefined>;
