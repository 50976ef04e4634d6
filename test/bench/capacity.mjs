/**
 * How many items a second a fleet of up to 100 workers makes, by simulation: nobody here has 100 hosts. The model:
 *
 * - One process buys. It needs `1 / buyerRate` seconds of its database connection for an item: half of them until the item's
 *   task is done, half to give its file its name. Nothing else waits for it, and tasks are done at once.
 * - Each download goes through the queue: put in, taken, answered and collected, one at a time in the database, which does
 *   `queueRate` of them a second. What is left of that after the renewals (each download and each worker, every 3 s; a
 *   renewal is a fifth of such a cycle) is for downloads.
 * - A worker has D downloads at once. Each waits for the service's first byte, then takes its turn on the host's network of
 *   B MB/s. Sizes are log-normal around the mean (sigma 0.5). The check of a file is part of its network's time.
 * - A worker is lost every so many hours, comes back after a minute, and what it had begun is done again by others when the
 *   leases have ended, after 10 s.
 *
 * The quota of the account, the service's own speed and the shared disk are not in it: each of them may be less. It first
 * predicts what fleet.mjs has measured with 1, 2 and 4 workers, then tells of fleets that nobody has measured.
 *
 *   node test/bench/capacity.mjs [--items N]      items simulated for each line (default: 200000)
 *   node test/bench/capacity.mjs --measure        cycles of the queue a second on this machine
 */
import { numberOf } from "./setup.mjs";

/** What was measured; the rest is computed from it. Items of 1 kB a second, by workers of 16 downloads. */
const measured = {
  /** `fleet.mjs --only workers`, on a quiet machine */
  small: { 1: 103, 2: 113, 4: 110 },
  /** `fleet.mjs --only workers --file-ms 4000 --items 160`, on a quiet machine */
  late: { 1: 3.7, 2: 7.0, 4: 10.9 },
  lateMs: 4_000,
  lateItems: 160,
  /** `capacity.mjs --measure` */
  queueRate: 620,
};
const buyerRate = measured.small[1];
const renewalShare = 0.2;
const renewSeconds = 3;
const leaseSeconds = 10;
const backSeconds = 60;

/** A fleet that nobody has measured. */
const assumed = { downloads: 4, megabytesASecond: 100, firstByteSeconds: 0.1, lostEveryHours: 6 };
const tenMillion = 10_000_000;

