import type { InputType } from "../../api/inputs.js";
import type { Category } from "../../api/records.js";
import type { Json, MediaName } from "../provider.js";
import type { Bind } from "./bind.js";
import { isLink, type Link, type Workflow, type WorkflowNode } from "./graph.js";

/**
 * Finds what people want to set in a workflow. A workflow says nowhere which text is the prompt: that follows from the links.
 * From each sampler, `positive` leads to the encoder of the prompt and `negative` to that of the negative prompt, by way of
 * guiders, ControlNets and the like. What ComfyUI says about its nodes (`/object_info`) gives types and allowed values; nodes
 * that it does not know are judged by the usual names of their inputs.
 */

/** What `/object_info` says of a class of nodes; more than this is not needed. */
export interface NodeClass {
  input?: { required?: Record<string, unknown>; optional?: Record<string, unknown> };
  output?: unknown;
  output_node?: boolean;
}

export type ObjectInfo = Readonly<Record<string, NodeClass>>;

export const workflowRoles = [
  "prompt",
  "negative",
  "seed",
  "width",
  "height",
  "length",
  "steps",
  "cfg",
  "guidance",
  "denoise",
  "sampler",
  "scheduler",
  "checkpoint",
  "image",
  "video",
  "audio",
] as const;
export type WorkflowRole = (typeof workflowRoles)[number];

/** An input of a workflow that a value can be given for. */
export interface WorkflowInput {
  /** As `bind` names it: `6.text`. */
  target: string;
  nodeClass: string;
  /** What the editor shows above the node; its class if nobody gave it a title. */
  title: string;
  /** What the workflow was saved with. */
  value: Json;
  /** The values that ComfyUI takes, if they are a list. */
  options?: string[];
  min?: number;
  max?: number;
}

/** An entry for `models.yaml`, without provider, credits and the file of the workflow. */
export interface ProposedModel {
  key: string;
  category: Category;
  input: InputType;
  params: Record<string, "number" | "text" | string[]>;
  bind: Bind;
}

export interface InspectedWorkflow {
  /** What was found for each role, in the order of the samplers. The first and those that are equal to it are proposed. */
  found: Partial<Record<WorkflowRole, WorkflowInput[]>>;
  model: ProposedModel;
  /** What a person should look at, in sentences. */
  notes: string[];
}

export function inspectWorkflow(workflow: Workflow, objectInfo: ObjectInfo): InspectedWorkflow {
  const found = new WorkflowReading(workflow, objectInfo).all();
  const media = (["image", "video", "audio"] as const).filter((name) => found[name] !== undefined);
  const category = categoryOf(workflow);
  const model = {
    key: keyFor(found.checkpoint?.[0]?.value, category),
    category,
    input: inputOf(found.prompt !== undefined, media),
    params: paramsFor(found),
    bind: bindFor(found),
  };
  return { found, model, notes: notesOn(found, workflow, objectInfo) };
}

const mediaRoles: ReadonlySet<string> = new Set<WorkflowRole>(["image", "video", "audio"]);

/** By which names of inputs a role is known, in nodes that samplers get something from. */
const namesOfRole: Partial<Record<WorkflowRole, readonly string[]>> = {
  length: ["length", "num_frames", "frames", "video_frames"],
  steps: ["steps"],
  cfg: ["cfg"],
  guidance: ["guidance"],
  denoise: ["denoise"],
  sampler: ["sampler_name"],
  scheduler: ["scheduler"],
  checkpoint: ["ckpt_name", "unet_name"],
};

/** Texts of encoders whose class ComfyUI does not know. */
const textNames = [
  "text",
  "text_g",
  "text_l",
  "clip_l",
  "t5xxl",
  "prompt",
  "positive",
  "negative",
  "value",
  "string",
];

/** Ways in which values reach a sampler from nodes that only hold a value. */
const valueNames = ["value", "int", "float", "number", "seed", "text", "string"];

class WorkflowReading {
  private readonly samplers: string[];

  constructor(
    private readonly workflow: Workflow,
    private readonly info: ObjectInfo,
  ) {
    const wanted = this.upstream(this.ends());
    this.samplers = Object.keys(workflow).filter((id) => wanted.has(id) && this.isSampler(id));
  }

