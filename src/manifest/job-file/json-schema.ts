import { z } from "zod";
import { job, row } from "./job-shape.js";

/** The JSON Schema of JSON and YAML manifests, for editors: made of the very shapes that manifests are checked by. */
export function manifestSchema(): object {
  const manifest = z.union([job, z.array(row)]).meta({
    title: "bulkgen manifest",
    description: "rows to generate, or a job that makes them",
  });
  return z.toJSONSchema(manifest);
}