/** A repeatable source of numbers from 0 to 1 (mulberry32). */
function chanceOf(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Events by their time: a binary heap. */
class Agenda {
  heap = [];

  add(at, act) {
    const { heap } = this;
    let index = heap.length;
    heap.push({ at, act });
    while (index > 0) {
      const above = (index - 1) >> 1;
      if (heap[above].at <= heap[index].at) return;
      [heap[above], heap[index]] = [heap[index], heap[above]];
      index = above;
    }
  }

  next() {
    const { heap } = this;
    const [first] = heap;
    const last = heap.pop();
    if (heap.length === 0) return first;
    heap[0] = last;
    for (let index = 0; ; ) {
      let least = index;
      for (const below of [2 * index + 1, 2 * index + 2])
        if (below < heap.length && heap[below].at < heap[least].at) least = below;
      if (least === index) return first;
      [heap[least], heap[index]] = [heap[index], heap[least]];
      index = least;
    }
  }
}

/** Plays a fleet until all items have their files; what it took, and how busy each part was. */
function play({ items, workers, megabytes, downloads, megabytesASecond, firstByteSeconds, lostEveryHours }) {
  const chance = chanceOf(1);
  const agenda = new Agenda();
  let now = 0;
  const later = (seconds, act) => agenda.add(now + seconds, act);
  const sigma = 0.5;
  const sizeOf = () => {
    const normal = Math.sqrt(-2 * Math.log(1 - chance())) * Math.cos(2 * Math.PI * chance());
    return megabytes * Math.exp(sigma * normal - sigma ** 2 / 2);
  };
  const until = (hours) => -Math.log(1 - chance()) * hours * 3_600;

  const renewals = (workers * (downloads + 1)) / renewSeconds;
  const queueRate = Math.max(1, measured.queueRate - renewals * renewalShare);
  const busy = { buyer: 0, queue: 0, networks: 0, downloads: 0 };
  let [toBuy, toName, waiting, archived, again] = [items, 0, 0, 0, 0];
  let [isBuying, queueFree] = [false, 0];
  const hosts = Array.from({ length: workers }, () => ({ free: downloads, networkFree: 0, life: 0 }));

  const buy = () => {
    if (isBuying || toBuy + toName === 0) return;
    isBuying = true;
    const isName = toName > 0;
    if (isName) toName--;
    else toBuy--;
    const seconds = 0.5 / buyerRate;
    busy.buyer += seconds;
    later(seconds, () => {
      isBuying = false;
      if (isName) archived++;
      else {
        waiting++;
        hand();
      }
      buy();
    });
  };
  /** Hands what waits to the worker that has most free places. */
  const hand = () => {
    while (waiting > 0) {
      let host = hosts[0];
      for (const other of hosts) if (other.free > host.free) host = other;
      if (host.free <= 0) return;
      waiting--;
      host.free--;
      download(host, host.life);
    }
  };
  const download = (host, life) => {
    const began = now;
    queueFree = Math.max(now, queueFree) + 1 / queueRate;
    busy.queue += 1 / queueRate;
    later(queueFree - now + firstByteSeconds, () => {
      if (host.life !== life) return;
      const seconds = sizeOf() / megabytesASecond;
      host.networkFree = Math.max(now, host.networkFree) + seconds;
      busy.networks += seconds;
      later(host.networkFree - now, () => {
        if (host.life !== life) return;
        busy.downloads += now - began;
        host.free++;
        toName++;
        buy();
        hand();
      });
    });
  };
  const lose = (host) => {
    const begun = downloads - host.free;
    again += begun;
    host.life++;
    host.free = 0;
    later(leaseSeconds, () => {
      waiting += begun;
      hand();
    });
    later(backSeconds, () => {
      host.free = downloads;
      host.networkFree = now;
      hand();
    });
    later(backSeconds + until(lostEveryHours), () => lose(host));
  };
  if (lostEveryHours !== null) for (const host of hosts) later(until(lostEveryHours), () => lose(host));
  buy();
  while (archived < items) {
    const event = agenda.next();
    now = event.at;
    event.act();
  }
  const shares = [
    ["the buyer", busy.buyer / now],
    ["the queue", busy.queue / now],
    ["the networks", busy.networks / (now * workers)],
    ["the number of downloads", busy.downloads / (now * workers * downloads)],
  ].toSorted(([, one], [, other]) => other - one);
  // Downloads also wait while the network of their host is busy.
  const [limit] = shares.filter(
    ([name]) => name !== "the number of downloads" || busy.networks / (now * workers) < 0.9,
  );
  return { rate: items / now, limit: limit[0], share: limit[1], again };
}

/** The workers of fleet.mjs: 16 downloads of 1 kB each, on this machine. */
function predicted(workers, firstByteSeconds, items) {
  return play({
    items,
    workers,
    megabytes: 0.001,
    downloads: 16,
    megabytesASecond: 1_000,
    firstByteSeconds,
    lostEveryHours: null,
  }).rate;
}

function check() {
  console.log("Items of 1 kB a second, predicted and measured (fleet.mjs)");
  for (const [name, figures, seconds, items] of [
    ["at once", measured.small, 0, 2_000],
    [`each after ${measured.lateMs} ms`, measured.late, measured.lateMs / 1_000, measured.lateItems],
  ])
    for (const workers of [1, 2, 4]) {
      const rate = predicted(workers, seconds, items);
      console.log(
        `  ${name.padEnd(20)} ${workers} worker${workers === 1 ? " " : "s"}  ${rate.toFixed(1).padStart(5)}  ${String(figures[workers]).padStart(4)}  ${(rate / figures[workers]).toFixed(2)} of it`,
      );
    }
}

function tell() {
  const items = numberOf("--items", 200_000);
  const { downloads, megabytesASecond, firstByteSeconds, lostEveryHours } = assumed;
  console.log(
    `\n${downloads} downloads at once and ${megabytesASecond} MB/s a worker, first byte after ${firstByteSeconds} s, a worker lost every ${lostEveryHours} h; ${items} items simulated`,
  );
  for (const [name, megabytes] of [
    ["1 kB", 0.001],
    ["1 MB", 1],
    ["500 MB", 500],
  ])
    for (const workers of [1, 10, 100]) {
      const { rate, limit, share, again } = play({ items, workers, megabytes, ...assumed });
      const days = tenMillion / rate / 86_400;
      console.log(
        `  ${name.padStart(6)}  ${String(workers).padStart(3)} worker${workers === 1 ? " " : "s"}  ${rate.toFixed(1).padStart(5)}/s  10 million in ${days.toFixed(1).padStart(6)} days  limited by ${limit} (busy ${(100 * share).toFixed(0)} %), ${again} downloads begun again`,
      );
    }
}

/** The queue as src/fleet/queue.ts uses it: one job is put in, taken, answered and collected, over 4 connections. */
async function measure() {
  const [{ PgBoss }, { startOwnPostgres }] = await Promise.all([
    import("pg-boss"),
    import("../../scripts/postgres.mjs"),
  ]);
  const postgres = await startOwnPostgres();
  const boss = new PgBoss({ connectionString: postgres.url, max: 4, supervise: false, schedule: false });
  const queue = "archive";
  try {
    await boss.start();
    await boss.createQueue(queue, {
      heartbeatSeconds: 10,
      expireInSeconds: 3_600,
      retryLimit: 5,
      retryDelay: 0,
    });
    const data = { request: "x".repeat(600) };
    const tell = () => boss.getDb().executeSql("SELECT pg_notify('bench', '')");
    const cycle = async () => {
      await boss.insert(queue, [{ data }], { returnId: true });
      await tell();
      // What another one has just locked is passed over.
      let job;
      while (job === undefined) [job] = await boss.fetch(queue, { batchSize: 1, includeMetadata: true });
      await boss.complete(queue, { id: job.id, retryCount: job.retryCount }, data);
      await tell();
      await boss.deleteJob(queue, job.id);
    };
    const seconds = 10;
    const began = performance.now();
    let cycles = 0;
    const hand = async () => {
      for (; performance.now() - began < seconds * 1_000; cycles++) await cycle();
    };
    await Promise.all(Array.from({ length: 8 }, hand));
    console.log(
      `${(cycles / ((performance.now() - began) / 1_000)).toFixed(0)} cycles of the queue a second`,
    );
  } finally {
    await boss.stop({ graceful: false });
    await postgres.stop();
  }
}

if (process.argv.includes("--measure")) await measure();
else {
  check();
  tell();
}
