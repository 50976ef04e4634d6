import { createClient, type Model, type ServiceAddress, ServiceError } from "bulkgen";

/** The cheapest model that makes a picture of a prompt alone, if the balance covers it. */
export async function cheapestModel(service: ServiceAddress): Promise<Model> {
  const client = await createClient({ service });
  try {
    const { models } = await client.models({ category: "image", includeParameters: false });
    const [model] = models
      .filter(({ input_type }) => input_type === "text")
      .sort((a, b) => a.credits_cost - b.credits_cost);
    if (model === undefined) throw new Error("the service has no such model");
    const { credits } = await client.me();
    if (Number(credits.balance) < model.credits_cost)
      throw new Error(`only ${credits.balance} credits are left`);
    return model;
  } catch (error) {
    if (error instanceof ServiceError) console.error(`${error.kind}: ${error.status} ${error.code}`);
    throw error;
  } finally {
    await client.close();
  }
}
