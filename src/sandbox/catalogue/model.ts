import type { InputType } from "../../api/inputs.js";
import type { Category } from "../../api/records.js";
import type { SelectParameter } from "./parameters.js";

/** Who makes the outputs of a model; the media workers know one maker for each name. */
export type Maker =
  | "paint"
  | "repaint"
  | "upscale"
  | "vignette"
  | "speak"
  | "compose"
  | "film"
  | "animate"
  | "extend"
  | "perform";

export interface SandboxModel {
  key: string;
  name: string;
  category: Category;
  inputType: InputType;
  /** Base cost of one generation in credits. */
  credits: number;
  parameters: readonly SelectParameter[];
  /** How long a task takes: between these, evenly spread. */
  taskMs: { min: number; max: number };
  maker: Maker;
}
