import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { type Place, startProcess } from "../e2e/process.js";

/**
 * Hosts as network namespaces of Linux, each with a name, a loopback and links of its own. The process that makes them is
 * the machine in the middle, which has the database, the service and the shared disk. It is started by `inOwnNetwork`:
 * nothing of it is seen outside, nothing outside is reached, and all of it is gone with its last process.
 */
const networks = { database: "10.213.1", service: "10.213.2" } as const;
export type Network = keyof typeof networks;

/** The address of the machine in the middle. */
function middle(network: Network): string {
  return `${networks[network]}.1`;
}

export const databaseHost = middle("database");

/** Who is not root is given the right to make networks in a namespace of users, and keeps its number there. */
const ownNetwork = [
  ...(userInfo().uid === 0 ? [] : ["--user", "--map-current-user", "--keep-caps"]),
  "--net",
];

/** Why this system has no hosts for us; null if it has. */
export function whyNoHosts(): string | null {
  const links = "ip link add name near type veth peer name far && ip link add name both type bridge";
  const inside = ["unshare", "--net", "--uts", "sh", "-c", `hostname one && ${links}`];
  const { status, stderr, error } = spawnSync("unshare", [...ownNetwork, ...inside], { encoding: "utf8" });
  return status === 0 ? null : (error?.message ?? stderr.trim());
}

/** Runs a program of Node in a network of its own; its exit code. */
export async function inOwnNetwork(program: string): Promise<number> {
  const child = spawn("unshare", [...ownNetwork, process.execPath, program], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  const [code] = (await once(child, "exit")) as [number | null];
  return code ?? 1;
}

/** Makes the machine in the middle, to which hosts are tied. */
export function makeMiddle(): void {
  ip("link set lo up");
  for (const network of Object.keys(networks) as Network[]) {
    ip(`link add name ${network} type bridge`);
    ip(`addr add ${middle(network)}/24 dev ${network}`);
    ip(`link set ${network} up`);
  }
}

/** Lets hosts reach a service that listens on loopback here. */
export async function openService(url: string): Promise<() => void> {
  const relay = startProcess(process.execPath, relayWords(middle("service"), "127.0.0.1", url), lasting);
  await relay.prints(/is ready/);
  return () => relay.signal("SIGKILL");
}

let hosts = 0;

export class Host {
  private constructor(
    readonly name: string,
    private readonly number: number,
    private readonly pid: number,
    /** Of its own disk. */
    readonly env: Record<string, string>,
    /** Takes it away. */
    readonly end: () => void,
  ) {}

  /** A host with links to the database and to the service, which it finds at the address that it has in the middle. */
  static async start(name: string, place: Place, serviceUrl: string): Promise<Host> {
    const setUp = 'hostname "$0" && ip link set lo up && exec "$@"';
    const relay = [process.execPath, ...relayWords("127.0.0.1", middle("service"), serviceUrl)];
    const holder = startProcess("unshare", ["--net", "--uts", "sh", "-c", setUp, name, ...relay], lasting);
    await holder.prints(/is ready/);
    const disk = (folder: string) => join(place.root, name, folder);
    const env = { HOME: disk("home"), XDG_STATE_HOME: disk("state") };
    for (const folder of Object.values(env)) mkdirSync(folder, { recursive: true });
    const host = new Host(name, ++hosts, holder.pid, env, () => holder.signal("SIGKILL"));
    for (const network of Object.keys(networks) as Network[]) host.tie(network);
    return host;
  }

  /** The words that start a program there. */
  get by(): readonly string[] {
    return ["nsenter", `--target=${this.pid}`, "--net", "--uts"];
  }

  /** Nothing passes any more, in either direction, and nobody is told. */
  cut(...which: Network[]): void {
    for (const network of which) ip(`link set ${this.link(network)} nomaster`);
  }

  mend(...which: Network[]): void {
    for (const network of which) ip(`link set ${this.link(network)} master ${network}`);
  }

  private link(network: Network): string {
    return `${network}-${this.number}`;
  }

  private tie(network: Network): void {
    ip(`link add name ${this.link(network)} type veth peer name ${network} netns ${this.pid}`);
    this.mend(network);
    ip(`link set ${this.link(network)} up`);
    const [program = "", ...words] = this.by;
    for (const act of [
      `addr add ${networks[network]}.${this.number + 1}/24 dev ${network}`,
      `link set ${network} up`,
    ])
      execFileSync(program, [...words, "ip", ...act.split(" ")]);
  }
}

const lasting = { cwd: "/", env: { PATH: process.env["PATH"] ?? "" }, lifeMs: 0 };

function relayWords(here: string, there: string, url: string): string[] {
  return [join(import.meta.dirname, "relay.js"), here, there, new URL(url).port];
}

function ip(words: string): void {
  execFileSync("ip", words.split(" "));
}
