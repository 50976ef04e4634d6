import { subscribe } from "node:diagnostics_channel";
import type { Worker } from "node:worker_threads";

/**
 * Whether anything real is under way in this process: a request, a transfer, a job of a worker thread, a child process or
 * a file operation. While something is, no time may be skipped, or the limits on its duration would end it.
 */
export function isIdle(): boolean {
  return requests === 0 && jobs === 0 && !process.getActiveResourcesInfo().some((name) => real.has(name));
}

const real = new Set([
  "FSReqCallback",
  "FSReqPromise",
  "GetAddrInfoReqWrap",
  "ProcessWrap",
  "ShutdownWrap",
  "TCPConnectWrap",
  "WriteWrap",
]);

/** HTTP requests that have no complete answer yet. Every command in this process sends through undici. */
let requests = 0;
subscribe("undici:request:create", () => {
  requests++;
});
for (const end of ["undici:request:trailers", "undici:request:error"]) {
  subscribe(end, () => {
    requests--;
  });
}

/** Jobs that worker threads have and have not answered: the threads of bulkgen answer each message with one. */
let jobs = 0;
subscribe("worker_threads", (message) => {
  const { worker } = message as { worker: Worker };
  const post = worker.postMessage.bind(worker);
  let own = 0;
  worker.postMessage = (...args: Parameters<Worker["postMessage"]>) => {
    own++;
    jobs++;
    post(...args);
  };
  const answered = (count: number) => {
    own -= count;
    jobs -= count;
  };
  worker.on("message", () => answered(Math.min(1, own)));
  worker.on("exit", () => answered(own));
});
