import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { workflowIn } from "../../src/providers/comfyui/graph.js";
import { inspectWorkflow, type ObjectInfo } from "../../src/providers/comfyui/workflow.js";
import { comfyuiNodes } from "../upstreams/comfyui-nodes.js";

function workflowOf(name: string) {
  return workflowIn(readFileSync(new URL(`workflows/${name}.json`, import.meta.url), "utf8"), `${name}.json`);
}

function inspected(name: string, objectInfo: ObjectInfo = comfyuiNodes) {
  return inspectWorkflow(workflowOf(name), objectInfo);
}

const samplers = ["euler", "euler_ancestral", "dpmpp_2m", "uni_pc"];
const schedulers = ["simple", "normal", "karras", "beta"];

test("a picture from text", () => {
  const { model, notes, found } = inspected("text-to-image");
  expect(notes).toEqual([]);
  expect(model).toEqual({
    key: "v1-5-pruned-emaonly",
    category: "image",
    input: "text",
    params: {
      negative: "text",
      seed: "number",
      width: "number",
      height: "number",
      steps: "number",
      cfg: "number",
      denoise: "number",
      sampler: samplers,
      scheduler: schedulers,
      checkpoint: ["dreamshaper_8.safetensors", "v1-5-pruned-emaonly.safetensors"],
    },
    bind: {
      prompt: "6.text",
      negative: "7.text",
      seed: "3.seed",
      width: "5.width",
      height: "5.height",
      steps: "3.steps",
      cfg: "3.cfg",
      denoise: "3.denoise",
      sampler: "3.sampler_name",
      scheduler: "3.scheduler",
      checkpoint: "4.ckpt_name",
    },
  });
  expect(found.prompt).toEqual([
    {
      target: "6.text",
      nodeClass: "CLIPTextEncode",
      title: "Prompt",
      value: "a lighthouse in a storm, oil painting",
    },
  ]);
  expect(found.width?.[0]).toMatchObject({ value: 512, min: 16, max: 16_384 });
});

test("a picture from a picture", () => {
  const { model, notes } = inspected("image-to-image");
  expect(notes).toEqual([]);
  expect(model).toMatchObject({
    input: "text+image",
    bind: { image: "10.image", prompt: "6.text", denoise: "3.denoise" },
  });
  expect(Object.keys(model.params)).not.toContain("width");
});

test("Flux: guider, noise and sampler are nodes of their own, and the prompt is in a node that only holds a text", () => {
  const { model, notes } = inspected("flux");
  expect(notes).toEqual([]);
  expect(model).toMatchObject({ key: "flux1-dev", category: "image", input: "text" });
  expect(model.bind).toEqual({
    prompt: "30.value",
    seed: "25.noise_seed",
    width: "5.width",
    height: "5.height",
    steps: "17.steps",
    guidance: "26.guidance",
    denoise: "17.denoise",
    sampler: "16.sampler_name",
    scheduler: "17.scheduler",
    checkpoint: "12.unet_name",
  });
  expect(model.params["checkpoint"]).toEqual(["flux1-dev.safetensors", "flux1-schnell.safetensors"]);
});

test("by way of a ControlNet the sides stay apart, and two samplers get one seed", () => {
  const { model, notes } = inspected("controlnet");
  expect(model.bind).toMatchObject({
    prompt: "2.text",
    negative: "3.text",
    seed: "7.value",
    steps: ["9.steps", "10.steps"],
    image: "5.image",
    width: "8.width",
  });
  expect([model.bind["cfg"], notes]).toEqual([
    expect.any(String),
    [expect.stringMatching(/^cfg is .* could be meant too$/)],
  ]);
});

test("a film from a picture, whose negative side is zeroed out", () => {
  const { model } = inspected("image-to-video");
  expect(model).toMatchObject({ category: "video", input: "text+image" });
  expect(model.bind).toMatchObject({
    prompt: "4.text",
    image: "6.image",
    width: "7.width",
    length: "7.length",
  });
  expect(model.params).not.toHaveProperty("negative");
});

test("without a word of ComfyUI about its nodes, names decide", () => {
  for (const name of ["text-to-image", "image-to-image", "flux", "controlnet", "image-to-video"]) {
    const { model, notes } = inspected(name, {});
    const known = inspected(name);
    expect(notes).toEqual(known.notes);
    expect(model.bind).toEqual(known.model.bind);
    expect([model.category, model.input]).toEqual([known.model.category, known.model.input]);
  }
});

test("nodes that ComfyUI does not have are named", () => {
  const { FluxGuidance: _, ...others } = comfyuiNodes;
  expect(inspected("flux", others).notes).toEqual(["this ComfyUI has no node FluxGuidance"]);
  expect(inspected("flux", others).model.bind).toMatchObject({ prompt: "30.value" });
});

test("a workflow without a prompt says so", () => {
  const workflow = workflowIn(
    '{ "1": { "class_type": "EmptyLatentImage", "inputs": { "width": 64, "height": 64, "batch_size": 1 } }, "2": { "class_type": "SaveImage", "inputs": { "images": ["1", 0] } } }',
    "empty.json",
  );
  expect(inspectWorkflow(workflow, comfyuiNodes).notes).toEqual([
    "no text leads to a sampler: say under bind which input takes the prompt",
  ]);
});

test("links in a circle and to nodes that are not there end the search", () => {
  const node = (inputs: object) => ({ class_type: "CLIPTextEncode", inputs });
  const workflow = workflowIn(
    JSON.stringify({
      a: node({ text: ["b", 0] }),
      b: { class_type: "PrimitiveStringMultiline", inputs: { value: ["a", 0] } },
      c: { class_type: "KSampler", inputs: { seed: ["gone", 0], positive: ["a", 0], negative: ["gone", 0] } },
      d: { class_type: "SaveImage", inputs: { images: ["c", 0] } },
    }),
    "circle.json",
  );
  expect(inspectWorkflow(workflow, comfyuiNodes).model.bind).toEqual({});
});

test.each([
  ["[]", "is not a workflow of ComfyUI"],
  ["{}", "is not a workflow of ComfyUI"],
  ['{"3": {"inputs": {}}}', "is not a workflow of ComfyUI"],
  ["{", "is not JSON"],
  ["null", "is not a workflow of ComfyUI"],
])("%s is refused", (text, message) => {
  expect(() => workflowIn(text, "a.json")).toThrow(message);
});

test("a workflow in the editor's format is refused with how to save it", () => {
  expect(() => workflowOf("editor-format")).toThrow("save it with Workflow → Export (API)");
});
