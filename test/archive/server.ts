import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

export interface TestServer {
  url: string;
  /** What was asked, in order. */
  requests: IncomingMessage[];
  /** Replaces the behaviour. */
  answer(listener: RequestListener): void;
  close(): Promise<void>;
}

/** A real server on loopback. */
export async function serve(first: RequestListener = (_, reply) => reply.end()): Promise<TestServer> {
  let listener = first;
  const requests: IncomingMessage[] = [];
  const server = createServer((request, reply) => {
    requests.push(request);
    listener(request, reply);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer(next) {
      listener = next;
    },
    close() {
      server.closeAllConnections();
      return new Promise((done) => server.close(() => done()));
    },
  };
}
