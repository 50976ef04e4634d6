import type { Clock, Random } from "../../clock.js";
import type { ProviderKind } from "../../providers/kind.js";
import {
  type Accepted,
  type Done,
  JobRefused,
  type Provider,
  type ProviderJob,
  type ProviderSettings,
} from "../../providers/provider.js";
import type { Proxies } from "../../proxy/variables.js";
import { ProviderLine } from "./line.js";
import { withTimeout } from "./waits.js";

export interface UpstreamParts {
  clock: Clock;
  random: Random;
  /** The folder of the models file. */
  modelsFolder: string;
  kinds: readonly ProviderKind[];
  key: (settings: ProviderSettings) => string | null;
  env: Readonly<Record<string, string>>;
  proxies: Proxies | null;
}

/** How long a provider may take for an answer that costs nothing. */
const askTimeoutMs = 60_000;

/** The providers, each with its line of jobs, and the two ways to speak to one: a request that may cost money, and one that does not. */
export class Upstreams {
  private readonly lines = new Map<string, ProviderLine>();
  private readonly providers = new Map<string, Provider>();
  /** How many requests that may be paid for have no answer yet. */
  unanswered = 0;

  constructor(
    private readonly parts: UpstreamParts,
    private readonly closing: AbortSignal,
  ) {}

  lineOf(settings: ProviderSettings): ProviderLine {
    const { name, perMinute, addresses } = settings;
    // Several machines do so many each.
    const concurrency = settings.concurrency * Math.max(1, addresses.length);
    const found = this.lines.get(name);
    if (found) {
      found.concurrency = concurrency;
      return found;
    }
    const made = new ProviderLine(concurrency, perMinute, this.parts.clock, this.closing);
    this.lines.set(name, made);
    return made;
  }

  providerOf(settings: ProviderSettings): Provider {
    const known = JSON.stringify(settings);
    const found = this.providers.get(known);
    if (found) return found;
    const kind = this.parts.kinds.find(({ name }) => name === settings.kind);
    if (!kind) throw new Error(`there is no kind of provider ${settings.kind}`);
    const { clock, random, modelsFolder: folder, env, proxies } = this.parts;
    const key = () => this.parts.key(settings);
    const made = kind.open(settings, { clock, random, folder, env, proxies, key });
    this.providers.set(known, made);
    return made;
  }

  /** Asks a provider something that costs nothing. */
  ask<Answer>(request: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    return withTimeout(this.parts.clock, askTimeoutMs, (late) =>
      request(AbortSignal.any([this.closing, late])),
    );
  }

  /** Sends a job once. Resolves with the provider's answer, or with what was thrown instead. */
  submit(
    provider: Provider,
    job: ProviderJob,
    { timeoutMs, kind }: ProviderSettings,
  ): Promise<Done | Accepted | Error> {
    return withTimeout(this.parts.clock, timeoutMs, async (late) => {
      // What may run again is interrupted when the service ends; what may not be is waited for.
      const mayRepeat = provider.repeatable === "yes";
      const signal = mayRepeat ? AbortSignal.any([late, this.closing]) : late;
      if (!mayRepeat) this.unanswered++;
      try {
        return await provider.submit(job, signal);
      } catch (error) {
        if (mayRepeat && late.aborted && !(error instanceof JobRefused))
          return new JobRefused(
            "provider",
            `the ${kind === "command" ? "program" : "job"} took longer than ${Math.round(timeoutMs / 1_000)} s`,
            false,
          );
        return error instanceof Error ? error : new Error(String(error));
      } finally {
        if (!mayRepeat) this.unanswered--;
      }
    });
  }

  /** Forgets the jobs that only wait for a place. */
  clear(): void {
    for (const line of this.lines.values()) line.clear();
  }

  /** Resolves when no job is under way at a provider. */
  async idle(): Promise<void> {
    await Promise.all([...this.lines.values()].map((line) => line.idle()));
  }

  async close(): Promise<void> {
    for (const provider of this.providers.values()) await provider.close?.();
  }
}
