import {
  type Accepted,
  type Cost,
  type Done,
  JobLater,
  type JobOutput,
  JobRefused,
  type Json,
  type JsonObject,
  type Provider,
  type ProviderJob,
  type ProviderPlace,
  type ProviderSettings,
  type Running,
  type Sent,
} from "../provider.js";
import { fromProvider, openSender, type ProviderRequest, retryAfterMs, type Sender } from "../send.js";
import {
  type CancelPart,
  type CostPlace,
  type Description,
  type ErrorPlaces,
  type HttpModel,
  isTemplate,
  msOf,
  type PollPart,
  type Rule,
  readModel,
  type SubmitPart,
  type Where,
} from "./description.js";
import { fitOf, timeOf } from "./listing.js";
import { outputsOf } from "./outputs.js";
import { find, findText } from "./query.js";
import { formOf, namesOf } from "./request.js";
import { fill, fillAddress, fillText, merged, namesWithin, type TemplateValues } from "./template.js";
import {
  type AnswerWithJson,
  costOf,
  isGood,
  type Judge,
  oddity,
  type Ruling,
  readingOf,
  textAt,
  throwVerdict,
  usualRules,
  verdict,
  words,
} from "./verdict.js";

/** What is known of an accepted job. It holds the rules of its model, which may change while it runs. */
interface Resume {
  ref: string;
  /** Where the job was sent. */
  origin: string;
  get: string;
  result: string | null;
  cancel: string | null;
  poll: PollPart;
  cancelPart: CancelPart | null;
  error: ErrorPlaces | null;
  headers: Record<string, string>;
  cost: Cost | null;
}

/** A submit that is ready to be sent. */
interface Prepared {
  part: SubmitPart;
  model: HttpModel;
  /** What the model's request says, with its values. */
  request: JsonObject;
  names: TemplateValues;
  question: ProviderRequest;
}

/** Where the name of an answer at once stands, unless a description says it. */
const usualRefs: readonly Where[] = [{ header: "x-request-id" }, { header: "request-id" }];

const askMsMax = 60_000;
/** How long to wait when a provider that is asked for a job is overloaded. */
const busyMs = 30_000;
/** How far the provider's clock may be from ours (ms). */
const skewMs = 60_000;
const pagesMax = 50;

/** A provider that is described as data: one submit, and as many polls as it takes. */
export class HttpProvider implements Provider {
  readonly repeatable: "by id" | "no";
  private readonly sender: Sender;

  constructor(
    private readonly settings: ProviderSettings,
    private readonly place: ProviderPlace,
    private readonly description: Description,
    private readonly needsKey: boolean,
  ) {
    this.sender = openSender({ ...place, key: () => this.key() });
    this.repeatable = description.find === undefined ? "no" : "by id";
  }

  async submit(job: ProviderJob, signal: AbortSignal): Promise<Done | Accepted> {
    const prepared = await this.ready(job);
    const reading = readingOf(await this.sender.pay(prepared.question, signal));
    const { part, model } = prepared;
    const poll = model.poll;
    if (isGood(reading)) {
      const done =
        poll === undefined ? this.doneAtOnce(reading, prepared) : this.accepted(reading, prepared, poll);
      if (done !== null) return done;
    }
    const judged = verdict(reading, [...(model.errors ?? []), ...usualRules], this.judge(model.error));
    if (judged !== null) throwVerdict(judged);
    if (isGood(reading) && poll === undefined && saysNone(reading, part.outputs))
      throw new JobRefused("provider", `${this.settings.name} made nothing`);
    const expected = poll === undefined ? `anything at ${part.outputs}` : "the job's name or address";
    throw new Error(`${this.settings.name} ${oddity(reading, expected)}`);
  }

