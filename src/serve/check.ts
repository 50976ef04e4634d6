import { kinds } from "./kinds.js";
import type { OwnModel } from "./models/models-file.js";
import type { OwnService } from "./own-service.js";

export interface CheckedProvider {
  provider: string;
  kind: string;
  /** The keys of its models. */
  models: string[];
  /** What is wrong, as one sentence; null if nothing. */
  problem: string | null;
}

/** Asks each provider whether it can do its models; costs nothing. */
export function checkProviders(service: OwnService): Promise<CheckedProvider[]> {
  const { models } = service.served;
  const names = [...new Set(models.map(({ provider }) => provider.name))];
  const groups = names.map(
    (name) => [name, models.filter(({ provider }) => provider.name === name)] as const,
  );
  return Promise.all(
    groups.map(async ([provider, all]) => ({
      provider,
      kind: all[0]?.provider.kind ?? "",
      models: all.map(({ settings }) => settings.key),
      problem: await problemOf(service, all),
    })),
  );
}

async function problemOf(service: OwnService, all: readonly OwnModel[]): Promise<string | null> {
  const [first] = all;
  if (!first) return null;
  const { provider } = first;
  const kind = kinds.find(({ name }) => name === provider.kind);
  if (kind?.needsKey && service.works.keyOf(provider) === null)
    return `there is no key: set ${provider.keyEnv ?? provider.keyFile}`;
  return service.works.check(
    provider,
    all.map(({ settings }) => settings),
  );
}
