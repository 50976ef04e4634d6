import { z } from "zod";
import { type InputType, inputTypes } from "../../api/inputs.js";
import { type Category, categories } from "../../api/records.js";
import type { SelectParameter, ServiceModel } from "../../service/models/model.js";
import { readJson } from "./json-file.js";
import type { Maker, SandboxModel } from "./model.js";

/**
 * The models of a real service, saved as its model list, for the sandbox to play: their keys, inputs, parameters and
 * prices are kept to the letter, and each category's own makers stand in for whatever makes the media there.
 */
const parameter = z
  .looseObject({
    key: z.string().trim().min(1),
    label: z.string().optional(),
    type: z.string().trim().min(1),
    options: z
      .array(z.looseObject({ value: z.string(), label: z.string().optional().catch(undefined) }))
      .default([]),
    default: z.string().nullish(),
  })
  .superRefine(({ type, options, default: preset }, context) => {
    const values = options.map(({ value }) => value);
    if (type === "select" && values.length === 0) {
      context.addIssue({ code: "custom", path: ["options"], message: "expected one {value, label} or more" });
    } else if (values.length > 0 && preset != null && !values.includes(preset)) {
      const message = `expected one of its options ${values.join(", ")}`;
      context.addIssue({ code: "custom", path: ["default"], message });
    }
  });

const model = z.looseObject({
  model_key: z.string().trim().min(1),
  model_name: z.string().optional(),
  category: z.enum(categories),
  credits_cost: z.number().min(0).max(1e6),
  input_type: z.enum(inputTypes),
  parameters: z.array(parameter).default([]),
});

const modelFile = z.looseObject({ models: z.array(model).min(1) }).superRefine(({ models }, context) => {
  for (const [index, { model_key: key }] of models.entries()) {
    if (models.findIndex((other) => other.model_key === key) === index) continue;
    const path = ["models", index, "model_key"];
    context.addIssue({ code: "custom", path, message: "expected a key that no other model has" });
  }
});

/** The models in the text of a file, in its order. Throws an error that says what is wrong, and where. */
export function readModelFile(content: string, file: string): SandboxModel[] {
  const written = readJson(content, file, { schema: modelFile, what: "list of models" });
  return played(modelFile.parse(written).models.map(listedModel));
}

const taskMs: Readonly<Record<Category, { min: number; max: number }>> = {
  image: { min: 500, max: 1_800 },
  video: { min: 3_000, max: 8_000 },
  audio: { min: 800, max: 2_500 },
};

function listedModel(read: z.output<typeof model>): ServiceModel {
  const { model_key: key, model_name: name = key, category, input_type: inputType } = read;
  const parameters = read.parameters.map(playableParameter);
  return { key, name, category, inputType, credits: read.credits_cost, parameters };
}

/** Models of another service, with a maker of ours for each: their keys, inputs, parameters and prices stay as they are. */
export function played(models: readonly ServiceModel[]): SandboxModel[] {
  return models.map((model) => {
    const hints = [model.key, model.name, ...model.parameters.map(({ key }) => key)].join(" ").toLowerCase();
    const { category, inputType } = model;
    return { ...model, taskMs: taskMs[category], maker: makers[category](inputType, hints) };
  });
}

/** A parameter without options takes any value; one without a default takes its first option when nothing is given. */
function playableParameter(read: z.output<typeof parameter>): SelectParameter {
  const options = read.options.map(({ value, label = value }) => ({ value, label }));
  const { key, label = key, type } = read;
  return { key, label, type, options, default: read.default ?? options[0]?.value ?? "" };
}

/** The maker for a category's model. The hints are all names of the model and its parameters. */
const makers: Readonly<Record<Category, (inputType: InputType, hints: string) => Maker>> = {
  image: (inputType, hints) => {
    if (inputType === "text" || inputType === "video") return "paint";
    if (inputType === "text+image") return "repaint";
    if (/upscal|enlarge|super.?res|scale/.test(hints)) return "upscale";
    return /background|cut.?out|matting/.test(hints) ? "vignette" : "repaint";
  },
  video: (inputType) => {
    if (inputType === "text") return "film";
    return inputType === "video" ? "extend" : "animate";
  },
  audio: (inputType, hints) => {
    const spoken =
      /voice|speech|speak|tts|narrat|read/.test(hints) || !/music|song|score|sound|melody/.test(hints);
    return inputType.includes("text") && spoken ? "speak" : "compose";
  },
};
