import { resolve } from "node:path";
import { z } from "zod";
import { leavesReally } from "../../text/inside.js";
import type { ProviderKind } from "../kind.js";
import { bindMistakes } from "./bind.js";
import { WorkflowMistake, workflowFile } from "./graph.js";
import { ComfyJobs, type WorkflowModel } from "./jobs.js";

const target = z
  .string("expected a node and its input, such as 6.text")
  .regex(/^[^.\s]+\..+$/, "expected a node and its input, such as 6.text");

export const comfyuiKind: ProviderKind = {
  name: "comfyui",
  describe: "workflows on one or several machines with ComfyUI",
  provider: {},
  model: {
    workflow: z
      .string("expected the file of a workflow, as ComfyUI saves it with Workflow → Export (API)")
      .min(1, "expected the file of a workflow"),
    bind: z.record(
      z.string(),
      z.union(
        [target, z.array(target).min(1, "expected a node and its input, such as 6.text")],
        "expected a node and its input, such as 6.text, or a list of them",
      ),
      "expected which input of the workflow takes what, such as { prompt: 6.text, seed: 3.seed }",
    ),
  },
  defaults: { addresses: ["http://127.0.0.1:8188"], concurrency: 1, timeoutMs: 10 * 60_000 },
  needsKey: false,
  check({ details, input }, folder, params) {
    const { workflow, bind } = details as unknown as WorkflowModel;
    try {
      return bindMistakes(workflowFile(folder, workflow), bind, input, params);
    } catch (error) {
      if (!(error instanceof WorkflowMistake)) throw error;
      return [{ path: ["workflow"], message: error.message }];
    }
  },
  reach(_, { key, details }, folder) {
    const path = resolve(folder, (details as unknown as WorkflowModel).workflow);
    return leavesReally(folder, path)
      ? { values: [{ setting: `workflow of model ${key}`, value: path }] }
      : {};
  },
  open: (settings, place) => new ComfyJobs(settings, place),
};
