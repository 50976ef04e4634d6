/** The service of the throughput bench behind a proxy that tells of each request, and what a process has used until now. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { startService } from "./setup.mjs";

export async function startWatchedService() {
  const upstream = await startService();
  let onRequest = () => {};
  const proxy = createServer((incoming, reply) => {
    onRequest(incoming);
    const { method, headers } = incoming;
    const onward = request(`${upstream}${incoming.url}`, { method, headers }, (answer) => {
      reply.writeHead(answer.statusCode, answer.headers);
      answer.pipe(reply);
    });
    onward.on("error", () => reply.destroy());
    incoming.pipe(onward);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return {
    url: `http://127.0.0.1:${proxy.address().port}`,
    /** Calls the listener with each request from now on, and no other listener. */
    listen: (listener) => {
      onRequest = listener;
    },
    stop: () => {
      proxy.closeAllConnections();
      proxy.close();
    },
  };
}

/** Processor time (ms) and greatest memory of a process until now. */
export function usedBy(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  // In hundredths of a second.
  return { cpuMs: 10 * (Number(fields[11]) + Number(fields[12])), megabytes: (Number(peak) * 1024) / 1e6 };
}
