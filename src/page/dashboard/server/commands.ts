import { useEffect, useState } from "preact/hooks";
import type { Act, OfferedPrice, StartedCommand } from "../../../documents/page.js";
import { post } from "./client.js";
import { onConnection } from "./standing.js";

/** The acts of a person. They are sent one after the other, in the order in which they were requested. */

/** An act as a person is asked about it. */
export interface Proposal {
  title: string;
  /** What would happen, in a sentence or two. */
  words: string;
  act: Act;
  /** What it costs: nothing, known already (in credits), or the server is asked before anybody can agree. */
  price: null | number | "asked";
  /** What the button says; the price is added. */
  verb: string;
  isGrave?: boolean;
  /** The command, if it is known beforehand. */
  line?: string;
  onDone?: (command: StartedCommand) => void;
}

export interface Notice {
  key: string;
  command: StartedCommand | null;
  /** What went wrong before there was a command. */
  error: string | null;
  /** What a person should know of what was done without a command. */
  note: string | null;
  /** Until the command ends. */
  isHidden: boolean;
}

export interface Doing {
  proposal: Proposal | null;
  notices: Notice[];
  /** Acts that wait for the one before. */
  waiting: number;
}

let doing: Doing = { proposal: null, notices: [], waiting: 0 };
const listeners = new Set<(doing: Doing) => void>();

export function useDoing(): Doing {
  const [seen, setSeen] = useState(doing);
  useEffect(() => {
    setSeen(doing);
    listeners.add(setSeen);
    return () => {
      listeners.delete(setSeen);
    };
  }, []);
  return seen;
}

function change(to: Partial<Doing>): void {
  doing = { ...doing, ...to };
  for (const listener of [...listeners]) listener(doing);
}

/** Asks a person to agree to it. */
export function propose(proposal: Proposal): void {
  change({ proposal });
}

/** Another proposal, which was made since, stays. */
export function withdraw(proposal: Proposal): void {
  if (doing.proposal === proposal) change({ proposal: null });
}

/** A command that still runs is shown again when it has ended. */
export function dismiss(key: string): void {
  const notices = doing.notices.flatMap((notice) => {
    if (notice.key !== key) return [notice];
    return notice.command?.exit === null ? [{ ...notice, isHidden: true }] : [];
  });
  change({ notices });
}

export function priceOf(act: Act): Promise<OfferedPrice> {
  return post<OfferedPrice>("/api/offer", act);
}

let last: Promise<unknown> = Promise.resolve();

/** Carries out the act, after all earlier ones. Rejects if the server refuses. */
export function perform(act: Act): Promise<StartedCommand> {
  change({ waiting: doing.waiting + 1 });
  const done = last
    .then(() => post<StartedCommand>("/api/act", act))
    .finally(() => change({ waiting: doing.waiting - 1 }));
  last = done.catch(() => undefined);
  return done.then((command) => {
    show({ key: `command ${command.id}`, command, error: null, note: null, isHidden: false });
    return command;
  });
}

/** Carries out an act for a button without a dialog: a refusal is shown as a notice, and resolves with null. */
export async function performNow(act: Act): Promise<StartedCommand | null> {
  try {
    return await perform(act);
  } catch (error) {
    tellError(error);
    return null;
  }
}

let shown = 0;

export function tellError(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  show({ key: `error ${++shown}`, command: null, error: message, note: null, isHidden: false });
}

export function showNote(note: string): void {
  show({ key: `note ${++shown}`, command: null, error: null, note, isHidden: false });
}

const noticesMax = 4;

function show(notice: Notice): void {
  const others = doing.notices.filter(({ key }) => key !== notice.key);
  change({ notices: [...others, notice].slice(-noticesMax) });
}

/** Updates the notices while their commands go on. */
export function followCommands(): void {
  onConnection(({ standing }) => {
    if (standing === null || doing.notices.length === 0) return;
    const news = new Map(standing.commands.map((command) => [command.id, command]));
    const isNews = ({ command }: Notice) => {
      const newer = command === null ? undefined : news.get(command.id);
      return newer !== undefined && (newer.exit !== command?.exit || newer.message !== command?.message);
    };
    if (!doing.notices.some(isNews)) return;
    const notices = doing.notices.map((notice) => {
      const command = notice.command === null ? null : (news.get(notice.command.id) ?? notice.command);
      return { ...notice, command, isHidden: notice.isHidden && command?.exit === null };
    });
    change({ notices });
  });
}
