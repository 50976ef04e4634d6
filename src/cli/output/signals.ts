import { exitCode } from "../../core/exit.js";

/**
 * Ctrl-C, SIGTERM and a closed terminal end a command in good order: the returned signal aborts. A second one ends the
 * process at once, which is safe because every intent is on record before it is acted on.
 */
export function interruption(onFirst: () => void = () => {}): AbortSignal {
  const controller = new AbortController();
  const hit = () => {
    if (controller.signal.aborted) process.exit(exitCode("interrupted"));
    controller.abort();
    onFirst();
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, hit);
  return controller.signal;
}
