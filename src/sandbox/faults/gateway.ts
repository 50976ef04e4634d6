import { setMaxListeners } from "node:events";
import { endpoints } from "../../api/endpoints.js";
import type { Clock } from "../../clock.js";
import type { WorldRequest, WorldResponse } from "../../service/answers/answers.js";
import type { FileAnswer } from "../../service/answers/reply.js";
import { type ServiceReply, written } from "../../service/answers/reply.js";
import type { Exchange, FileSending, HttpHandlers } from "../../service/http/http.js";
import { endpointOf } from "../../service/world/route.js";
import { type Course, courseOf } from "./course.js";
import type { DownloadFault, RequestFault } from "./fault.js";
import { sendingUnder, spoiledFile } from "./fault.js";
import type { FaultScript } from "./plan.js";

/** The service behind the gateway. */
export interface Behind {
  api(request: WorldRequest): Promise<WorldResponse>;
  file(path: string, query: Record<string, string>): Promise<FileAnswer | WorldResponse>;
  /** The answer to a URL whose time has come. */
  expired(): WorldResponse;
}

/** The way between callers and the service, with everything that the script lets happen on it. */
export class Gateway implements HttpHandlers {
  private readonly ending = new AbortController();

  constructor(
    private readonly behind: Behind,
    private readonly script: FaultScript,
    private readonly clock: Clock,
  ) {
    // Every slow answer listens to it.
    setMaxListeners(0, this.ending.signal);
  }

  async exchange(request: WorldRequest): Promise<Exchange> {
    const endpoint = endpointOf(request.path);
    const own = endpoint !== undefined && endpoints[endpoint].method === request.method;
    const course = courseOf(own ? (this.script.next(endpoint) as RequestFault | null) : null);
    const { arrivesMs, inside, repliesMs, instead, spoil, cut, bytesPerSecond } = course;
    if (repliesMs === null) return this.unanswered(request, course);
    const arrived =
      arrivesMs === null ? null : await this.behind.api(inside ? { ...request, fault: inside } : request);
    if (repliesMs > 0) await this.sleep(repliesMs);
    const reply = instead ?? (arrived && spoil(written(arrived)));
    return reply ? { reply: this.dated(reply), breaksAt: cut ? 0.5 : null, bytesPerSecond } : "hang up";
  }

  async download(
    path: string,
    query: Record<string, string>,
  ): Promise<ServiceReply | { file: FileAnswer; sending: FileSending }> {
    // A redirected download has met its fault already. Without such a fault the number means nothing.
    const hops = this.script.canCause("download-redirect") ? query["hops"] : undefined;
    if (hops !== undefined && Number(hops) > 0) return redirect(withHops(path, query, Number(hops) - 1));
    const fault = hops === undefined ? (this.script.next("download") as DownloadFault | null) : null;
    if (fault?.kind === "download-expired") return written(this.behind.expired());
    if (fault?.kind === "download-redirect") {
      return redirect(fault.to ?? withHops(path, query, fault.hops - 1));
    }
    const found = await this.behind.file(path, query);
    return "bytes" in found
      ? { file: spoiledFile(found, fault), sending: sendingUnder(fault) }
      : written(found);
  }

  /** Resolves after so long, or when the gateway closes. */
  sleep(ms: number): Promise<void> {
    return this.clock.sleep(ms, this.ending.signal);
  }

  /** Ends all waiting; nothing more will arrive. */
  close(): void {
    this.ending.abort();
  }

  /** Adds the Date header by the service's clock instead of the machine's. */
  private dated({ status, headers, body }: ServiceReply): ServiceReply {
    return { status, headers: { Date: new Date(this.clock.now()).toUTCString(), ...headers }, body };
  }

  private async unanswered(request: WorldRequest, { arrivesMs }: Course): Promise<Exchange> {
    if (arrivesMs === 0) await this.behind.api(request);
    else if (arrivesMs !== null) void this.late(request, arrivesMs);
    return "hang up";
  }

  private async late(request: WorldRequest, delayMs: number): Promise<void> {
    await this.sleep(delayMs);
    if (!this.ending.signal.aborted) await this.behind.api(request);
  }
}

function withHops(path: string, query: Record<string, string>, hops: number): string {
  return `${path}?${new URLSearchParams({ ...query, hops: String(hops) })}`;
}

function redirect(location: string): ServiceReply {
  return { status: 302, headers: { Location: location }, body: "" };
}