  all(): InspectedWorkflow["found"] {
    const prompt = this.texts("positive");
    const targets = new Set(prompt.map(({ target }) => target));
    // With one encoder for both sides, as when the negative is zeroed out, there is no negative prompt.
    const negative = this.texts("negative").filter(({ target }) => !targets.has(target));
    const sources = [...this.upstream(this.samplers.length > 0 ? this.samplers : this.ends())];
    const named = Object.entries(namesOfRole).map(([role, names]): [string, WorkflowInput[]] => [
      role,
      sources.flatMap((id) => names.flatMap((name) => this.value(id, name))),
    ]);
    const seed = sources.flatMap((id) => ["seed", "noise_seed"].flatMap((name) => this.value(id, name)));
    const found: [string, WorkflowInput[]][] = [
      ["prompt", prompt.length > 0 ? prompt : this.textsWithoutSampler()],
      ["negative", negative],
      ["seed", seed.filter(({ value }) => typeof value === "number")],
      ...this.size(sources),
      ...named,
      ...this.media(),
    ];
    return Object.fromEntries(
      workflowRoles.flatMap((role) => {
        const inputs = unique(found.flatMap(([name, each]) => (name === role ? each : [])));
        // What has one allowed value cannot be set.
        const isFixed = !mediaRoles.has(role) && inputs.some(({ options }) => options?.length === 1);
        return inputs.length === 0 || isFixed ? [] : [[role, inputs]];
      }),
    );
  }

  /** The nodes that give results: those that save, or if there is none those that show. */
  private ends(): string[] {
    const ids = Object.keys(this.workflow);
    const saving = ids.filter((id) => {
      const { class_type } = this.node(id);
      return this.info[class_type]?.output_node === true || /^(Save|VHS_VideoCombine)/.test(class_type);
    });
    return saving.length > 0 ? saving : ids;
  }

  private isSampler(id: string): boolean {
    const { class_type, inputs } = this.node(id);
    const takesNoise = ["seed", "noise_seed", "noise"].some((name) => name in inputs);
    const takesText = ["positive", "guider"].some((name) => isLink(inputs[name]));
    return takesText && (takesNoise || /sampler/i.test(class_type));
  }

  /** These nodes and all that they get something from, the nearest first. */
  private upstream(from: readonly string[]): Set<string> {
    const reached = new Set(from);
    for (const id of reached)
      for (const value of Object.values(this.node(id).inputs))
        if (isLink(value) && this.workflow[value[0]] !== undefined) reached.add(value[0]);
    return reached;
  }

  private texts(side: "positive" | "negative"): WorkflowInput[] {
    return unique(
      this.samplers.flatMap((id) => {
        const { inputs } = this.node(id);
        const from = isLink(inputs["guider"]) ? inputs["guider"] : inputs[side];
        return isLink(from) ? this.textsBehind(from, side, new Set()) : [];
      }),
    );
  }

  /** The texts of the encoders that a link of conditioning comes from. */
  private textsBehind([id, slot]: Link, side: "positive" | "negative", seen: Set<string>): WorkflowInput[] {
    if (seen.has(`${id}:${slot}`) || this.workflow[id] === undefined) return [];
    seen.add(`${id}:${slot}`);
    const { class_type, inputs } = this.node(id);
    // What is zeroed out has no text that matters.
    if (class_type === "ConditioningZeroOut") return [];
    const own = this.ownTexts(id);
    if (own.length > 0) return own;
    // Nodes with both sides have an output for each, in this order; a guider has both sides and one output.
    const hasSides = isLink(inputs["positive"]) && isLink(inputs["negative"]);
    if (hasSides) {
      const isGuider = /guider/i.test(class_type);
      const name = isGuider ? side : slot === 0 ? "positive" : "negative";
      const link = inputs[name];
      return isLink(link) ? this.textsBehind(link, side, seen) : [];
    }
    // A guider without a negative side.
    if (side === "negative" && /guider/i.test(class_type)) return [];
    return Object.values(inputs)
      .filter(isLink)
      .filter((link) => this.isConditioning(link))
      .flatMap((link) => this.textsBehind(link, side, seen));
  }

  private isConditioning([id, slot]: Link): boolean {
    const node = this.workflow[id];
    if (node === undefined) return false;
    const output = this.info[node.class_type]?.output;
    if (Array.isArray(output)) return output[slot] === "CONDITIONING" || output[slot] === "*";
    return /condition|encode|controlnet|guid/i.test(node.class_type);
  }

  /** The texts that a node holds, or gets from nodes that only hold a text. */
  private ownTexts(id: string): WorkflowInput[] {
    const { inputs } = this.node(id);
    return Object.keys(inputs).flatMap((name) => (this.isText(id, name) ? this.value(id, name) : []));
  }

