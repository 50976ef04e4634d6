import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import S3rver from "s3rver";
import { onTestFinished } from "vitest";

/** A real S3 server on loopback, with a bucket `inputs`; ends with the test. Returns the environment that reaches it. */
export async function s3Server(): Promise<Record<string, string>> {
  const directory = mkdtempSync(join(tmpdir(), "bulkgen-s3-"));
  const server = new S3rver({
    port: 0,
    address: "127.0.0.1",
    silent: true,
    directory,
    configureBuckets: [{ name: "inputs" }],
  });
  const { port } = await server.run();
  onTestFinished(async () => {
    await server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
    // The server's own, which its documentation names.
    AWS_ACCESS_KEY_ID: "S3RVER",
    AWS_SECRET_ACCESS_KEY: "S3RVER",
  };
}
