import { writeFileSync } from "node:fs";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { FaultPlanSettings } from "../../src/sandbox/faults/plan.js";
import { type Place, type Running, start } from "../e2e/process.js";
import { readLedger, type TaskOnRecord } from "./ledger.js";

/**
 * The service: `bulkgen sandbox` as a process of its own, with its state in a file and a port that it keeps when it is
 * killed and started again.
 */
export class Service {
  private running: Running | null = null;
  private proxy: Server | null = null;
  /** Requests that were refused, if they are counted. */
  refused = 0;
  private port = 0;
  url = "";
  env: Record<string, string> = {};

  constructor(
    private readonly place: Place,
    private faults: FaultPlanSettings | null,
    private readonly account = { plan: "Enterprise", credits: 10_000 },
    /** How long tasks take, in ms. */
    private readonly taskMs = "10-60",
  ) {}

  static async start(place: Place, faults: FaultPlanSettings | null = null): Promise<Service> {
    const service = new Service(place, faults);
    await service.start();
    return service;
  }

  start(): Promise<void> {
    const { plan, credits } = this.account;
    return this.up(["--plan", plan, "--credits", `${credits}`]);
  }

  /** Has the requests pass through this process, which counts those that are refused for the plan's limit. */
  async count429(): Promise<void> {
    const { port, hostname } = new URL(this.url);
    this.proxy = createServer((asked, reply) => {
      const { method, url: path, headers } = asked;
      const passed = request({ port, hostname, method, path, headers }, (answer) => {
        if (answer.statusCode === 429) this.refused++;
        reply.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(reply);
      });
      passed.once("error", () => reply.destroy());
      asked.pipe(passed);
    });
    await new Promise<void>((ready) => this.proxy?.listen(0, "127.0.0.1", ready));
    this.env["BULKGEN_BASE_URL"] = `http://127.0.0.1:${(this.proxy.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.proxy?.closeAllConnections();
    this.proxy?.close();
  }

  /** Every task that it has on record, in the order in which they were made. */
  ledger(): TaskOnRecord[] {
    return readLedger(this.stateFile);
  }

  get pid(): number {
    return this.running?.pid ?? 0;
  }

  /** Resolves when it has dealt with what had reached it: on a busy machine that takes a while. */
  async catchUp(): Promise<void> {
    await (await fetch(this.url)).arrayBuffer();
  }

  signal(name: NodeJS.Signals): void {
    this.running?.signal(name);
  }

  async kill(): Promise<void> {
    this.running?.signal("SIGKILL");
    await this.running?.ended;
  }

  /** Kills it and starts it again on the same port and state; from then on without faults or on another plan, if so asked. */
  async restart({ wellBehaved = false, plan }: { wellBehaved?: boolean; plan?: string } = {}): Promise<void> {
    await this.kill();
    if (wellBehaved) this.faults = null;
    await this.up(plan === undefined ? [] : ["--plan", plan]);
  }

  /** The bytes of every output of a task, as it hands them out. */
  async outputsOf(taskId: string): Promise<Buffer[]> {
    const headers = { authorization: `Bearer ${this.env["BULKGEN_API_KEY"]}` };
    const answer = await fetch(`${this.url}/api/v1/task/${taskId}`, { headers });
    const task = (await answer.json()) as { output_urls: string[] | null };
    const files = (task.output_urls ?? []).map(async (url) =>
      Buffer.from(await (await fetch(url)).arrayBuffer()),
    );
    return Promise.all(files);
  }

  private get stateFile(): string {
    return join(this.place.root, "service.db");
  }

  private async up(flags: readonly string[]): Promise<void> {
    const faultFile = join(this.place.root, "faults.json");
    if (this.faults) writeFileSync(faultFile, JSON.stringify(this.faults));
    this.running = start(
      this.place,
      [
        "sandbox",
        "--json",
        "--state",
        this.stateFile,
        "--port",
        String(this.port),
        "--task-ms",
        this.taskMs,
        ...(this.faults ? ["--faults", faultFile] : []),
        ...flags,
      ],
      // A round takes as long as the machine lets it.
      { cwd: this.place.root, lifeMs: 0 },
    );
    const [line] = await this.running.prints(/^\{.*\}\n/);
    const { url, key } = JSON.parse(line) as { url: string; key: string };
    this.url = url;
    this.port = Number(new URL(url).port);
    this.env = { BULKGEN_BASE_URL: url, BULKGEN_API_KEY: key };
  }
}