  private isText(id: string, name: string): boolean {
    const { class_type, inputs } = this.node(id);
    const spec = this.spec(class_type, name);
    const type = Array.isArray(spec) ? spec[0] : undefined;
    if (type !== undefined) return type === "STRING";
    const value = inputs[name];
    return textNames.includes(name) && (typeof value === "string" || isLink(value)) && !isSides(inputs, name);
  }

  /** The prompt of a workflow without a sampler, such as of a node that calls an API: the longest text of several lines. */
  private textsWithoutSampler(): WorkflowInput[] {
    if (this.samplers.length > 0) return [];
    const texts = Object.entries(this.workflow).flatMap(([id, { class_type, inputs }]) =>
      Object.keys(inputs)
        .filter((name) => {
          const [type, how] = this.spec(class_type, name) ?? [];
          const isLong =
            type === "STRING" && (how as { multiline?: boolean } | undefined)?.multiline === true;
          return isLong || name === "prompt";
        })
        .flatMap((name) => this.value(id, name))
        .filter(({ value }) => typeof value === "string"),
    );
    return texts.slice(0, 1);
  }

  /** Width and height, from where the empty picture or film is made; else from where a picture is scaled. */
  private size(sources: readonly string[]): [string, WorkflowInput[]][] {
    const sized = sources.filter((id) =>
      ["width", "height"].every((name) => this.value(id, name).length > 0),
    );
    const gives = (type: string, names: RegExp) =>
      sized.filter((id) => {
        const { class_type } = this.node(id);
        const output = this.info[class_type]?.output;
        return Array.isArray(output) ? output.includes(type) : names.test(class_type);
      });
    const latent = gives("LATENT", /latent|tovideo/i);
    const ids = latent.length > 0 ? latent : gives("IMAGE", /scale|image/i);
    return ["width", "height"].map((name) => [name, ids.flatMap((id) => this.value(id, name))]);
  }

  private media(): [string, WorkflowInput[]][] {
    const wanted = this.upstream(this.ends());
    return Object.entries(this.workflow).flatMap(([id, { class_type, inputs }]) => {
      if (!wanted.has(id)) return [];
      return Object.keys(inputs).flatMap((name): [string, WorkflowInput[]][] => {
        if (typeof inputs[name] !== "string") return [];
        const role = this.mediaOf(class_type, name);
        return role === null ? [] : [[role, this.value(id, name)]];
      });
    });
  }

  private mediaOf(nodeClass: string, name: string): MediaName | null {
    const [, how] = this.spec(nodeClass, name) ?? [];
    const says = Object(how) as Record<string, unknown>;
    if (says["image_upload"] === true) return "image";
    if (says["video_upload"] === true) return "video";
    if (says["audio_upload"] === true) return "audio";
    if (this.info[nodeClass] !== undefined && !/LoadVideo/.test(nodeClass)) return null;
    if (/LoadVideo/.test(nodeClass)) return ["video", "file"].includes(name) ? "video" : null;
    if (/^LoadImage/.test(nodeClass)) return name === "image" ? "image" : null;
    return /^LoadAudio/.test(nodeClass) && name === "audio" ? "audio" : null;
  }

  /** The input itself if it holds a value; if it is linked, the value of the node that it comes from. */
  private value(id: string, name: string, depth = 0): WorkflowInput[] {
    const node = this.workflow[id];
    if (node === undefined || depth > 8 || !Object.hasOwn(node.inputs, name)) return [];
    const value = node.inputs[name];
    if (value === undefined) return [];
    if (isLink(value)) {
      const [source] = value;
      const inputs = Object.keys(this.workflow[source]?.inputs ?? {});
      const ways = inputs.filter((each) => valueNames.some((one) => each.toLowerCase().startsWith(one)));
      return ways.flatMap((each) => this.value(source, each, depth + 1));
    }
    if (value === null || typeof value === "object") return [];
    return [
      {
        target: `${id}.${name}`,
        nodeClass: node.class_type,
        title: node._meta?.title || node.class_type,
        value,
        ...limitsOf(this.spec(node.class_type, name)),
      },
    ];
  }

  private spec(nodeClass: string, name: string): unknown[] | undefined {
    const input = this.info[nodeClass]?.input;
    const spec = input?.required?.[name] ?? input?.optional?.[name];
    return Array.isArray(spec) ? spec : undefined;
  }

  private node(id: string): WorkflowNode {
    return this.workflow[id] ?? { class_type: "", inputs: {} };
  }
}

