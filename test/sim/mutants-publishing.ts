import type { NewItem } from "../../src/core/ports/store.js";
import type { Mutant } from "./mutants.js";
import type { Scenario } from "./scenario.js";

/** Runners that are broken where local files are published. */
export const publishingMutants: readonly Mutant[] = [
  {
    name: "sends an address of a local file that has expired",
    matters: hasFiles,
    stage: withShortLives,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          publishedAt: async (target, sha256) => {
            const known = await parts.store.publishedAt(target, sha256);
            return known && { ...known, until: null };
          },
        },
      }),
    }),
  },
  {
    name: "publishes a content again in each process",
    matters: hasFiles,
    make: () => {
      const own = new WeakMap<object, Set<string>>();
      return {
        parts: (parts, process) => ({
          ...parts,
          store: {
            ...parts.store,
            keepPublished: async (target, sha256, at) => {
              own.set(process, new Set([...(own.get(process) ?? []), sha256]));
              await parts.store.keepPublished(target, sha256, at);
            },
            publishedAt: async (target, sha256) =>
              own.get(process)?.has(sha256) ? parts.store.publishedAt(target, sha256) : null,
          },
        }),
      };
    },
  },
  {
    name: "sends a local file that has changed since the run was planned",
    matters: ({ publishing }) => (publishing?.changes ?? []).length > 0,
    make: () => ({
      parts: (parts) => ({
        ...parts,
        store: {
          ...parts.store,
          enroll: (run, items, unselected) =>
            parts.store.enroll(run, [...items].map(withoutHashes), unselected),
        },
      }),
    }),
  },
  {
    name: "pays for an item whose file could not be published",
    matters: ({ publishing }) => publishing !== undefined && publishing.failing > 0,
    make: () => ({
      session: ({ publishing }) => {
        const inputsOf = publishing.inputsOf.bind(publishing);
        publishing.inputsOf = async (item, inputs) => (await inputsOf(item, inputs)) ?? inputs;
      },
    }),
  },
  {
    name: "sends a request as soon as its file is published, whatever has happened meanwhile",
    matters: hasFiles,
    stage: withSlowBucket,
    make: () => ({
      session: ({ publishing }) => {
        const inputsOf = publishing.inputsOf.bind(publishing);
        publishing.inputsOf = async (item, inputs) =>
          (await inputsOf(item, inputs)) ?? (await inputsOf(item, inputs));
      },
    }),
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

function withoutHashes({ files: _, ...item }: NewItem): NewItem {
  return item;
}
