import { plan, readManifest, type ServiceAddress } from "bulkgen";

/** Checks a sheet, first alone and then against the service, and returns what a run of it would cost in credits. */
export async function priceOf(manifest: string, service: ServiceAddress): Promise<number> {
  const { rows, problems } = await readManifest(manifest);
  console.log(`${rows.length} rows, ${problems.length} problems`);

  const planned = await plan(manifest, { service, maxCredits: 1_000 });
  for (const { place, message, expected, got } of planned.problems)
    console.log(`row ${place.row}, ${place.column}: ${message}; expected ${expected}, got ${got}`);
  for (const { model, due, price } of planned.models)
    console.log(`${model}: ${due} items at ${price} credits`);
  for (const { message } of [...planned.blockers, ...planned.warnings]) console.log(message);

  const { needed, balance } = planned.money;
  const { requests, ms } = planned.requests.forecast;
  console.log(`${needed} of ${balance} credits, ${requests} requests, ${Math.ceil(ms / 60_000)} minutes`);
  return needed;
}