/** A node that has links called positive and negative has no texts of these names. */
function isSides(inputs: WorkflowNode["inputs"], name: string): boolean {
  return ["positive", "negative"].includes(name) && isLink(inputs[name]);
}

/** Older versions list the options in place of the type, newer ones beside the type COMBO. */
function limitsOf(spec: unknown[] | undefined): Pick<WorkflowInput, "options" | "min" | "max"> {
  const [type, how] = spec ?? [];
  const says = Object(how) as { options?: unknown; min?: unknown; max?: unknown };
  const options = Array.isArray(type) ? type : type === "COMBO" ? says.options : undefined;
  if (Array.isArray(options)) return { options: options.map(String) };
  return {
    ...(typeof says.min === "number" ? { min: says.min } : {}),
    ...(typeof says.max === "number" ? { max: says.max } : {}),
  };
}

function unique(inputs: readonly WorkflowInput[]): WorkflowInput[] {
  return [...new Map(inputs.map((each) => [each.target, each])).values()];
}

function categoryOf(workflow: Workflow): Category {
  const classes = Object.values(workflow).map(({ class_type }) => class_type);
  const saves = (what: RegExp) =>
    classes.some((name) => /^(Save|Preview|VHS_VideoCombine)/.test(name) && what.test(name));
  if (saves(/video|webm/i)) return "video";
  return saves(/audio/i) && !saves(/image/i) ? "audio" : "image";
}

function inputOf(hasPrompt: boolean, media: readonly MediaName[]): InputType {
  if (media.includes("video")) return "video";
  if (!media.includes("image")) return "text";
  return hasPrompt ? "text+image" : "image";
}

/** The first one, and those that have the same value or are beside it: two encoders of one prompt, two samplers of one seed. */
function boundTogether(inputs: readonly WorkflowInput[]): WorkflowInput[] {
  const [first] = inputs;
  if (first === undefined) return [];
  const nodeOf = ({ target }: WorkflowInput) => target.slice(0, target.indexOf("."));
  return inputs.filter((each) => each.value === first.value || nodeOf(each) === nodeOf(first));
}

function bindFor(found: InspectedWorkflow["found"]): Bind {
  return Object.fromEntries(
    Object.entries(found).map(([role, inputs]) => {
      // A second picture is another one, such as a mask, even if the workflow was saved with the same.
      const targets = (mediaRoles.has(role) ? inputs.slice(0, 1) : boundTogether(inputs)).map(
        ({ target }) => target,
      );
      return [role, targets.length === 1 ? (targets[0] as string) : targets];
    }),
  );
}

function paramsFor(found: InspectedWorkflow["found"]): ProposedModel["params"] {
  const roles = Object.entries(found).filter(
    ([role]) => !["prompt", "image", "video", "audio"].includes(role),
  );
  return Object.fromEntries(
    roles.map(([role, [first]]) => {
      if (first?.options !== undefined && first.options.length > 0) return [role, first.options];
      return [role, typeof first?.value === "number" ? ("number" as const) : ("text" as const)];
    }),
  );
}

/** `SDXL/juggernaut_XL v9.safetensors` becomes `juggernaut-xl-v9`. */
function keyFor(checkpoint: Json | undefined, category: Category): string {
  const file = typeof checkpoint === "string" ? (checkpoint.split(/[\\/]/).at(-1) ?? "") : "";
  const key = file
    .replace(/\.[a-z0-9]+$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return key || `comfyui-${category}`;
}

function notesOn(found: InspectedWorkflow["found"], workflow: Workflow, objectInfo: ObjectInfo): string[] {
  const missing = [...new Set(Object.values(workflow).map(({ class_type }) => class_type))].filter(
    (name) => Object.keys(objectInfo).length > 0 && !Object.hasOwn(objectInfo, name),
  );
  const unbound = Object.entries(found).flatMap(([role, inputs]) => {
    const bound = mediaRoles.has(role) ? inputs.slice(0, 1) : boundTogether(inputs);
    const others = inputs.filter((each) => !bound.includes(each)).map(({ target }) => target);
    return others.length === 0
      ? []
      : [`${role} is ${bound[0]?.target}; ${others.join(", ")} could be meant too`];
  });
  const needsPrompt = found.prompt === undefined && found.image === undefined && found.video === undefined;
  return [
    ...(missing.length > 0 ? [`this ComfyUI has no node ${missing.join(", ")}`] : []),
    ...(needsPrompt ? ["no text leads to a sampler: say under bind which input takes the prompt"] : []),
    ...unbound,
  ];
}
