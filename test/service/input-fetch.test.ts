import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { fetchInput, inputBytesMax } from "../../src/service/inputs/fetch.js";

let server: Server;

/** A server of one answer, and its address. */
async function serving(answer: RequestListener): Promise<string> {
  server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/input.png`;
}

describe("an input by URL", () => {
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  it("is fetched through a redirect, without any credentials", async () => {
    const asked: unknown[] = [];
    const address = await serving((request, response) => {
      asked.push(request.headers.authorization, request.headers["x-api-key"]);
      if (request.url === "/input.png") response.writeHead(302, { location: "/real.png" }).end();
      else response.end("bytes");
    });
    expect(Buffer.from(await fetchInput(address, undefined)).toString()).toBe("bytes");
    expect(asked).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("is not fetched where the address rule forbids it, also behind a redirect", async () => {
    const address = await serving((_, response) => {
      response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data" }).end();
    });
    await expect(fetchInput(address, undefined)).rejects.toThrow("must be https, or http on this machine");
  });

  it("is not chased through redirects without end", async () => {
    const address = await serving((_, response) => {
      response.writeHead(302, { location: "/input.png" }).end();
    });
    await expect(fetchInput(address, undefined)).rejects.toThrow("redirects more than 3 times");
  });

  it("that is not there is named with its status", async () => {
    const address = await serving((_, response) => {
      response.writeHead(404).end();
    });
    await expect(fetchInput(address, undefined)).rejects.toThrow(`${address} answered 404`);
  });

  it("is cut off at the size limit, whatever length it announces", async () => {
    const block = Buffer.alloc(1024 * 1024);
    const address = await serving((_, response) => {
      response.on("error", () => {});
      let left = inputBytesMax / block.length + 8;
      const more = () => {
        while (left-- > 0) if (!response.write(block)) return;
        response.end();
      };
      response.on("drain", more);
      more();
    });
    await expect(fetchInput(address, undefined)).rejects.toThrow("is larger than");
  });
});

describe("an input by path", () => {
  it("is refused where no folder was given for inputs", async () => {
    await expect(fetchInput("a.png", undefined)).rejects.toThrow("takes none");
  });
});
