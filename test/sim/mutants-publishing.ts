import type { Mutant } from "./mutants.js";
import { enrolling } from "./mutants-approval.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where local files are published. */
export const publishingMutants: readonly Mutant[] = [
  {
    name: "sends an address of a local file that has expired",
    matters: hasFiles,
    stage: withShortLives,
    store: ({ publishedAt }) => ({
      publishedAt: async (target, sha256) => {
        const known = await publishedAt(target, sha256);
        return known && { ...known, until: null };
      },
    }),
  },
  {
    name: "publishes a content again in each process",
    matters: hasFiles,
    store: ({ keepPublished, publishedAt }) => {
      const own = new Set<string>();
      return {
        keepPublished: async (target, sha256, at) => {
          own.add(sha256);
          await keepPublished(target, sha256, at);
        },
        publishedAt: async (target, sha256) => (own.has(sha256) ? publishedAt(target, sha256) : null),
      };
    },
  },
  {
    name: "sends a local file that has changed since the run was planned",
    matters: ({ publishing }) => (publishing?.changes ?? []).length > 0,
    store: enrolling(({ files: _, ...item }) => item),
  },
  {
    name: "pays for an item whose file could not be published",
    matters: ({ publishing }) => publishing !== undefined && publishing.failing > 0,
    session: ({ publishing }) => {
      const inputsOf = publishing.inputsOf.bind(publishing);
      publishing.inputsOf = async (item, inputs) => (await inputsOf(item, inputs)) ?? inputs;
    },
  },
  {
    name: "sends a request as soon as its file is published, whatever has happened meanwhile",
    matters: hasFiles,
    stage: withSlowBucket,
    session: ({ publishing }) => {
      const inputsOf = publishing.inputsOf.bind(publishing);
      publishing.inputsOf = async (item, inputs) =>
        (await inputsOf(item, inputs)) ?? (await inputsOf(item, inputs));
    },
  },
];

function hasFiles({ publishing, items }: Scenario): boolean {
  return publishing !== undefined && items.some(({ file }) => file !== undefined);
}

function withShortLives(scenario: Scenario): Scenario {
  const { publishing } = scenario;
  if (publishing === undefined) return scenario;
  return { ...scenario, publishing: { ...publishing, lifeMs: Math.min(publishing.lifeMs, 200_000) } };
}

/** Each publication takes minutes. */
function withSlowBucket(scenario: Scenario): Scenario {
  const { publishing } = scenario;
  if (publishing === undefined) return scenario;
  return { ...scenario, publishing: { ...publishing, longestMs: 600_000 } };
}
