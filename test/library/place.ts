import { type LocalSandbox, type SandboxSettings, startSandbox } from "../../src/library/sandbox.js";
import type { Host } from "../../src/machine.js";
import { mountTable, systemRandom } from "../../src/system.js";
import { afterThisFile } from "../after-file.js";
import { newPlace, type Place } from "../e2e/command.js";
import { skippingClock } from "../e2e/skipping-clock.js";

/** A fresh folder, the host of a program that works in it, and a sandbox on the same clock. */
export interface LibraryPlace {
  place: Place;
  on: Host;
  sandbox: LocalSandbox;
  /** The sandbox as a service that is paid, so that its items are real ones. */
  paid: { baseUrl: string; apiKey: string };
}

export async function libraryPlace(settings: SandboxSettings = {}): Promise<LibraryPlace> {
  const place = newPlace();
  const on = {
    cwd: place.folder,
    env: place.env,
    clock: skippingClock,
    random: systemRandom,
    mounts: mountTable,
  };
  const sandbox = await startSandbox(on, { taskMs: { min: 1_000, max: 2_000 }, ...settings });
  afterThisFile(() => sandbox.close());
  return { place, on, sandbox, paid: { baseUrl: sandbox.baseUrl, apiKey: sandbox.apiKey } };
}

/** Everything of an iterable, while waits are skipped. */
export function all<Thing>(things: AsyncIterable<Thing>): Promise<Thing[]> {
  return skippingClock.during(
    (async () => {
      const found: Thing[] = [];
      for await (const thing of things) found.push(thing);
      return found;
    })(),
  );
}
