import { Transform } from "node:stream";

/** The longest message of a client. A path, a prompt and some params have some thousand characters. */
const lineBytesMax = 8 * 2 ** 20;

/**
 * Passes on what a client sends, except for lines that no message has the length of: the protocol's own reader gives up at one,
 * and the server would end. `refused` is called for each of them.
 */
export function boundedLines(refused: () => void): Transform {
  let length = 0;
  let kept: Buffer[] = [];
  return new Transform({
    transform(piece: Buffer, _, done) {
      for (let at = 0; at < piece.length; ) {
        const end = piece.indexOf(0x0a, at);
        const part = piece.subarray(at, end < 0 ? piece.length : end + 1);
        at += part.length;
        length += part.length;
        if (length <= lineBytesMax) kept.push(part);
        else kept = [];
        if (end < 0) continue;
        if (length <= lineBytesMax) this.push(Buffer.concat(kept));
        else refused();
        length = 0;
        kept = [];
      }
      done();
    },
  });
}

/** The answer to a message that is too long: its id is not known. */
export const tooLongAnswer = `${JSON.stringify({
  jsonrpc: "2.0",
  id: null,
  error: {
    code: -32600,
    message: `a message has at most ${lineBytesMax / 2 ** 20} MB; this one was not read`,
  },
})}\n`;
