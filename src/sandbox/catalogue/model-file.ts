import { z } from "zod";
import { type InputType, inputTypes } from "../../api/inputs.js";
import { type Category, categories } from "../../api/records.js";
import type { Maker, SandboxModel, SelectParameter } from "./model.js";

/**
 * The models of a real service, saved as its model list, for the sandbox to play: their keys, inputs, parameters and
 * prices are kept to the letter, and each category's own makers stand in for whatever makes the media there.
 */
export interface ModelFileFault {
  /** E.g. `models[3].credits_cost`. */
  where: string;
  expected: string;
  got: string;
}

/** An unusable model file, with all its problems. */
export class ModelFileProblem extends Error {
  override readonly name = "ModelFileProblem";
  constructor(
    file: string,
    readonly faults: readonly ModelFileFault[],
  ) {
    const line = ({ where, expected, got }: ModelFileFault) =>
      `${[file, where].filter(Boolean).join(": ")}: expected ${expected}, got ${got}`;
    super(faults.map(line).join("\n"));
  }
}

// The message of each rule is what was expected; what was got, and where, is added when a rule is broken.
const text = (expected = "a text") => z.string({ error: expected }).trim().min(1, { error: expected });

const parameter = z
  .looseObject(
    {
      key: text(),
      label: z.string({ error: "a text" }).optional(),
      type: text("a type, such as select"),
      options: z
        .array(
          z.looseObject({
            value: z.string({ error: "a text" }),
            label: z.string().optional().catch(undefined),
          }),
          {
            error: "a list of {value, label}",
          },
        )
        .optional(),
      default: z.string({ error: "a text" }).nullish(),
    },
    { error: "a parameter" },
  )
  .superRefine(({ type, options = [], default: preset }, context) => {
    if (type === "select" && options.length === 0) {
      context.addIssue({
        code: "custom",
        path: ["options"],
        message: "a list of one {value, label} or more",
      });
    } else if (options.length > 0 && preset != null && !options.some(({ value }) => value === preset)) {
      const values = options.map(({ value }) => value).join(", ");
      context.addIssue({ code: "custom", path: ["default"], message: `one of its options ${values}` });
    }
  });

const price = "an amount of credits, 0 or more";

const model = z.looseObject(
  {
    model_key: text(),
    model_name: z.string({ error: "a text" }).optional(),
    category: z.enum(categories, { error: `one of ${categories.join(", ")}` }),
    credits_cost: z
      .number({ error: price })
      .min(0, { error: price })
      .max(1e6, { error: "at most 1,000,000 credits" }),
    input_type: z.enum(inputTypes, { error: `one of ${inputTypes.join(", ")}` }),
    parameters: z.array(parameter, { error: "a list of parameters" }).optional(),
  },
  { error: "a model" },
);

const modelFile = z
  .looseObject(
    { models: z.array(model, { error: "a list of models" }).min(1, { error: "at least one model" }) },
    { error: "an object with models, as GET models answers it" },
  )
  .superRefine(({ models }, context) => {
    for (const [index, { model_key: key }] of models.entries()) {
      if (models.findIndex((other) => other.model_key === key) === index) continue;
      const path = ["models", index, "model_key"];
      context.addIssue({ code: "custom", path, message: "a key that no other model has" });
    }
  });

/** The models in the text of a file, in its order. `file` is its name, for the messages. Throws ModelFileProblem. */
export function readModelFile(content: string, file: string): SandboxModel[] {
  let document: unknown;
  try {
    document = JSON.parse(content);
  } catch (error) {
    const got = error instanceof Error ? error.message : String(error);
    throw new ModelFileProblem(file, [{ where: "", expected: "JSON", got }]);
  }
  const read = modelFile.safeParse(document);
  if (read.success) return read.data.models.map(playable);
  const faults = read.error.issues.map(({ path, message }) => ({
    where: placed(path),
    expected: message,
    got: shown(
      path.reduce<unknown>((value, step) => (value as Record<PropertyKey, unknown>)?.[step], document),
    ),
  }));
  throw new ModelFileProblem(file, faults);
}

function placed(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (where, step) =>
      typeof step === "number" ? `${where}[${step}]` : `${where}${where && "."}${String(step)}`,
    "",
  );
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const json = JSON.stringify(value);
  return json.length <= 80 ? json : `${json.slice(0, 79)}…`;
}

const taskMs: Readonly<Record<Category, { min: number; max: number }>> = {
  image: { min: 500, max: 1_800 },
  video: { min: 3_000, max: 8_000 },
  audio: { min: 800, max: 2_500 },
};

function playable(read: z.output<typeof model>): SandboxModel {
  const { model_key: key, model_name: name = key, category, input_type: inputType } = read;
  const parameters = (read.parameters ?? []).map(playableParameter);
  const hints = [key, name, ...parameters.map((each) => each.key)].join(" ").toLowerCase();
  const maker = makers[category](inputType, hints);
  return {
    key,
    name,
    category,
    inputType,
    credits: read.credits_cost,
    parameters,
    taskMs: taskMs[category],
    maker,
  };
}

/** A parameter without options takes any value; one without a default takes its first option when nothing is given. */
function playableParameter(read: z.output<typeof parameter>): SelectParameter {
  const options = (read.options ?? []).map(({ value, label = value }) => ({ value, label }));
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
