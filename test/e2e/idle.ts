import { subscribe } from "node:diagnostics_channel";
import { createRequire } from "node:module";
import type { Worker } from "node:worker_threads";

/**
 * Whether anything real is in progress in this process: a request, a transfer, a job of a worker thread, a child
 * process, a file operation or the decoding of a picture. While something is, no time may be skipped, or the limits on its duration would end it.
 * So many requests are `held` by the tests themselves.
 */
export function isIdle(held: number): boolean {
  return (
    requests.size <= held &&
    jobs === 0 &&
    !isDecoding() &&
    !process.getActiveResourcesInfo().some((name) => real.has(name))
  );
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

/** Node does not list the work of sharp in this process; its own machine code counts it, once it is loaded. */
function isDecoding(): boolean {
  sharp ??= Object.values(loaded).find((module) =>
    /[\\/]sharp-[^\\/]*\.node$/.test(module?.id ?? ""),
  )?.exports;
  const { queue, process: working } = sharp?.counters() ?? { queue: 0, process: 0 };
  return queue + working > 0;
}

const { cache: loaded } = createRequire(import.meta.url);
let sharp: { counters(): { queue: number; process: number } } | undefined;

/**
 * HTTP requests that have no complete answer yet. Every command in this process sends through undici. They are kept by
 * identity, because a request that is cut after its answer was complete reports its end twice.
 */
const requests = new Set<unknown>();
const requestOf = (message: unknown) => (message as { request: unknown }).request;
subscribe("undici:request:create", (message) => {
  requests.add(requestOf(message));
});
for (const end of ["undici:request:trailers", "undici:request:error"]) {
  subscribe(end, (message) => {
    requests.delete(requestOf(message));
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
