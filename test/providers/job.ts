import { setMaxListeners } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { ProviderKind } from "../../src/providers/kind.js";
import type {
  JsonObject,
  Mistake,
  ModelSettings,
  Provider,
  ProviderJob,
  ProviderPlace,
  ProviderSettings,
  Sent,
} from "../../src/providers/provider.js";
import { systemClock, systemRandom } from "../../src/system.js";

/** Providers in a folder of their own, opened from their kinds and closed after each test. */

/** Does this after the test. */
export function afterwards(end: () => unknown): void {
  // A hook of this file would be that of the first test file that loads it.
  onTestFinished(async () => {
    await end();
  });
}

/** A new folder, which is removed after the test. */
export function freshFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "bulkgen-provider-")));
  afterwards(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export type PlaceParts = Partial<Omit<ProviderSettings, "details">> &
  Partial<ProviderPlace> & { details?: JsonObject };

/** A provider of this kind. Parts are of its settings and its place. */
export function openKind(kind: ProviderKind, parts: PlaceParts = {}): Provider {
  const settings = settingsOf(kind, parts);
  const place: ProviderPlace = {
    clock: systemClock,
    random: systemRandom,
    folder: freshFolder(),
    key: () => null,
    env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" },
    ...parts,
  };
  const provider = kind.open(settings, place);
  afterwards(() => provider.close?.());
  return provider;
}

/** The settings that a provider of this kind has unless a file says otherwise. */
export function settingsOf(kind: ProviderKind, parts: PlaceParts = {}): ProviderSettings {
  return {
    name: "house",
    kind: kind.name,
    addresses: [],
    keyEnv: null,
    keyFile: null,
    headers: {},
    concurrency: 1,
    perMinute: null,
    timeoutMs: 60_000,
    waiting: 100,
    details: {},
    ...kind.defaults,
    ...parts,
  };
}

export function modelOf(details: JsonObject, parts: Partial<ModelSettings> = {}): ModelSettings {
  return { key: "house-style", name: "House style", category: "image", input: "text", details, ...parts };
}

/** A job with an id and a folder of its own. */
export function jobOf(model: ModelSettings, parts: Partial<ProviderJob> = {}): ProviderJob {
  const folder = join(freshFolder(), "job");
  mkdirSync(folder);
  return { id: systemRandom.uuid(), model, prompt: "a red kite", params: {}, media: {}, folder, ...parts };
}

/** A signal that nothing aborts. */
export const unhurried = new AbortController().signal;
setMaxListeners(0, unhurried);

/** A submit that was sent just now; no other job has a name yet. */
export const sentNow: Sent = { at: systemClock.now(), isTaken: () => false };

/** The mistakes of a model as `bind.prompt: message`. */
export function mistakesOf(
  kind: ProviderKind,
  model: ModelSettings,
  folder: string,
  params: readonly string[] = [],
  provider: ProviderSettings = settingsOf(kind),
) {
  return (kind.check?.(model, folder, params, provider) ?? []).map(
    ({ path, message }: Mistake) => `${path.join(".")}: ${message}`,
  );
}
