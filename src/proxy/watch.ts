import diagnostics from "node:diagnostics_channel";

/** Whether a request has left this machine, through a proxy or not. No error code tells it. */

export interface RequestWatch {
  sent: boolean;
}

/**
 * undici creates its request object while `request()` runs, before any await, so the first object announced during the
 * call is ours; a second one asks a proxy for a tunnel. Later undici announces that the headers of our object were sent.
 */
const watches = new WeakMap<object, RequestWatch>();
let starting: RequestWatch | null = null;

diagnostics.subscribe("undici:request:create", (message) => {
  if (starting) watches.set((message as { request: object }).request, starting);
  starting = null;
});
diagnostics.subscribe("undici:client:sendHeaders", (message) => {
  const watch = watches.get((message as { request: object }).request);
  if (watch) watch.sent = true;
});

/** Starts a request, and notes in `watch` when it leaves. */
export function watched<Result>(watch: RequestWatch, start: () => Result): Result {
  starting = watch;
  try {
    return start();
  } finally {
    starting = null;
  }
}
