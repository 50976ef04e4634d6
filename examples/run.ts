import { EarlyExit, run, type ServiceAddress } from "bulkgen";

/**
 * Runs a sheet within a budget, says what happens, and stops on Ctrl-C. Returns the paths of the files. Call it again to
 * go on: what was paid for is collected, and nothing is paid twice.
 */
export async function makeSheet(
  manifest: string,
  service: ServiceAddress,
  budget: number,
): Promise<string[]> {
  const stop = new AbortController();
  const onInterrupt = () => stop.abort();
  process.once("SIGINT", onInterrupt);
  const files: string[] = [];
  try {
    const events = run(manifest, {
      service,
      maxCredits: budget,
      agree: ({ money, problems }) => problems.length === 0 && money.needed <= budget,
      signal: stop.signal,
    });
    for await (const event of events) {
      if (event.event === "archived") files.push(...event.files);
      if (event.event === "failed") console.log(`${event.rowId} failed: ${event.message}`);
      if (event.event === "waiting") console.log(`${event.message}, until ${event.until ?? "somebody acts"}`);
      if (event.event === "run_finished")
        console.log(`${event.exitName}: ${event.credits.spent} credits. ${event.nextStep ?? ""}`);
    }
  } catch (error) {
    if (!(error instanceof EarlyExit)) throw error;
    console.error(`nothing was run (${error.exit}): ${error.message}`);
  } finally {
    process.off("SIGINT", onInterrupt);
  }
  return files;
}
