import type { ServerResponse } from "node:http";

/** An answer that does not simply arrive. */
export interface FileDelivery {
  status: number;
  headers: Record<string, string>;
  bytes: Uint8Array;
  /** After so many bytes the connection breaks; null when it holds. */
  breaksAfter: number | null;
  /** After so many bytes nothing comes for a while. */
  pause: { after: number; ms: number } | null;
  bytesPerSecond: number | null;
}

/** Writes an answer piece by piece, as slowly and as far as it is meant to come. Resolves when no more will be sent. */
export async function deliver(
  outgoing: ServerResponse,
  delivery: FileDelivery,
  sleep: (ms: number) => Promise<void>,
): Promise<void> {
  const { status, headers, bytes, breaksAfter, pause, bytesPerSecond } = delivery;
  const end = breaksAfter ?? bytes.byteLength;
  outgoing.writeHead(status, { ...headers, "Content-Length": String(bytes.byteLength) });
  outgoing.flushHeaders();
  const steps = [pause?.after ?? 0, end].filter((to) => to > 0 && to <= end);
  let sent = 0;
  for (const step of steps) {
    while (sent < step) {
      const to = bytesPerSecond === null ? step : Math.min(step, sent + Math.ceil(bytesPerSecond / 10));
      if (!(await wrote(outgoing, bytes.subarray(sent, to)))) return;
      sent = to;
      if (bytesPerSecond !== null) await sleep(100);
    }
    if (sent === pause?.after) await sleep(pause.ms);
  }
  if (breaksAfter === null) outgoing.end();
  else outgoing.destroy();
}

/** Whether the bytes went out, as opposed to nobody being there any more. */
function wrote(outgoing: ServerResponse, bytes: Uint8Array): Promise<boolean> {
  if (outgoing.destroyed) return Promise.resolve(false);
  return new Promise((resolve) => {
    const gone = () => resolve(false);
    outgoing.once("close", gone);
    outgoing.write(bytes, (error) => {
      outgoing.off("close", gone);
      resolve(!error);
    });
  });
}
