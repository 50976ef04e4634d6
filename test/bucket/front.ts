import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request as onward } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** A request as the front of a bucket sees it. */
export interface AskedOfBucket {
  method: string;
  /** Within the bucket, such as `sandbox/s/a01.png`. */
  key: string;
  /** It gives an object of the bucket another key, and brings no bytes. */
  copies: boolean;
  /** The hash by which the store checks a part. */
  md5: string | undefined;
}

/** What becomes of it: it is served, or refused with a status; it may be made to wait before, or for its answer. */
type Becomes = "serve" | number | { served: () => void };
export type BucketScript = (asked: AskedOfBucket) => Becomes | Promise<Becomes>;

export interface BucketFront {
  env: Record<string, string>;
  asked: AskedOfBucket[];
}

/**
 * Stands before the S3 server that `env` reaches. `served` of a script is called once the server has done what was asked,
 * and the answer is never given.
 */
export async function bucketFront(
  env: Record<string, string>,
  script: BucketScript = () => "serve",
): Promise<BucketFront> {
  const asked: AskedOfBucket[] = [];
  const agent = new Agent();
  const server = createServer((request, reply) => {
    const { method = "", headers, url = "" } = request;
    const key = decodeURIComponent(url.split("?")[0] ?? "").replace(/^\/[^/]+\/?/, "");
    const now = {
      method,
      key,
      copies: headers["x-amz-copy-source"] !== undefined,
      md5: headers["content-md5"]?.toString(),
    };
    asked.push(now);
    const act = async () => {
      const what = await script(now);
      if (typeof what === "number") {
        request.resume();
        return void reply.writeHead(what).end();
      }
      const passed = request.pipe(onward(`${env["AWS_ENDPOINT_URL"]}${url}`, { method, headers, agent }));
      const [answer] = (await once(passed, "response")) as [IncomingMessage];
      if (what === "serve")
        return void answer.pipe(reply.writeHead(answer.statusCode ?? 500, answer.headers));
      await once(answer.resume(), "end");
      what.served();
    };
    act().catch(() => reply.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    agent.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { env: { ...env, AWS_ENDPOINT_URL: `http://127.0.0.1:${port}` }, asked };
}
