import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

export interface TestProxy {
  /** `127.0.0.1:PORT` */
  host: string;
  /** The hosts that tunnels were asked for, in order, as `host:port`. */
  tunnels: string[];
  /** The logins that came with them. */
  logins: (string | undefined)[];
  close(): Promise<void>;
}

/** What a proxy does with a request for a tunnel: open it to a port of this machine, or answer with a status. */
type Answer = { to: number } | { status: number } | "hang up" | "keep silent";

/** A real proxy on loopback. It opens tunnels and nothing else. */
export async function startProxy(
  answer: (host: string) => Answer,
  passes: (bytes: Buffer) => void = () => {},
): Promise<TestProxy> {
  const tunnels: string[] = [];
  const logins: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((_, reply) => reply.writeHead(405).end());
  server.on("connection", keep);
  server.on("connect", (request, socket: Socket) => {
    tunnels.push(request.url ?? "");
    logins.push(request.headers["proxy-authorization"]);
    const how = answer(request.url ?? "");
    if (how === "hang up") return socket.destroy();
    if (how === "keep silent") return;
    if ("status" in how) return socket.end(`HTTP/1.1 ${how.status} No\r\ncontent-length: 0\r\n\r\n`);
    const far = connect(how.to, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      for (const each of [far, socket]) each.on("data", passes);
      far.pipe(socket).pipe(far);
    });
    keep(far);
    far.on("close", () => socket.destroy());
    socket.on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    tunnels,
    logins,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