  async poll(resume: Json, signal: AbortSignal): Promise<Done | Running> {
    const known = resume as unknown as Resume;
    const reading = await this.ask("GET", known.get, known, signal);
    const { running, done, failed, moderated, note, cost } = known.poll;
    const { status = done.length > 0 ? "status" : undefined } = known.poll;
    const place = known.poll.result;
    const isResult = known.result === null && place === undefined;
    if (!isGood(reading)) return this.notYet(reading, known, isResult);
    const afterMs = retryAfterMs(reading.headers, this.place.clock.now());
    const stillRunning = (): Running => {
      const said = note === undefined ? null : findText(reading.json, note);
      return {
        running: true,
        ...(afterMs === null ? {} : { afterMs }),
        ...(said === null ? {} : { note: fromProvider(said, this.key()) }),
      };
    };
    if (reading.status === 202 && status === undefined) return stillRunning();
    if (status !== undefined) {
      const word = findText(reading.json, status);
      if (word === null) throw this.odd(reading, `a status at ${status}`);
      if (isAmong(word, running)) return stillRunning();
      if (isAmong(word, moderated)) throw this.refusal(reading, known, "moderation", word);
      if (isAmong(word, failed)) throw this.refusal(reading, known, "provider", word);
      if (!isAmong(word, done))
        throw new Error(
          `${this.settings.name} says "${fromProvider(word, this.key())}", which no word of the description means`,
        );
    }
    const address =
      known.result ?? (place === undefined ? null : this.addressIn(place, reading, {}, known.get));
    if (place !== undefined && address === null) throw this.odd(reading, `an address at ${place}`);
    const result = address === null ? reading : await this.ask("GET", address, known, signal);
    if (result.status === 202) return stillRunning();
    if (!isGood(result)) return this.notYet(result, known, true);
    const outputs = outputsOf(result, known.poll.outputs);
    const price = costOf(result, cost) ?? costOf(reading, cost) ?? known.cost;
    if (outputs !== null && outputs.length > 0)
      return { outputs, ref: known.ref, ...(price === null ? {} : { cost: price }) };
    const judged = verdict(result, known.poll.errors, this.judge(known.poll.error ?? known.error));
    if (judged !== null) throwPolled(judged);
    if (outputs !== null) throw new JobRefused("provider", `${this.settings.name} made nothing`);
    throw this.odd(result, `files at ${known.poll.outputs}`);
  }

  async cancel(resume: Json, signal: AbortSignal): Promise<{ billed: boolean | null }> {
    const known = resume as unknown as Resume;
    if (known.cancel === null || known.cancelPart === null)
      throw new Error(`${this.settings.name} cannot cancel this job`);
    const reading = await this.ask(known.cancelPart.method, known.cancel, known, signal);
    if (!isGood(reading)) throw new Error(words(reading, this.judge(known.error)));
    const { billed } = known.cancelPart;
    const said = billed === undefined ? null : find(reading.json, billed);
    return { billed: typeof said === "boolean" ? said : null };
  }

  private key(): string | null {
    return this.place.key();
  }

  private judge(places: ErrorPlaces | undefined | null): Judge {
    return {
      provider: this.settings.name,
      places: places ?? undefined,
      now: this.place.clock.now(),
      key: this.key(),
    };
  }

  private odd(reading: AnswerWithJson, expected: string): Error {
    return new Error(`${this.settings.name} ${oddity(reading, expected)}`);
  }

  /** The files of an answer at once; null if there are none. */
  private doneAtOnce(reading: AnswerWithJson, { part }: Prepared): Done | null {
    const outputs = outputsOf(reading, part.outputs);
    if (outputs === null || outputs.length === 0) return null;
    const named = part.ref === undefined ? usualRefs : [part.ref];
    const ref = named.map((where) => textAt(reading, where)).find((text) => text !== null) ?? null;
    const cost = costOf(reading, part.cost);
    return { outputs, ...(ref === null ? {} : { ref }), ...(cost === null ? {} : { cost }) };
  }

  private accepted(reading: AnswerWithJson, prepared: Prepared, poll: PollPart): Accepted | null {
    const { part, model, names, question } = prepared;
    const ref = textAt(reading, part.ref ?? "id");
    if (ref === null) return null;
    const at = (place: string | undefined) =>
      place === undefined ? null : this.addressIn(place, reading, { ...names, ref }, question.url.href);
    const get = at(part.poll) ?? at(poll.get);
    if (get === null) return null;
    return acceptedJob({
      ref,
      origin: question.url.origin,
      get,
      result: at(part.result),
      cancel: at(part.cancel),
      poll,
      cancelPart: model.cancel ?? { method: "POST" },
      error: model.error ?? null,
      headers: part.headers ?? {},
      cost: costOf(reading, part.cost),
    });
  }

  /** An address in an answer, or one that is made of names. Null if there is none: the job may be accepted all the same. */
  private addressIn(
    place: string,
    reading: AnswerWithJson,
    names: TemplateValues,
    beside: string,
  ): string | null {
    if (isTemplate(place)) {
      try {
        return this.whole(fillAddress(place, names), beside);
      } catch {
        return null;
      }
    }
    const text = findText(reading.json, place);
    const isAddress = text !== null && /^(https?:\/\/|\/)/.test(text) && URL.canParse(text, beside);
    return isAddress ? new URL(text, beside).href : null;
  }

