import type { SchemaName } from "./schemas.js";

/**
 * One example of each record, shown in the OpenAPI document and on the page. Each is what this sandbox really answers,
 * apart from ids and times.
 */
const taskId = "0193479a-3c00-7b1e-9a51-6f2a0c4d8e10";
const input = { prompt: "A lighthouse at dawn", aspect_ratio: "16:9", output_format: "png" };

const generateExample = {
  model: "aurora-image-mini",
  prompt: input.prompt,
  params: { aspect_ratio: input.aspect_ratio },
};

export const processingExample = {
  task_id: taskId,
  model: "aurora-image-mini",
  category: "image",
  status: "processing",
  input,
  output_urls: null,
  error: null,
  credits_consumed: 1,
  created_at: "2026-11-20T12:00:00.000Z",
  completed_at: null,
};

export const failedExample = {
  ...processingExample,
  status: "failed",
  error: "The prompt was rejected by content moderation.",
  credits_consumed: 0,
  completed_at: "2026-11-20T12:00:00.900Z",
};

/** `origin` is what output URLs begin with. */
export function examples(origin: string): Readonly<Partial<Record<SchemaName, unknown>>> {
  return {
    GenerateRequest: generateExample,
    Creation: {
      task_id: taskId,
      external_task_id: "sandbox-5b0c6d1f9a7e4c32",
      status: "processing",
      model: "aurora-image-mini",
      category: "image",
      credits_consumed: 1,
      credits_remaining: 499,
    },
    Task: {
      ...processingExample,
      status: "completed",
      output_urls: [`${origin}/files/${taskId}/1.png?expires=1795179600000&signature=6f1c0f7d`],
      completed_at: "2026-11-20T12:00:00.900Z",
    },
    ModelList: {
      models: [
        {
          model_key: "aurora-image-mini",
          model_name: "Aurora Image Mini",
          category: "image",
          credits_cost: 1,
          input_type: "text",
          parameters: [
            {
              key: "output_format",
              label: "File format",
              type: "select",
              options: [
                { value: "png", label: "PNG" },
                { value: "jpeg", label: "JPEG" },
              ],
              default: "png",
            },
          ],
        },
      ],
      categories: { image: ["aurora-image-mini"], video: [], audio: [] },
      total: 1,
    },
    Me: {
      user: {
        id: "7d0f2f7e-54d1-4b86-9a25-0d7a3c1d2e11",
        email: "sandbox@localhost.invalid",
        name: "Sandbox",
      },
      credits: { balance: 499, used_this_key: 1 },
      subscription: {
        status: "active",
        plan: "Pro",
        credits_per_month: 2_000,
        billing_interval: "month",
        current_period_end: "2026-12-20T12:00:00.000Z",
        cancel_at_period_end: false,
      },
      api_key: { id: "c1a4de2b-8f37-4b0f-8f56-2f3f6f0b9a01", name: "sandbox", requests_count: 3 },
    },
    Error: { error: { code: "INVALID_MODEL", message: 'There is no model "aurora".' } },
  };
}
