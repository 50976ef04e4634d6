import { connect, createServer } from "node:net";

/**
 * Hands connections to a port on to the same port of another address, byte for byte: `relay.js HERE THERE PORT`. The
 * sandbox listens on loopback alone, and each host has a loopback of its own.
 */
const [here, there, port] = process.argv.slice(2);
const server = createServer((near) => {
  const far = connect(Number(port), there as string);
  near.pipe(far).pipe(near);
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroy());
  }
});
server.listen(Number(port), here, () => console.log("is ready"));
