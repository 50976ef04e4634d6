import type { z } from "zod";
import type { Mistake, ModelSettings, Provider, ProviderPlace, ProviderSettings } from "./provider.js";

/** A kind of provider: what a models file may say of it, and how it works. */
export interface ProviderKind {
  /** Its name in `kind:`. */
  name: string;
  /** What it is, in a few words. */
  describe: string;
  /** Fields of a provider that only this kind has. */
  provider: z.ZodRawShape;
  /** Fields of a model that only this kind has. */
  model: z.ZodRawShape;
  /** What a provider of this kind has unless the file says otherwise. */
  defaults: Partial<Pick<ProviderSettings, "addresses" | "keyEnv" | "concurrency" | "timeoutMs" | "waiting">>;
  /** Whether it cannot work without a key. */
  needsKey: boolean;
  /** Mistakes of a model that its schema cannot see, such as a file that does not exist. `folder` is that of the models file. */
  check?(
    model: ModelSettings,
    folder: string,
    params: readonly string[],
    provider: ProviderSettings,
  ): Mistake[];
  /** What it does outward for this model that the settings do not say by themselves. `folder` is that of the models file. */
  reach?(settings: ProviderSettings, model: ModelSettings, folder: string): Reach;
  open(settings: ProviderSettings, place: ProviderPlace): Provider;
}

/** What the user has to agree to, because somebody else may have written the models file. */
export interface Reach {
  /** Programs that it starts and files that it reads elsewhere, such as `command of model draw`. */
  values?: { setting: string; value: string }[];
  /** Origins that it sends requests to, and hosts that may get the key. */
  addresses?: string[];
}
