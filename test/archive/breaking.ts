import type { Download } from "../../src/core/ports/send.js";

/** A download whose connection breaks once so many bytes have come; later ones are left alone. */
export function breakingOnce(download: Download, bytesMax: number): Download {
  let broken = false;
  return async (url, options) => {
    const reply = await download(url, options);
    if (broken || reply.status !== 200) return reply;
    broken = true;
    async function* body(): AsyncGenerator<Uint8Array> {
      let bytes = 0;
      for await (const piece of reply.body) {
        const rest = piece.subarray(0, bytesMax - bytes);
        bytes += rest.length;
        yield rest;
        if (bytes === bytesMax) throw new Error("other side closed");
      }
    }
    return { ...reply, body: body() };
  };
}
