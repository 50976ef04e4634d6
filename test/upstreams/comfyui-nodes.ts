import type { ObjectInfo } from "../../src/providers/comfyui/workflow.js";

/** What `/object_info` says of the nodes that the tests use, as its `INPUT_TYPES` and `RETURN_TYPES` have it. */

const text = ["STRING", { multiline: true, dynamicPrompts: true }];
const seed = ["INT", { default: 0, min: 0, max: 2 ** 64 - 1, control_after_generate: true }];
const size = ["INT", { default: 512, min: 16, max: 16_384, step: 8 }];
const steps = ["INT", { default: 20, min: 1, max: 10_000 }];
const cfg = ["FLOAT", { default: 8, min: 0, max: 100, step: 0.1 }];
const denoise = ["FLOAT", { default: 1, min: 0, max: 1, step: 0.01 }];
const batch = ["INT", { default: 1, min: 1, max: 4_096 }];
const samplers = ["euler", "euler_ancestral", "dpmpp_2m", "uni_pc"];
const schedulers = ["simple", "normal", "karras", "beta"];

function node(required: Record<string, unknown>, output: string[], isEnd = false, optional = {}) {
  return { input: { required, optional }, output, output_node: isEnd };
}

export const comfyuiNodes = {
  CheckpointLoaderSimple: node(
    { ckpt_name: [["dreamshaper_8.safetensors", "v1-5-pruned-emaonly.safetensors"]] },
    ["MODEL", "CLIP", "VAE"],
  ),
  // Newer nodes name the type and keep the options beside it.
  UNETLoader: node(
    {
      unet_name: ["COMBO", { options: ["flux1-dev.safetensors", "flux1-schnell.safetensors"] }],
      weight_dtype: [["default", "fp8_e4m3fn"]],
    },
    ["MODEL"],
  ),
  DualCLIPLoader: node(
    {
      clip_name1: [["clip_l.safetensors", "t5xxl_fp16.safetensors"]],
      clip_name2: [["clip_l.safetensors", "t5xxl_fp16.safetensors"]],
      type: [["sdxl", "flux"]],
    },
    ["CLIP"],
  ),
  VAELoader: node({ vae_name: [["ae.safetensors"]] }, ["VAE"]),
  CLIPTextEncode: node({ text, clip: ["CLIP"] }, ["CONDITIONING"]),
  CLIPTextEncodeFlux: node(
    { clip: ["CLIP"], clip_l: text, t5xxl: text, guidance: ["FLOAT", { default: 3.5, min: 0, max: 100 }] },
    ["CONDITIONING"],
  ),
  ConditioningZeroOut: node({ conditioning: ["CONDITIONING"] }, ["CONDITIONING"]),
  ControlNetLoader: node({ control_net_name: [["canny.safetensors", "depth.safetensors"]] }, ["CONTROL_NET"]),
  ControlNetApplyAdvanced: node(
    {
      positive: ["CONDITIONING"],
      negative: ["CONDITIONING"],
      control_net: ["CONTROL_NET"],
      image: ["IMAGE"],
      strength: ["FLOAT", { default: 1, min: 0, max: 10 }],
    },
    ["CONDITIONING", "CONDITIONING"],
  ),
  FluxGuidance: node(
    { conditioning: ["CONDITIONING"], guidance: ["FLOAT", { default: 3.5, min: 0, max: 100 }] },
    ["CONDITIONING"],
  ),
  BasicGuider: node({ model: ["MODEL"], conditioning: ["CONDITIONING"] }, ["GUIDER"]),
  CFGGuider: node({ model: ["MODEL"], positive: ["CONDITIONING"], negative: ["CONDITIONING"], cfg }, [
    "GUIDER",
  ]),
  RandomNoise: node({ noise_seed: seed }, ["NOISE"]),
  KSamplerSelect: node({ sampler_name: [samplers] }, ["SAMPLER"]),
  BasicScheduler: node({ model: ["MODEL"], scheduler: [schedulers], steps, denoise }, ["SIGMAS"]),
  ModelSamplingFlux: node(
    { model: ["MODEL"], max_shift: ["FLOAT", {}], base_shift: ["FLOAT", {}], width: size, height: size },
    ["MODEL"],
  ),
  SamplerCustomAdvanced: node(
    {
      noise: ["NOISE"],
      guider: ["GUIDER"],
      sampler: ["SAMPLER"],
      sigmas: ["SIGMAS"],
      latent_image: ["LATENT"],
    },
    ["LATENT", "LATENT"],
  ),
  KSampler: node(
    {
      model: ["MODEL"],
      seed,
      steps,
      cfg,
      sampler_name: [samplers],
      scheduler: [schedulers],
      positive: ["CONDITIONING"],
      negative: ["CONDITIONING"],
      latent_image: ["LATENT"],
      denoise,
    },
    ["LATENT"],
  ),
  KSamplerAdvanced: node(
    {
      model: ["MODEL"],
      add_noise: [["enable", "disable"]],
      noise_seed: seed,
      steps,
      cfg,
      sampler_name: [samplers],
      scheduler: [schedulers],
      positive: ["CONDITIONING"],
      negative: ["CONDITIONING"],
      latent_image: ["LATENT"],
      start_at_step: ["INT", { default: 0, min: 0, max: 10_000 }],
      end_at_step: ["INT", { default: 10_000, min: 0, max: 10_000 }],
    },
    ["LATENT"],
  ),
  EmptyLatentImage: node({ width: size, height: size, batch_size: batch }, ["LATENT"]),
  EmptySD3LatentImage: node({ width: size, height: size, batch_size: batch }, ["LATENT"]),
  WanImageToVideo: node(
    {
      positive: ["CONDITIONING"],
      negative: ["CONDITIONING"],
      vae: ["VAE"],
      width: size,
      height: size,
      length: ["INT", { default: 81, min: 1, max: 16_384, step: 4 }],
      batch_size: batch,
    },
    ["CONDITIONING", "CONDITIONING", "LATENT"],
    false,
    { start_image: ["IMAGE"] },
  ),
  PrimitiveStringMultiline: node({ value: text }, ["STRING"]),
  PrimitiveInt: node({ value: ["INT", { control_after_generate: true }] }, ["INT"]),
  LoadImage: node({ image: [["example.png"], { image_upload: true }] }, ["IMAGE", "MASK"]),
  ImageScale: node(
    {
      image: ["IMAGE"],
      upscale_method: [["lanczos", "area"]],
      width: size,
      height: size,
      crop: [["disabled", "center"]],
    },
    ["IMAGE"],
  ),
  VAEEncode: node({ pixels: ["IMAGE"], vae: ["VAE"] }, ["LATENT"]),
  VAEDecode: node({ samples: ["LATENT"], vae: ["VAE"] }, ["IMAGE"]),
  CreateVideo: node({ images: ["IMAGE"], fps: ["FLOAT", { default: 30, min: 1, max: 120 }] }, ["VIDEO"]),
  SaveImage: node({ images: ["IMAGE"], filename_prefix: ["STRING", { default: "ComfyUI" }] }, [], true),
  PreviewImage: node({ images: ["IMAGE"] }, [], true),
  SaveVideo: node({ video: ["VIDEO"], filename_prefix: ["STRING", { default: "video/ComfyUI" }] }, [], true),
} satisfies ObjectInfo;
