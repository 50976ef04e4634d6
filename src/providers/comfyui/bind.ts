import { createHash } from "node:crypto";
import { nearest } from "../../text/nearest.js";
import { JobRefused, type Json, type MediaName, type Mistake, type ProviderJob } from "../provider.js";
import { isLink, targetOf, type Workflow } from "./graph.js";

/** Which inputs of a workflow take which value: `{ prompt: "6.text", seed: ["3.seed", "12.noise_seed"] }`. */
export type Bind = Record<string, string | string[]>;

export const mediaNames: readonly MediaName[] = ["image", "video", "audio"];

/** Seeds go from 0 to here, so that they are exact in JSON; nodes take more. */
const seedMax = 2 ** 48;

/**
 * The workflow with the job's values. What a job has no value for stays as it was saved, except the seed: one that stays the
 * same would make the same picture for each row. It comes from the job's id, so that a repeated job is the same. `files` are
 * the names of uploaded inputs. Throws `JobRefused`.
 */
export function boundWorkflow(
  workflow: Workflow,
  bind: Bind,
  job: Pick<ProviderJob, "id" | "prompt" | "params">,
  files: Partial<Record<MediaName, string>>,
): Workflow {
  const bound = structuredClone(workflow);
  for (const [name, targets] of Object.entries(bind)) {
    const value = valueFor(name, job, files);
    if (value === null) continue;
    for (const target of [targets].flat()) {
      const at = targetOf(target);
      const inputs = at === null ? undefined : bound[at.id]?.inputs;
      if (at === null || inputs === undefined)
        throw new JobRefused("provider", `the workflow has no node for ${target} any more`, false);
      inputs[at.input] = likeBefore(value, inputs[at.input], name);
    }
  }
  return bound;
}

function valueFor(
  name: string,
  { id, prompt, params }: Pick<ProviderJob, "id" | "prompt" | "params">,
  files: Partial<Record<MediaName, string>>,
): string | null {
  if (name === "prompt") return prompt;
  if ((mediaNames as string[]).includes(name)) return files[name as MediaName] ?? null;
  if (Object.hasOwn(params, name)) return params[name] ?? null;
  return name === "seed" ? String(seedFrom(id)) : null;
}

function seedFrom(id: string): number {
  return createHash("sha256").update(id).digest().readUIntBE(0, 6) % seedMax;
}

/** ComfyUI wants numbers as numbers; what the workflow has says which they are. */
function likeBefore(value: string, before: Json | undefined, name: string): Json {
  if (typeof before === "number") {
    const number = Number(value);
    if (value.trim() === "" || !Number.isFinite(number))
      throw new JobRefused(
        "parameter",
        `${name} has to be a number, but it is ${JSON.stringify(value)}`,
        false,
      );
    return number;
  }
  if (typeof before === "boolean") {
    if (value === "true" || value === "false") return value === "true";
    throw new JobRefused(
      "parameter",
      `${name} has to be true or false, but it is ${JSON.stringify(value)}`,
      false,
    );
  }
  return value;
}

/** What is wrong with the bindings of a model. */
export function bindMistakes(
  workflow: Workflow,
  bind: Bind,
  input: string,
  params: readonly string[],
): Mistake[] {
  const needed = input === "text+image" ? ["prompt", "image"] : input === "text" ? ["prompt"] : [input];
  const missing = needed.filter((name) => !Object.hasOwn(bind, name));
  const unbound = params.filter((name) => !Object.hasOwn(bind, name));
  const known = ["prompt", "seed", ...mediaNames, ...params];
  return [
    ...missing.map((name) => ({
      path: ["bind"],
      message: `does not say which input of the workflow takes the ${name}, such as ${name}: ${exampleOf(workflow)}`,
    })),
    ...unbound.map((name) => ({
      path: ["params", name],
      message: `is not in bind, so the workflow would not get it; expected an input of the workflow under bind.${name}`,
    })),
    ...Object.entries(bind).flatMap(([name, targets]) => {
      if (!known.includes(name))
        return [{ path: ["bind", name], message: unknownName(name, known, "is no param of this model") }];
      return Array.isArray(targets)
        ? targets.flatMap((target, index) => targetMistakes(workflow, target, ["bind", name, index]))
        : targetMistakes(workflow, targets, ["bind", name]);
    }),
  ];
}

function exampleOf(workflow: Workflow): string {
  const [id, found] = Object.entries(workflow)[0] ?? ["6", { inputs: {} }];
  return `${id}.${Object.keys(found.inputs)[0] ?? "text"}`;
}

function targetMistakes(workflow: Workflow, target: string, path: Mistake["path"]): Mistake[] {
  const at = targetOf(target);
  if (at === null)
    return [{ path, message: `expected a node and its input, such as 6.text, but found ${target}` }];
  const node = workflow[at.id];
  if (!Object.hasOwn(workflow, at.id) || node === undefined) {
    const ids = Object.entries(workflow).map(([id, { class_type }]) => `${id} (${class_type})`);
    // The class is the better word to recognise a node by, but ids are what has to be written.
    const meant = nodeNamed(workflow, at.id);
    const hint = meant === null ? ` It has ${someOf(ids)}` : ` Did you mean ${meant}.${at.input}?`;
    return [{ path, message: `the workflow has no node ${at.id}.${hint}` }];
  }
  if (!Object.hasOwn(node.inputs, at.input)) {
    const inputs = Object.keys(node.inputs).filter((name) => !isLink(node.inputs[name]));
    const what = `node ${at.id} (${node.class_type}) has no input ${at.input}`;
    return [{ path, message: unknownName(at.input, inputs, what) }];
  }
  const value = node.inputs[at.input];
  if (!isLink(value)) return [];
  const source = workflow[value[0]]?.class_type ?? "node";
  return [
    {
      path,
      message: `${target} is linked to node ${value[0]} (${source}), so a value would cut the link; bind an input of that node`,
    },
  ];
}

/** A node by its class or its title. */
function nodeNamed(workflow: Workflow, name: string): string | null {
  const byName = new Map(
    Object.entries(workflow).flatMap(([id, { class_type, _meta }]) =>
      [class_type, _meta?.title ?? ""].map((each) => [each, id] as const),
    ),
  );
  const meant = nearest(
    name,
    [...byName.keys()].filter((each) => each.length > 3),
  );
  return meant === undefined ? null : (byName.get(meant) ?? null);
}

function unknownName(name: string, known: readonly string[], what: string): string {
  const meant = nearest(name, known);
  return meant === undefined
    ? `${what}; expected one of ${someOf(known)}`
    : `${what}. Did you mean ${meant}?`;
}

const namedMax = 12;

function someOf(names: readonly string[]): string {
  const more = names.length - namedMax;
  return more > 0 ? `${names.slice(0, namedMax).join(", ")} and ${more} more` : names.join(", ");
}
