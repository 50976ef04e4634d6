import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { Random } from "../../clock.js";
import { answerClientErrors, headerBytesMax, unreadable } from "../../service/http/http.js";
import { type ServedPageOptions, servedPageApp } from "./app.js";

export interface RunningPage {
  /** The page's address, which grants access. */
  link: string;
  close(): Promise<void>;
}

/**
 * Serves the page of a service on a port of its own, so that it is on the loopback interface alone whatever the service listens on:
 * neither another machine nor a proxy in front of the service reaches it.
 */
export async function servePage({
  random,
  ...options
}: Omit<ServedPageOptions, "token"> & { random: Random }): Promise<RunningPage> {
  const token = `${random.uuid()}${random.uuid()}`.replaceAll("-", "");
  const app = new Hono().route("/dashboard", servedPageApp({ ...options, token }));
  const settings = { maxHeaderSize: headerBytesMax, requireHostHeader: false };
  const server = createServer(settings, getRequestListener(app.fetch, { errorHandler: unreadable }));
  answerClientErrors(server);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => resolve());
  });
  const { port } = server.address() as AddressInfo;
  return {
    link: `http://127.0.0.1:${port}/dashboard?token=${token}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
