import {
  type Accepted,
  type Cost,
  type Done,
  JobLater,
  type JobOutput,
  JobRefused,
  type Json,
  type JsonObject,
  type ModelSettings,
  OddAnswer,
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
  type FindPart,
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
import { originsIn } from "./origins.js";
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
  textAt,
  throwVerdict,
  usualRules,
  verdict,
  withJson,
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
  values: JsonObject;
  names: TemplateValues;
  request: ProviderRequest;
}

/** Of a job that is found although its provider answers at once: what is at its address is the result. */
const noPoll: PollPart = { running: [], done: [], failed: [], moderated: [], errors: [] };

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
    const answer = withJson(await this.sender.pay(prepared.request, signal));
    const { part, model } = prepared;
    const poll = model.poll;
    if (isGood(answer)) {
      const done = poll === undefined ? this.doneAtOnce(answer, prepared) : this.accepted(answer, prepared);
      if (done !== null) return done;
    }
    const judged = verdict(answer, [...(model.errors ?? []), ...usualRules], this.judge(model.error));
    if (judged !== null) throwVerdict(judged);
    if (isGood(answer) && poll === undefined && saysNone(answer, part.outputs, prepared.request.url.href))
      throw new JobRefused("provider", `${this.settings.name} made nothing`);
    const expected = poll === undefined ? `anything at ${part.outputs}` : "the job's name or address";
    throw new Error(`${this.settings.name} ${oddity(answer, expected)}`);
  }

  async poll(resume: Json, signal: AbortSignal): Promise<Done | Running> {
    const known = resume as unknown as Resume;
    const answer = await this.ask("GET", known.get, known, signal);
    const { running, done, failed, moderated, note, cost } = known.poll;
    const { status = done.length > 0 ? "status" : undefined } = known.poll;
    const place = known.poll.result;
    const isResult = known.result === null && place === undefined;
    if (!isGood(answer)) return this.notYet(answer, known, isResult);
    const afterMs = retryAfterMs(answer.headers, this.place.clock.now());
    const stillRunning = (): Running => {
      const said = note === undefined ? null : findText(answer.json, note);
      return {
        running: true,
        ...(afterMs === null ? {} : { afterMs }),
        ...(said === null ? {} : { note: fromProvider(said, this.key()) }),
      };
    };
    if (answer.status === 202 && status === undefined) return stillRunning();
    if (status !== undefined) {
      const word = findText(answer.json, status);
      if (word === null) throw this.odd(answer, `a status at ${status}`);
      if (isAmong(word, running)) return stillRunning();
      if (isAmong(word, moderated)) throw this.refusal(answer, known, "moderation", word);
      if (isAmong(word, failed)) throw this.refusal(answer, known, "provider", word);
      if (!isAmong(word, done))
        throw new OddAnswer(
          `${this.settings.name} says "${fromProvider(word, this.key())}", which no word of the description means`,
        );
    }
    const address =
      known.result ?? (place === undefined ? null : this.addressIn(place, answer, {}, known.get));
    if (place !== undefined && address === null) throw this.odd(answer, `an address at ${place}`);
    const result = address === null ? answer : await this.ask("GET", address, known, signal);
    if (result.status === 202) return stillRunning();
    if (!isGood(result)) return this.notYet(result, known, true);
    const outputs = outputsOf(result, known.poll.outputs, address ?? known.get);
    const price = costOf(result, cost) ?? costOf(answer, cost) ?? known.cost;
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
    const answer = await this.ask(known.cancelPart.method, known.cancel, known, signal);
    if (!isGood(answer)) throw new Error(words(answer, this.judge(known.error)));
    const { billed } = known.cancelPart;
    const said = billed === undefined ? null : find(answer.json, billed);
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

  private odd(answer: AnswerWithJson, expected: string): Error {
    return new OddAnswer(`${this.settings.name} ${oddity(answer, expected)}`);
  }

  /** The files of an answer at once; null if there are none. */
  private doneAtOnce(answer: AnswerWithJson, { part, request }: Prepared): Done | null {
    const outputs = outputsOf(answer, part.outputs, request.url.href);
    if (outputs === null || outputs.length === 0) return null;
    const named = part.ref === undefined ? usualRefs : [part.ref];
    const ref = named.map((where) => textAt(answer, where)).find((text) => text !== null) ?? null;
    const cost = costOf(answer, part.cost);
    return { outputs, ...(ref === null ? {} : { ref }), ...(cost === null ? {} : { cost }) };
  }

  /** Null if the answer has no name of a job, or nothing says where to ask for it. */
  private accepted(answer: AnswerWithJson, prepared: Prepared): Accepted | null {
    const { part } = prepared;
    const ref = textAt(answer, part.ref ?? "id");
    return ref === null ? null : this.acceptedAs(ref, answer, prepared, part);
  }

  /** A job by its name, with where to ask for it: what `places` find in an answer. Null if nothing says where. */
  private acceptedAs(
    ref: string,
    answer: AnswerWithJson,
    { part, model, names, request }: Prepared,
    places: Pick<SubmitPart, "poll" | "result" | "cancel">,
  ): Accepted | null {
    const at = (place: string | undefined) =>
      place === undefined ? null : this.addressIn(place, answer, { ...names, ref }, request.url.href);
    const { poll = noPoll } = model;
    const get = at(places.poll) ?? at(poll.get);
    if (get === null) return null;
    const resume: Resume = {
      ref,
      origin: request.url.origin,
      get,
      result: at(places.result),
      cancel: at(places.cancel),
      poll,
      cancelPart: model.cancel ?? { method: "POST" },
      error: model.error ?? null,
      headers: part.headers ?? {},
      cost: costOf(answer, part.cost),
    };
    return { ref, resume: JSON.parse(JSON.stringify(resume)) as Json };
  }

  /** An address in an answer, or one that is made of names. Null if there is none: the job may be accepted all the same. */
  private addressIn(
    place: string,
    answer: AnswerWithJson,
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
    const text = findText(answer.json, place);
    const isAddress = text !== null && /^(https?:\/\/|\/)/.test(text) && URL.canParse(text, beside);
    return isAddress ? new URL(text, beside).href : null;
  }

  /** A path is below the provider's own address; the address that was asked says which one of several. */
  private whole(address: string, beside: string): string {
    if (!address.startsWith("/")) return address;
    const base = this.settings.addresses.find((one) => beside.startsWith(one)) ?? this.settings.addresses[0];
    return (base ?? new URL(beside).origin) + address;
  }

  /** What goes wrong here becomes a refusal or `JobLater`: nothing has been sent. */
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
    const own = model.request ?? {};
    const proposed = part.form ?? part.body ?? {};
    const wanted = new Set([
      ...namesWithin(proposed),
      ...namesWithin(own),
      ...namesWithin(part.post),
      ...namesWithin(part.headers ?? {}),
    ]);
    const names = await namesOf(job, wanted);
    const endpoint = new Set(this.description.endpoint);
    const filled = (fill(own, names) ?? {}) as JsonObject;
    const forAddress = { ...names, ...textsOf(filled, endpoint) };
    const sent = without(merged(proposed, own), endpoint);
    const url = this.target(part.post, forAddress, job.model);
    const request: ProviderRequest = {
      method: "POST",
      url,
      headers: this.headers(part.headers ?? {}, names),
      timeoutMs: this.settings.timeoutMs,
    };
    if (part.form === undefined) {
      request.headers["content-type"] ??= "application/json";
      request.body = JSON.stringify(fill(sent, names) ?? {});
    } else {
      const { body, type } = await formOf(sent, names, job.media);
      request.headers["content-type"] = type;
      request.body = body;
    }
    return {
      part,
      model,
      values: { ...((fill(sent, names) ?? {}) as JsonObject), ...filled },
      names: forAddress,
      request,
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

  /** Where to send the job: only to what the files name, because that is what the user has agreed to. */
  private target(template: string, names: TemplateValues, { details }: ModelSettings): URL {
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
    const url = new URL(base + path);
    const named = [...addresses, ...originsIn(this.description), ...originsIn(details)];
    if (named.some((one) => new URL(one).origin === url.origin)) return url;
    throw new JobRefused(
      "provider",
      `the request would go to ${url.origin}, which is put together from the job: write that address out`,
      false,
    );
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
    const request: ProviderRequest = {
      method,
      url,
      headers: this.headers(known.headers, {}),
      timeoutMs: Math.min(this.settings.timeoutMs, askMsMax),
    };
    return withJson(await this.sender.ask(request, signal));
  }

  private getsKey(url: URL, origin: string): boolean {
    const own = [origin, ...this.settings.addresses].map((one) => new URL(one));
    if (own.some((one) => one.origin === url.origin)) return true;
    const listed = (this.settings.details["hosts"] as string[] | undefined) ?? this.description.hosts ?? [];
    const isSafe = url.protocol === "https:" || own.every(({ protocol }) => protocol === "http:");
    return isSafe && listed.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`));
  }

  /** An answer that is no success says nothing about the job, unless it is at the result and a rule of the poll says so. */
  private notYet(answer: AnswerWithJson, known: Resume, isResult: boolean): Running {
    const judged = verdict(answer, known.poll.errors, this.judge(known.poll.error ?? known.error));
    if (judged !== null && isResult) throwPolled(judged);
    const said = judged?.delayMs ?? retryAfterMs(answer.headers, this.place.clock.now());
    if (answer.status === 429 || (answer.status === 503 && said !== null))
      return { running: true, afterMs: said ?? busyMs };
    throw new Error(`${this.settings.name} ${oddity(answer, "a success")}`);
  }

  /** The provider says by this word that the job has failed; its rules say why. */
  private refusal(
    answer: AnswerWithJson,
    known: Resume,
    kind: "moderation" | "provider",
    word: string,
  ): JobRefused {
    const judge = this.judge(known.poll.error ?? known.error);
    const named = known.poll.errors.filter(({ code }) => code !== undefined);
    const judged = verdict({ ...answer, status: 400 }, named, judge) ?? verdict(answer, named, judge);
    const { is, billed } = judged?.rule ?? { is: kind, billed: undefined };
    const message = words(answer, judge);
    const own =
      message === `${this.settings.name} answered ${answer.status}`
        ? `${this.settings.name} says "${fromProvider(word, this.key())}"`
        : message;
    return new JobRefused(refusalKind(is, kind), own, billed ?? null);
  }

  async find(job: ProviderJob, signal: AbortSignal, sent: Sent): Promise<Accepted | null> {
    const part = this.description.find;
    if (part === undefined) throw new Error(`${this.settings.name} cannot find a lost job`);
    const prepared = await this.prepared(job).catch((error: Error) => {
      // A refusal would be about the submit, which may have been accepted.
      throw new Error(error.message);
    });
    const found = await this.theOne(part, prepared, sent, signal);
    if (found === null) return null;
    const { poll = prepared.part.poll, cancel = prepared.part.cancel } = part;
    const accepted = this.acceptedAs(found.ref, answerOf(found.entry), prepared, { poll, cancel });
    if (accepted === null)
      throw new Error(`${this.settings.name} lists the job without an address to ask at`);
    return accepted;
  }

  /** The listed job that a submit has made; null if the list proves that it has made none. Throws if it proves nothing (yet). */
  private async theOne(
    part: FindPart,
    { part: submit, values, request }: Prepared,
    sent: Sent,
    signal: AbortSignal,
  ): Promise<{ entry: Json; ref: string } | null> {
    const { name, timeoutMs } = this.settings;
    const refAt = part.ref ?? (typeof submit.ref === "string" ? submit.ref : "id");
    const [from, to] = [sent.at - skewMs, sent.at + timeoutMs + skewMs];
    const found: { entry: Json; ref: string }[] = [];
    let isUnclear = false;
    for await (const { entry, at } of this.listed(part, request.url, from, signal)) {
      const ref = findText(entry, refAt);
      if (ref === null || at === null || at < from || at > to || sent.isTaken(ref)) continue;
      const fit = fitOf(entry, values, part.match);
      if (fit === true) found.push({ entry, ref });
      if (fit === null) isUnclear = true;
    }
    if (found.length > 1) throw new Error(`${name} has ${found.length} jobs that could be this one`);
    if (found[0] !== undefined) return found[0];
    if (isUnclear || part.complete === undefined)
      throw new Error(`${name} lists no such job, which does not prove that there is none`);
    if (this.place.clock.now() < sent.at + msOf(part.complete))
      throw new Error(`${name} does not list the job yet`);
    return null;
  }

  /** The jobs that the provider lists, each with its time (UTC ms), by pages until one has a job from before `since`. */
  private async *listed(
    part: FindPart,
    { origin, href }: URL,
    since: number,
    signal: AbortSignal,
  ): AsyncGenerator<{ entry: Json; at: number | null }> {
    let next: string | null = this.whole(fillAddress(part.get, {}), href);
    for (let page = 0; next !== null; page++) {
      if (page === pagesMax) throw new Error(`${this.settings.name} lists too many jobs to find one`);
      const answer = await this.ask("GET", next, { origin, headers: {} }, signal);
      const list = find(answer.json, part.list);
      if (!isGood(answer) || !Array.isArray(list)) throw this.odd(answer, `a list at ${part.list}`);
      const jobs = list.map((entry) => ({ entry, at: timeOf(find(entry, part.at)) }));
      yield* jobs;
      const isOver = jobs.some(({ at }) => at !== null && at < since);
      next = isOver || part.next === undefined ? null : findText(answer.json, part.next);
    }
  }

  async named(job: ProviderJob, ref: string): Promise<Accepted> {
    const prepared = await this.prepared(job);
    const accepted = this.acceptedAs(ref, answerOf(null), prepared, prepared.part);
    if (accepted === null)
      throw new Error(`${this.settings.name} tells only with its answer where a job can be asked for`);
    return accepted;
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
      const answer = await this.ask("GET", address, { origin, headers: {} }, signal);
      if (isGood(answer)) return null;
      const said = words(answer, this.judge(this.description.error));
      return [401, 403].includes(answer.status) ? `${name} refuses the key: ${said}` : said;
    } catch (error) {
      return `${name} cannot be reached: ${(error as Error).message}`;
    }
  }
}

/** What a provider says of a job elsewhere than in its answer to the submit. */
function answerOf(json: Json): AnswerWithJson {
  return { status: 200, headers: {}, body: Buffer.alloc(0), json };
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
function saysNone(answer: AnswerWithJson, query: string | undefined, asked: string): boolean {
  const outputs: JobOutput[] | null = outputsOf(answer, query, asked);
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
