import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { launchIn } from "../../../launch.js";
import { boundedLines, tooLongAnswer } from "../../../mcp/bounded-lines.js";
import { agentServer } from "../../../mcp/server.js";
import type { McpFlags } from "../../../options/serve.js";
import { ownVersion } from "../../../package-file.js";
import { withDatabase, workspaceToServe } from "../../settings/workspace.js";
import type { Call } from "../call.js";

/**
 * Serves the tools of a workspace on standard input and output until the client disconnects. Runs that were started
 * continue.
 */
export async function mcp({ flags, machine }: Call<McpFlags>): Promise<undefined> {
  const { stdin, stdout, stderr, clock, program, env } = machine;
  const { root } = workspaceToServe(flags, machine);
  const sandbox = flags.sandbox ?? false;
  const signal = machine.interrupt();
  const lines = stdin.pipe(boundedLines(() => void stdout.write(tooLongAnswer)));
  const transport = new StdioServerTransport(lines, stdout);
  const launch = launchIn(root, program, withDatabase(flags, env));
  const served = serveStdio(() => agentServer({ root, sandbox, launch, clock, version: ownVersion() }), {
    transport,
    onerror: ({ message }) => void stderr.write(`bulkgen: ${message}\n`),
  });
  await new Promise<void>((end) => {
    stdin.once("end", end).once("close", end);
    signal.addEventListener("abort", () => end(), { once: true });
  });
  await served.close();
  // An open pipe would keep the process alive.
  stdin.unpipe(lines).pause();
}
