import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import { errorAnswer, SandboxRefusal } from "../answers/answers.js";
import { written } from "../answers/reply.js";

/** The most bytes that a request's line and headers may have together. */
export const headerBytesMax = 16 * 1024;

/** Answers what Node cannot read as a request in the shape of all errors, and hangs up. */
export function answerClientErrors(server: Server): void {
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const { status, headers, body } = written(errorAnswer(refusalOf(error.code)));
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const length = Buffer.byteLength(body);
    socket.end(
      `HTTP/1.1 ${status} Refused\r\n${lines.join("")}Content-Length: ${length}\r\nConnection: close\r\n\r\n${body}`,
    );
  });
}

/** The answer to a request that HTTP allows, but whose address or host cannot be read. */
export function unreadable(): Response {
  const { status, headers, body } = written(errorAnswer(refusalOf(undefined)));
  return new Response(body, { status, headers });
}

function refusalOf(code: string | undefined): SandboxRefusal {
  if (code === "HPE_HEADER_OVERFLOW") {
    return new SandboxRefusal(
      431,
      "HEADERS_TOO_LARGE",
      `The headers may have ${headerBytesMax} bytes at most.`,
    );
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new SandboxRefusal(408, "REQUEST_TIMEOUT", "The request took too long.");
  return new SandboxRefusal(400, "INVALID_REQUEST", "This request cannot be read.");
}