  /** A path is below the provider's own address; the address that was asked says which one of several. */
  private whole(address: string, beside: string): string {
    if (!address.startsWith("/")) return address;
    const base = this.settings.addresses.find((one) => beside.startsWith(one)) ?? this.settings.addresses[0];
    return (base ?? new URL(beside).origin) + address;
  }

  /** What goes wrong here is told as a refusal or as `JobLater`: nothing has been sent. */
  private async ready(job: ProviderJob): Promise<Prepared> {
    if (this.needsKey && this.key() === null) throw new JobLater(this.noKey(), askMsMax, "provider");
    try {
      return await this.prepared(job);
    } catch (error) {
      if (error instanceof JobRefused) throw error;
      throw new JobRefused(
        "provider",
        `the request cannot be made: ${fromProvider((error as Error).message, this.key())}`,
        false,
      );
    }
  }

  private async prepared(job: ProviderJob): Promise<Prepared> {
    const model = this.modelOf(job);
    const part = model.submit;
    if (part === undefined)
      throw new JobRefused(
        "provider",
        `${this.settings.name} has no way to make ${job.model.category} of this`,
        false,
      );
    const request = model.request ?? {};
    const proposed = part.form ?? part.body ?? {};
    const wanted = new Set([
      ...namesWithin(proposed),
      ...namesWithin(request),
      ...namesWithin(part.post),
      ...namesWithin(part.headers ?? {}),
    ]);
    const names = await namesOf(job, wanted);
    const endpoint = new Set(this.description.endpoint);
    const own = (fill(request, names) ?? {}) as JsonObject;
    const forAddress = { ...names, ...textsOf(own, endpoint) };
    const sent = without(merged(proposed, request), endpoint);
    const url = this.target(part.post, forAddress);
    const question: ProviderRequest = {
      method: "POST",
      url,
      headers: this.headers(part.headers ?? {}, names),
      timeoutMs: this.settings.timeoutMs,
    };
    if (part.form === undefined) {
      question.headers["content-type"] ??= "application/json";
      question.body = JSON.stringify(fill(sent, names) ?? {});
    } else {
      const { body, type } = await formOf(sent, names, job.media);
      question.headers["content-type"] = type;
      question.body = body;
    }
    return {
      part,
      model,
      request: { ...((fill(sent, names) ?? {}) as JsonObject), ...own },
      names: forAddress,
      question,
    };
  }

  /** The description with what the model says instead. */
  private modelOf(job: ProviderJob): HttpModel {
    const own = readModel(job.model.details);
    const base = this.description;
    const part = partFor(job, own.submit === undefined ? base.submit : [own.submit]);
    const poll = own.poll ?? base.poll;
    const completed = <Part extends { outputs?: string | undefined; cost?: CostPlace | undefined }>(
      one: Part,
    ) => ({
      ...one,
      outputs: own.outputs ?? one.outputs ?? base.outputs,
      cost: one.cost ?? base.cost,
    });
    return {
      ...(own.request === undefined ? {} : { request: own.request }),
      submit: part && completed(part),
      poll: poll && completed(poll),
      cancel: own.cancel ?? base.cancel,
      error: own.error ?? base.error,
      errors: [...(own.errors ?? []), ...(base.errors ?? [])],
    };
  }

  private target(template: string, names: TemplateValues): URL {
    const path = fillAddress(template, names);
    const { addresses } = this.settings;
    const base = path.startsWith("/")
      ? (addresses[Math.floor(this.place.random.next() * addresses.length)] ?? "")
      : "";
    if (!URL.canParse(base + path))
      throw new JobRefused(
        "provider",
        base === "" ? `the provider ${this.settings.name} has no base_url` : `${base}${path} is no address`,
        false,
      );
    return new URL(base + path);
  }

  private headers(own: Record<string, string>, names: TemplateValues): Record<string, string> {
    const key = this.key();
    const known = key === null ? names : { ...names, key };
    const all = { accept: "*/*", ...this.description.headers, ...own, ...this.settings.headers };
    return Object.fromEntries(
      Object.entries(all).flatMap(([name, template]) => {
        // Without a key, `Bearer ` is none.
        if (key === null && namesWithin(template).includes("key")) return [];
        const value = fillText(template, known);
        return value === "" ? [] : [[name.toLowerCase(), value] as const];
      }),
    );
  }

