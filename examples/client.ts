import { ChargeUnknown, type Client, createClient, type ServiceAddress, ServiceError } from "bulkgen";

/** Makes one picture with the cheapest model that needs only a prompt, and returns the addresses of its files. */
export async function makeOne(service: ServiceAddress, prompt: string): Promise<string[]> {
  const client = await createClient({ service });
  try {
    const { models } = await client.models({ category: "image", includeParameters: false });
    const [model] = models
      .filter(({ input_type }) => input_type === "text")
      .sort((a, b) => a.credits_cost - b.credits_cost);
    if (model === undefined) throw new Error("the service has no such model");
    const { taskId, creditsConsumed } = await client.generate({ model: model.model_key, prompt });
    console.log(`${model.model_name}: task ${taskId}, ${creditsConsumed} credits`);
    return await outputsOf(client, taskId);
  } catch (error) {
    // It may have been paid for: whoever sends it again may pay twice.
    if (error instanceof ChargeUnknown)
      throw new Error("look at the account before you try again", { cause: error });
    if (error instanceof ServiceError) console.error(`${error.kind}: ${error.status} ${error.code}`);
    throw error;
  } finally {
    await client.close();
  }
}

/** Polls as the service recommends: after 2 seconds, and then more and more rarely, up to every 10 seconds. */
async function outputsOf(client: Client, taskId: string): Promise<string[]> {
  for (let seconds = 2; ; seconds = Math.min(10, seconds * 1.5)) {
    const { status, output_urls, error } = await client.task(taskId);
    if (status === "completed") return output_urls ?? [];
    if (status === "failed") throw new Error(`the task failed: ${error}`);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  }
}
