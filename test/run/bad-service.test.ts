import { afterEach, expect, test } from "vitest";
import { defaultReconcile } from "../../src/core/charges/readings.js";
import { noCredits } from "../../src/core/money.js";
import type { Reply } from "../../src/core/ports/send.js";
import { carryOn, openWorld, picture, start, type World } from "./harness.js";

/**
 * A service that is bad for a while, on an unlimited plan with 16 lanes: ten seconds after the bad time is over the run
 * must be as fast as before, by itself, and no item may be paid twice.
 */
let world: World;
afterEach(() => world.close());

const lanes = 16;
const answerMs = 1_000;
const badFrom = 4_000;
const recoverMs = 10_000;
const measureMs = 2_000;

/** A paid request; times in ms since the run began. */
interface Post {
  body: string;
  sentAt: number;
  answeredAt: number | null;
  /** The service made a task of it. */
  isMade: boolean;
  isAccepted: boolean;
}

interface Moment {
  at: number;
  /** The number of this paid request, from 1. */
  nth: number;
  /** Milliseconds until the bad time is over. */
  leftMs: number;
}

interface BadTime {
  lastsMs: number;
  /** A complete GENERATION_ERROR counts as not charged. */
  errorIsFree?: boolean;
  answer(pass: () => Promise<Reply>, moment: Moment): Promise<Reply>;
}

const internalError: Reply = {
  kind: "answer",
  status: 500,
  headers: {},
  body: '{"error":{"code":"GENERATION_ERROR","message":"busy"}}',
};
const closed: Reply = { kind: "no_answer", reason: "the connection was reset" };

async function slowly(pass: () => Promise<Reply>, { leftMs }: Moment): Promise<Reply> {
  await world.pass(Math.min(30_000 - answerMs, leftMs));
  return pass();
}

/** A second in four, and then every second request. */
async function inBursts(pass: () => Promise<Reply>, { at, nth }: Moment): Promise<Reply> {
  return Math.floor(at / 1_000) % 4 === 0 && nth % 2 === 0 ? internalError : pass();
}

/** Some before the service has seen the request, some after. */
async function closing(pass: () => Promise<Reply>, { nth }: Moment): Promise<Reply> {
  if (nth % 11 === 0) return closed;
  const reply = await pass();
  return nth % 7 === 0 ? closed : reply;
}

const badTimes: [string, BadTime][] = [
  ["slows down to 30 seconds an answer", { lastsMs: 62_000, answer: slowly }],
  ["answers 500 in bursts", { lastsMs: 12_000, answer: inBursts }],
  [
    "answers 500 to all for long, which is known to be free",
    { lastsMs: 40_000, errorIsFree: true, answer: async () => internalError },
  ],
  ["closes connections at random", { lastsMs: 12_000, answer: closing }],
];

test.each(badTimes)("P2, P3: a run recovers within ten seconds from a service that %s", async (_, bad) => {
  // No task ends in the meantime: paid requests alone are counted.
  world = await openWorld({
    plan: "Enterprise",
    credits: 100_000,
    taskMs: { min: 3_600_000, max: 3_600_000 },
  });
  const { clock } = world;
  const beganAt = clock.monotonic();
  const now = () => clock.monotonic() - beganAt;
  const badUntil = badFrom + bad.lastsMs;
  const interrupt = new AbortController();
  const posts: Post[] = [];
  let inFlight = 0;
  let most = 0;
  world.tamper = async (request, pass, body = "") => {
    const sentAt = now();
    if (sentAt > badUntil + recoverMs + measureMs) interrupt.abort();
    if (!request.startsWith("POST")) return pass();
    const post: Post = { body, sentAt, answeredAt: null, isMade: false, isAccepted: false };
    posts.push(post);
    const through = async () => {
      const reply = await pass();
      post.isMade = reply.kind === "answer" && reply.status === 200;
      return reply;
    };
    most = Math.max(most, ++inFlight);
    const moment = { at: sentAt, nth: posts.length, leftMs: badUntil - sentAt };
    const isBad = sentAt >= badFrom && sentAt < badUntil;
    const reply = await (isBad ? bad.answer(through, moment) : through());
    await world.pass(answerMs);
    inFlight--;
    post.answeredAt = now();
    post.isAccepted = reply.kind === "answer" && reply.status === 200;
    return reply;
  };
  const pictures = Array.from({ length: 500 }, (_, n) => picture(`p${n + 1}`, n));
  const run = await start(world, pictures);
  const { errorIsFree = false } = bad;
  await carryOn(world, run, {
    lanes,
    perMinute: null,
    perDay: null,
    interrupt: interrupt.signal,
    reads: true,
    settling: {
      ...defaultReconcile,
      errorIsFree,
      unsettledMax: 2 * lanes,
      wait: false,
      orphanCredits: noCredits,
    },
  });

  const accepted = (from: number, ms: number) =>
    posts.filter(({ isAccepted, answeredAt }) => {
      return isAccepted && answeredAt !== null && answeredAt >= from && answeredAt < from + ms;
    }).length;
  const before = accepted(badFrom - measureMs, measureMs);
  expect(before).toBe((lanes * measureMs) / answerMs);
  expect(accepted(badUntil + recoverMs, measureMs)).toBe(before);
  expect(most).toBe(lanes);
  const paid = posts.filter(({ isMade }) => isMade).map(({ body }) => body);
  expect(new Set(paid).size).toBe(paid.length);
});