  /** Asks something that costs nothing. The key goes to the hosts of the provider only. */
  private async ask(
    method: ProviderRequest["method"],
    address: string,
    known: Pick<Resume, "origin" | "headers">,
    signal: AbortSignal,
  ): Promise<AnswerWithJson> {
    const url = new URL(address);
    if (!this.getsKey(url, known.origin))
      throw new Error(
        `the provider's answer names ${url.origin}, and the key goes to ${new URL(known.origin).host} alone: add "hosts: [${url.hostname}]" to the provider ${this.settings.name} if that is its own`,
      );
    const question: ProviderRequest = {
      method,
      url,
      headers: this.headers(known.headers, {}),
      timeoutMs: Math.min(this.settings.timeoutMs, askMsMax),
    };
    return readingOf(await this.sender.ask(question, signal));
  }

  private getsKey(url: URL, origin: string): boolean {
    const own = [origin, ...this.settings.addresses].map((one) => new URL(one));
    if (own.some((one) => one.origin === url.origin)) return true;
    const listed = (this.settings.details["hosts"] as string[] | undefined) ?? this.description.hosts ?? [];
    const isSafe = url.protocol === "https:" || own.every(({ protocol }) => protocol === "http:");
    return isSafe && listed.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`));
  }

  /** An answer that is no success says nothing about the job, unless it is at the result and a rule of the poll says so. */
  private notYet(reading: AnswerWithJson, known: Resume, isResult: boolean): Running {
    const judged = verdict(reading, known.poll.errors, this.judge(known.poll.error ?? known.error));
    if (judged !== null && isResult) throwPolled(judged);
    const said = judged?.delayMs ?? retryAfterMs(reading.headers, this.place.clock.now());
    if (reading.status === 429 || (reading.status === 503 && said !== null))
      return { running: true, afterMs: said ?? busyMs };
    throw new Error(`${this.settings.name} ${oddity(reading, "a success")}`);
  }

  /** The provider says by this word that the job has failed; its rules say why. */
  private refusal(
    reading: AnswerWithJson,
    known: Resume,
    kind: "moderation" | "provider",
    word: string,
  ): JobRefused {
    const judge = this.judge(known.poll.error ?? known.error);
    const named = known.poll.errors.filter(({ code }) => code !== undefined);
    const judged = verdict({ ...reading, status: 400 }, named, judge) ?? verdict(reading, named, judge);
    const { is, billed } = judged?.rule ?? { is: kind, billed: undefined };
    const message = words(reading, judge);
    const own =
      message === `${this.settings.name} answered ${reading.status}`
        ? `${this.settings.name} says "${fromProvider(word, this.key())}"`
        : message;
    return new JobRefused(refusalKind(is, kind), own, billed ?? null);
  }

  async find(job: ProviderJob, signal: AbortSignal, sent: Sent): Promise<Accepted | null> {
    const part = this.description.find;
    const { clock } = this.place;
    if (part === undefined) throw new Error(`${this.settings.name} cannot find a lost job`);
    const {
      request,
      model,
      question,
      part: sentAs,
    } = await this.prepared(job).catch((error: Error) => {
      // A refusal would be about the submit, which may have been accepted.
      throw new Error(error.message);
    });
    const { origin } = question.url;
    let next: string | null = this.whole(fillAddress(part.get, {}), question.url.href);
    const found: { entry: Json; ref: string }[] = [];
    let isUnclear = false;
    for (let page = 0; next !== null; page++) {
      if (page === pagesMax) throw new Error(`${this.settings.name} lists too many jobs to find one`);
      const reading = await this.ask("GET", next, { origin, headers: {} }, signal);
      const list = find(reading.json, part.list);
      if (!isGood(reading) || !Array.isArray(list)) throw this.odd(reading, `a list at ${part.list}`);
      const times = list.map((entry) => timeOf(find(entry, part.at)));
      for (const [index, entry] of list.entries()) {
        const at = times[index] ?? null;
        const ref = findText(entry, part.ref ?? (typeof sentAs.ref === "string" ? sentAs.ref : "id"));
        if (ref === null || at === null || sent.isTaken(ref)) continue;
        if (at < sent.at - skewMs || at > sent.at + this.settings.timeoutMs + skewMs) continue;
        const fit = fitOf(entry, request, part.match);
        if (fit === true) found.push({ entry, ref });
        if (fit === null) isUnclear = true;
      }
      const isOver = times.some((at) => at !== null && at < sent.at - skewMs);
      next = isOver || part.next === undefined ? null : findText(reading.json, part.next);
    }
    const [one, another] = found;
    if (another !== undefined)
      throw new Error(`${this.settings.name} has ${found.length} jobs that could be this one`);
    if (one === undefined) {
      if (isUnclear || part.complete === undefined)
        throw new Error(`${this.settings.name} lists no such job, which does not prove that there is none`);
      if (clock.now() < sent.at + msOf(part.complete))
        throw new Error(`${this.settings.name} does not list the job yet`);
      return null;
    }
    const poll = model.poll ?? { running: [], done: [], failed: [], moderated: [], errors: [] };
    const listed: AnswerWithJson = { status: 200, headers: {}, body: Buffer.alloc(0), json: one.entry };
    const at = (place: string | undefined) =>
      place === undefined ? null : this.addressIn(place, listed, { ref: one.ref }, question.url.href);
    const get = at(part.poll ?? sentAs.poll) ?? at(poll.get);
    if (get === null) throw new Error(`${this.settings.name} lists the job without an address to ask at`);
    return acceptedJob({
      ref: one.ref,
      origin,
      get,
      cancel: at(part.cancel ?? sentAs.cancel),
      poll,
      cancelPart: model.cancel ?? { method: "POST" },
      error: model.error ?? null,
    });
  }

  async named(job: ProviderJob, ref: string): Promise<Accepted> {
    const { model, question, part } = await this.prepared(job);
    const { poll } = model;
    const nothing: AnswerWithJson = { status: 200, headers: {}, body: Buffer.alloc(0), json: null };
    const get =
      poll?.get === undefined ? null : this.addressIn(poll.get, nothing, { ref }, question.url.href);
    if (!poll || get === null)
      throw new Error(`${this.settings.name} tells only with its answer where a job can be asked for`);
    return acceptedJob({
      ref,
      origin: question.url.origin,
      get,
      poll,
      error: model.error ?? null,
      headers: part.headers ?? {},
    });
  }

  private noKey(): string {
    const { name, keyEnv, keyFile } = this.settings;
    const remedy = keyFile === null ? `set ${keyEnv ?? "key_env"}` : "its key_file is missing or empty";
    return `the provider ${name} needs a key: ${remedy}`;
  }

  async check(signal: AbortSignal): Promise<string | null> {
    if (this.needsKey && this.key() === null) return this.noKey();
    const { check } = this.description;
    for (const base of check === undefined ? [] : this.settings.addresses) {
      const wrong = await this.checkOne(base + (check?.get ?? ""), base, signal);
      if (wrong !== null) return wrong;
    }
    return null;
  }

  private async checkOne(address: string, origin: string, signal: AbortSignal): Promise<string | null> {
    const { name } = this.settings;
    try {
      const reading = await this.ask("GET", address, { origin, headers: {} }, signal);
      if (isGood(reading)) return null;
      const said = words(reading, this.judge(this.description.error));
      return [401, 403].includes(reading.status) ? `${name} refuses the key: ${said}` : said;
    } catch (error) {
      return `${name} cannot be reached: ${(error as Error).message}`;
    }
  }
}

function acceptedJob(
  known: Pick<Resume, "ref" | "origin" | "get" | "poll" | "error"> & Partial<Resume>,
): Accepted {
  const resume: Resume = { result: null, cancel: null, cancelPart: null, headers: {}, cost: null, ...known };
  return { ref: known.ref, resume: JSON.parse(JSON.stringify(resume)) as Json };
}

function partFor(job: ProviderJob, parts: readonly SubmitPart[]): SubmitPart | undefined {
  return parts.find(({ when }) => {
    if (when?.category !== undefined && when.category !== job.model.category) return false;
    return when?.media === undefined || job.media[when.media] !== undefined;
  });
}

function without(value: JsonObject, names: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.has(name)));
}

function textsOf(value: JsonObject, names: ReadonlySet<string>): TemplateValues {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) =>
      names.has(name) && (typeof one === "string" || typeof one === "number") ? [[name, String(one)]] : [],
    ),
  );
}

function isAmong(word: string, words: readonly string[]): boolean {
  return words.some((one) => one.toLowerCase() === word.toLowerCase());
}

/** Whether the answer has a list of outputs, and the list is empty. */
function saysNone(reading: AnswerWithJson, query: string | undefined): boolean {
  const outputs: JobOutput[] | null = outputsOf(reading, query);
  return outputs !== null && outputs.length === 0;
}

function refusalKind(is: Rule["is"], otherwise: "moderation" | "provider"): JobRefused["kind"] {
  if (is === "final") return "provider";
  return is === "later" || is === "unknown" ? otherwise : is;
}

/** In a poll, `later` and `unknown` mean to ask again. */
function throwPolled(judged: Ruling): void {
  if (judged.rule.is !== "later") throwVerdict(judged);
}
