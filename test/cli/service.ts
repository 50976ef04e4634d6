import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const me = {
  user: { id: "6f1c8a52-1111-4222-8333-444455556666", email: "ada@example.com", name: "Ada" },
  credits: { balance: 250.5, used_this_key: 12 },
  subscription: {
    status: "active",
    plan: "Pro",
    credits_per_month: 2000,
    billing_interval: "month",
    current_period_end: "2026-12-01T00:00:00.000Z",
    cancel_at_period_end: false,
  },
  api_key: { id: "key-1", name: "studio", requests_count: 7 },
};

/** A service that answers every request as told, and remembers the keys it was shown. */
export async function answering(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ url: string; keys: (string | undefined)[]; close(): Promise<void> }> {
  const keys: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    keys.push(request.headers.authorization);
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    keys,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export function json(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
