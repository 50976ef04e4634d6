import type { Mutant } from "./mutants.js";

/** Runners that are broken where the quota is kept. */
export const quotaMutants: readonly Mutant[] = [
  {
    name: "counts a request by the time of its sending",
    accounts: ({ reserve, answered }) => ({
      reserve: async (account, endpoint) => {
        const reservation = await reserve(account, endpoint);
        if (reservation.ticket) await answered(reservation.ticket);
        return reservation;
      },
      answered: async () => {},
    }),
  },
  {
    name: "gives the place of an unanswered request back",
    parts: ({ send, accounts }) => ({
      send: async (request, signal) => {
        const reply = await send(request, signal);
        if (reply.kind === "no_answer" && request.ticket) await accounts.release(request.ticket);
        return reply;
      },
    }),
  },
  {
    name: "sends without a place in the quota",
    accounts: (accounts) => ({
      quota: async (account) => {
        const quota = await accounts.quota(account);
        const open = { limit: null, nextFreeAt: 0 };
        return { ...quota, minute: { ...quota.minute, ...open }, day: { ...quota.day, ...open } };
      },
      reserve: async (account, endpoint) => {
        const reservation = await accounts.reserve(account, endpoint);
        return reservation.ticket ? reservation : { ticket: { id: -1 } };
      },
    }),
  },
  {
    name: "ignores Retry-After",
    accounts: { silence: async () => ({ until: 0, slowed: null }) },
  },
  {
    name: "buys with the requests that open tasks need",
    accounts: (accounts) => ({
      quota: async (account) => {
        const quota = await accounts.quota(account);
        return { ...quota, day: { ...quota.day, used: 0 } };
      },
    }),
  },
];
